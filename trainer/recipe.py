"""Recipes: the YAML that fully describes a job.

A recipe holds a section for each of its stages: `who`, those of methods, in the order of their table (trainer/methods),
then `evaluate`. The other sections are in recipe_sections.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)

from assets import asset
from orchestrator.prompt_styles import PROMPTS
from orchestrator.repairs.table import in_table_order, leave_out
from pool_registry.validation_words import field_problems
from pool_registry.worker import NAME_PATTERN
from trainer.errors import InvalidRecipe
from trainer.job_place import HERE, JobPlace, PlaceText, TrackerPlace, parse_place
from trainer.methods.base import TrainingStage
from trainer.methods.table import METHODS
from trainer.recipe_sections import EvaluateSettings, ModelSettings, RecipeSection, TaskSettings, WhoSettings
from trainer.tasks.pool_settings import PoolSettings

PRESETS = "recipes"
MAX_RECIPE_BYTES = 200_000


WHO = "who"  # the stage that trains the choice of workers, before those of the methods
EVALUATE = "evaluate"  # the stage that trains nothing, after those of the methods


class _LearningTask(RecipeSection):
    """What is learnt: by which model, on which tasks and pools."""

    name: str = Field(default="my-orchestrator", pattern=NAME_PATTERN, description="Prefix of the job's checkpoints.")
    title: str = Field(default="", max_length=200, description="One line for people.")
    pool: str = Field(default="starter", pattern=NAME_PATTERN, description="The pool it learns to orchestrate.")
    model: ModelSettings = ModelSettings()
    tasks: TaskSettings = TaskSettings()
    pools: PoolSettings | None = Field(
        default=None, description="Draws a pool for each task. Empty: every task runs on the pool as it is."
    )


if TYPE_CHECKING:

    class _MethodSections(_LearningTask):
        """A section for each method of the table, by its key; `Method.read` gives it with its type."""

else:
    _MethodSections = create_model(
        "_MethodSections",
        __base__=_LearningTask,
        **{method.name: (method.Section | None, None) for method in METHODS.values()},
    )


class Recipe(_MethodSections):
    """A whole job."""

    who: WhoSettings | None = None
    evaluate: EvaluateSettings | None = None
    max_cost: float | None = Field(
        default=None,
        gt=0,
        description="US dollars for the whole job, its stages together; at the cap it stops and can be resumed with "
        "another. Empty: the caps of the stages alone.",
    )
    track: tuple[TrackerPlace, ...] = Field(
        default=(),
        description="Where traces and curves go as well, as otlp:http://HOST:4318, trackio:PROJECT or "
        "mlflow:URI#EXPERIMENT.",
        examples=[["trackio:my-orchestrator"]],
    )
    threads: int = Field(default=0, ge=0, le=256, description="CPU threads of torch in each process; 0 for all.")
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Processes that train together, each on a GPU of its own where there are GPUs. They share out a "
        "method's batch, so that a step stays the same.",
    )
    sharding: Literal["none", "full"] = Field(
        default="none",
        description="full: the processes share out the weights, gradients and optimizer of fine-tuning (FSDP2), for a "
        "model that is too large for one GPU. none: each holds all of them.",
    )
    where: PlaceText = Field(
        default=str(HERE),
        description="here: this machine. hf:FLAVOR: one that Hugging Face Jobs rents out by the minute. "
        "ray://HOST:PORT: the episodes of an evaluation run on a Ray cluster.",
        examples=["here", "hf:l4x1", "hf:a100-large", "ray://10.0.0.5:10001"],
    )
    max_hours: float = Field(
        default=6.0,
        gt=0,
        le=72,
        description="Hours after which a rented machine is given back, finished or not; it bounds what the job costs.",
    )

    @model_validator(mode="after")
    def _has_a_stage(self) -> Recipe:
        if not self.stages:
            raise ValueError(f"a recipe needs one of the sections {', '.join(METHODS)}, {WHO} or {EVALUATE}")
        return self

    @model_validator(mode="after")
    def _shows_what_varies(self) -> Recipe:
        if self.pool_draws and PROMPTS[self.model.prompt].knows_one_pool and self.trains:
            raise ValueError("with pools a model must be shown the pool: set model.prompt: full, or leave pools out")
        return self

    @model_validator(mode="after")
    def _suits_its_methods(self) -> Recipe:
        for stage in self.training_stages:
            for problem in stage.method.find_problems(stage.settings, self):
                raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _can_be_capped(self) -> Recipe:
        for stage in self.training_stages if self.max_cost is not None else ():
            plays = stage.method.count_episodes(stage.settings, self)
            if plays and stage.method.cap_cost(stage.settings, self.max_cost or 0.0) is None:
                raise ValueError(f"{stage.method.label} keeps no cap on what its episodes cost: leave max_cost out")
        return self

    @model_validator(mode="after")
    def _can_be_shared_out(self) -> Recipe:
        if self.processes > 1 and not self.trains:
            problem = "there must be something to train: an evaluation is one process, leave processes out"
            raise ValueError(f"with processes: {self.processes} {problem}")
        for stage in self.training_stages if self.processes > 1 else ():
            for problem in stage.method.find_sharing_problems(stage.settings, self):
                raise ValueError(f"with processes: {self.processes} {problem}")
        return self

    @model_validator(mode="after")
    def _can_be_sharded(self) -> Recipe:
        if self.sharding == "full" and self.processes == 1:
            problem = "the weights need processes to be shared out among: set processes: 2 or more"
            raise ValueError(f"with sharding: full {problem}")
        for stage in self.training_stages if self.sharding == "full" else ():
            for problem in stage.method.find_sharding_problems(stage.settings, self):
                raise ValueError(f"with sharding: full {problem}")
        return self

    @model_serializer(mode="wrap")
    def _leave_out_newer_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Recipes without pools, for this machine and one process are written as they were before these keys came."""
        document: dict[str, Any] = serialize(self)
        for method in METHODS.values():
            if not method.always_written and document.get(method.name) is None:
                document.pop(method.name, None)
        for name in ("pools", WHO, "max_cost"):
            if document.get(name) is None:
                document.pop(name, None)
        if self.place.is_here:
            document.pop("where", None)
        if not self.place.is_rented:
            document.pop("max_hours", None)
        if self.processes == 1:
            document.pop("processes", None)
        if self.sharding == "none":
            document.pop("sharding", None)
        if not self.track:
            document.pop("track", None)
        return document

    @property
    def place(self) -> JobPlace:
        """Where the job runs."""
        return parse_place(self.where)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of this recipe, in the order in which they run."""
        methods = (stage.name for stage in self.training_stages)
        return (*((WHO,) if self.who else ()), *methods, *((EVALUATE,) if self.evaluate else ()))

    @property
    def training_stages(self) -> tuple[TrainingStage, ...]:
        """The stages that train, in the order in which they run."""
        stages: list[TrainingStage] = []
        for method in METHODS.values():
            if (settings := method.read(self)) is not None:
                stages.append(TrainingStage(method, settings, stages[-1].end if stages else 0))
        return tuple(stages)

    @property
    def trains(self) -> bool:
        """Whether it trains anything, or only measures."""
        return bool(self.training_stages)

    @property
    def needs_plans(self) -> bool:
        """Whether a method of the recipe learns from the tasks' own reference plans."""
        return any(stage.method.needs_plans(stage.settings) for stage in self.training_stages)

    @property
    def max_rounds(self) -> int | None:
        """The most turns of an episode, where a method of the recipe says it."""
        rounds = [stage.method.count_rounds(stage.settings) for stage in self.training_stages]
        return next((count for count in reversed(rounds) if count is not None), None)

    @property
    def pool_draws(self) -> tuple[PoolSettings, ...]:
        """How the recipe draws pools: for all stages, then for their phases."""
        return tuple(pools for _, pools in self.list_pool_draws())

    def list_pool_draws(self) -> list[tuple[str, PoolSettings]]:
        """How the recipe draws pools, each with its key."""
        own = [("pools", self.pools)] if self.pools is not None else []
        stages = self.training_stages
        return [*own, *(draw for stage in stages for draw in stage.method.list_pool_draws(stage.settings))]

    def list_sources(self) -> tuple[str, ...]:
        """The sources of tasks of all stages, and those that checkpoints are measured on."""
        evaluated = self.evaluate.source if self.evaluate else ""
        unseen = (pools.unseen for pools in self.pool_draws)
        return tuple(source for source in (self.tasks.source, evaluated, *unseen) if source)

    def complete_evaluate(self) -> EvaluateSettings:
        """Return the evaluate section with its empty fields filled from the other sections.

        Tasks come from the tasks section, rounds from the method that plays episodes. Only where there is one.
        """
        assert self.evaluate is not None, "the caller knows that the recipe has this stage"
        settings = self.evaluate
        rounds = settings.max_rounds or self.max_rounds
        source, levels = settings.source or self.tasks.source, settings.levels or self.tasks.levels
        return settings.model_copy(update={"source": source, "levels": levels, "max_rounds": rounds})

    def with_place(self, where: str) -> Recipe:
        """Return this recipe for another place. Raises InvalidRecipe saying how a place is written."""
        try:
            return self.model_copy(update={"where": str(parse_place(where))})
        except ValueError as error:
            raise InvalidRecipe([("where", str(error))]) from error

    def without_repairs(self, names: Sequence[str]) -> Recipe:
        """Return this recipe with these repairs switched off where it evaluates. Raises UnknownOrchestrator for a name
        that is none, InvalidRecipe where it evaluates nothing."""
        if not names:
            return self
        if self.evaluate is None:
            raise InvalidRecipe([("evaluate", "this recipe evaluates nothing: there are no repairs to leave out")])
        evaluate = self.evaluate.model_copy(update={"repairs": in_table_order(leave_out(names))})
        return self.model_copy(update={"evaluate": evaluate})

    def with_only(self, stage: str) -> Recipe:
        """Return this recipe with one of its stages. Raises InvalidRecipe when it has no such stage."""
        if stage not in self.stages:
            raise InvalidRecipe([(stage, f"this recipe has no {stage} section; it has: {', '.join(self.stages)}")])
        left_out = {other: None for other in self.stages if other != stage}
        alone = {"processes": 1, "sharding": "none"} if stage in (WHO, EVALUATE) else {}
        return self.model_copy(update=left_out | alone)

    def with_teacher(self, agent: str) -> Recipe:
        """Return this recipe with plans of an agent of its pool imitated before its other training."""
        sections = {name: method.imitate_agent(agent, self.tasks.count) for name, method in METHODS.items()}
        changes = {name: section for name, section in sections.items() if section is not None}
        return parse_recipe(_to_yaml(self.model_copy(update=changes).model_dump(mode="json"), allow_unicode=False))

    def with_max_cost(self, dollars: float) -> Recipe:
        """Return this recipe with another spend cap where it has one. Raises InvalidRecipe where it has none."""
        stages = [(stage.name, stage.method.with_max_cost(stage.settings, dollars)) for stage in self.training_stages]
        changes: dict[str, Any] = {name: section for name, section in stages if section is not None}
        if self.max_cost is not None:
            changes["max_cost"] = dollars
        for name, section in ((WHO, self.who), (EVALUATE, self.evaluate)):
            if section is not None and section.max_cost is not None:
                changes[name] = section.model_copy(update={"max_cost": dollars})
        if not changes:
            raise InvalidRecipe([("max_cost", "this recipe has no spend cap to raise")])
        return parse_recipe(_to_yaml(self.model_copy(update=changes).model_dump(mode="json"), allow_unicode=False))


def parse_recipe(text: str) -> Recipe:
    """Parse a recipe from YAML. Raises InvalidRecipe with every problem and its key."""
    if len(text) > MAX_RECIPE_BYTES:
        raise InvalidRecipe([("", f"a recipe has at most {MAX_RECIPE_BYTES:,} characters")])
    try:
        document = yaml.safe_load(text)
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
        AttributeError,
    ) as error:  # the last two: 2020-13-45
        raise InvalidRecipe([("", f"this is not YAML: {error}")]) from error
    if not isinstance(document, dict):
        raise InvalidRecipe([("", "a recipe is a mapping such as 'pool: starter'")])
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        raise InvalidRecipe(_list_problems(error)) from error


def dump_recipe(recipe: Recipe) -> str:
    """Write a recipe as YAML with every key: the inverse of `parse_recipe`."""
    document = recipe.model_dump(mode="json")
    text = _to_yaml(document, allow_unicode=True)
    plain = all(letter.isprintable() or letter == "\n" for letter in text)
    return text if plain else _to_yaml(document, allow_unicode=False)  # YAML reads some control characters as line ends


def _to_yaml(document: dict[str, object], allow_unicode: bool) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=allow_unicode, width=110)
    return text


def load_recipe(reference: str) -> Recipe:
    """Load the preset of this name, or else the recipe file at this path. Raises InvalidRecipe."""
    path = asset(PRESETS) / f"{reference}.yaml"
    if reference not in list_presets():
        path = Path(reference).expanduser()
    try:
        return parse_recipe(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InvalidRecipe(
            [("", f"{reference} is no recipe file ({reason}) and no preset; presets: {', '.join(list_presets())}")]
        ) from error


def list_presets() -> list[str]:
    """List the names of the recipes that ship, the least demanding first."""
    order = [
        "cpu-first-steps",
        "cpu-smollm2",
        "reader-cpu",
        "reader-gpu",
        "single-gpu-24gb",
        "single-gpu-80gb",
        "conductor-paper",
        "paramanager-paper",
        "evaluate-baselines",
    ]
    available = {path.stem for path in asset(PRESETS).glob("*.yaml")}
    return [name for name in order if name in available] + sorted(available.difference(order))


def _list_problems(error: ValidationError) -> list[tuple[str, str]]:
    """The problems by key; what a section says of itself is left out where one of its keys is wrong."""
    problems = dict(field_problems(error))
    deeper = {key.rpartition(".")[0] for key in problems}
    return [(key, what) for key, what in problems.items() if key == "" or key not in deeper]

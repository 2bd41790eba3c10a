"""Recipes: the YAML that fully describes a job.

A recipe holds one or more of the stages `sft`, `grpo` and `evaluate`, which run in this order; its sections are in
recipe_sections.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from assets import asset
from orchestrator.repairs.table import in_table_order, leave_out
from pool_registry.kinds import PLAIN_WORDS
from pool_registry.worker import NAME_PATTERN
from trainer.errors import InvalidRecipe
from trainer.job_place import HERE, JobPlace, PlaceText, parse_place
from trainer.recipe_sections import (
    EvaluateSettings,
    GrpoSettings,
    ModelSettings,
    RecipeSection,
    SftSettings,
    TaskSettings,
)
from trainer.tasks.pool_settings import PoolSettings

PRESETS = "recipes"
MAX_RECIPE_BYTES = 200_000


STAGES = ("sft", "grpo", "evaluate")


class Recipe(RecipeSection):
    """A whole job."""

    name: str = Field(default="my-orchestrator", pattern=NAME_PATTERN, description="Prefix of the job's checkpoints.")
    title: str = Field(default="", max_length=200, description="One line for people.")
    pool: str = Field(default="starter", pattern=NAME_PATTERN, description="The pool it learns to orchestrate.")
    model: ModelSettings = ModelSettings()
    tasks: TaskSettings = TaskSettings()
    pools: PoolSettings | None = Field(
        default=None, description="Draws a pool for each task. Empty: every task runs on the pool as it is."
    )
    sft: SftSettings | None = None
    grpo: GrpoSettings | None = None
    evaluate: EvaluateSettings | None = None
    threads: int = Field(default=0, ge=0, le=256, description="CPU threads of torch in each process; 0 for all.")
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Processes that train together, each on a GPU of its own where there are GPUs. They share out "
        "sft.batch and grpo.micro_batch, so that a step stays the same.",
    )
    sharding: Literal["none", "full"] = Field(
        default="none",
        description="full: the processes share out the weights, gradients and optimizer of sft (FSDP2), for a model "
        "that is too large for one GPU. none: each holds all of them.",
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
            raise ValueError("a recipe needs an sft, a grpo or an evaluate section")
        return self

    @model_validator(mode="after")
    def _shows_what_varies(self) -> Recipe:
        if self.pool_draws and self.model.prompt == "query" and (self.sft or self.grpo):
            raise ValueError("with pools a model must be shown the pool: set model.prompt: full, or leave pools out")
        return self

    @model_validator(mode="after")
    def _has_a_turn_for_the_answer(self) -> Recipe:
        calls = self.model.dialect == "tool_calls" and self.model.prompt != "reader"
        if calls and self.grpo is not None and self.grpo.rollouts.max_rounds < 2:
            raise ValueError("with tool_calls the answer is a turn of its own: set grpo.rollouts.max_rounds: 2 or more")
        return self

    @model_validator(mode="after")
    def _can_look_twice(self) -> Recipe:
        recursive = any(phase.recursion for phase in self.grpo.phases) if self.grpo else False
        if recursive and self.model.prompt == "reader":
            raise ValueError("a reader's second turn is code: leave recursion out, or set model.prompt: full")
        return self

    @model_validator(mode="after")
    def _can_sample_beside_training(self) -> Recipe:
        problem = next(self._find_what_async_lacks(), "") if self.grpo else ""
        if problem:
            raise ValueError(f"with grpo.rollouts.backend: vllm-async {problem}")
        return self

    def _find_what_async_lacks(self) -> Iterator[str]:
        """Yield what sampling beside training cannot do, each with what to change."""
        if self.grpo is None or self.grpo.rollouts.backend != "vllm-async":
            return
        loss = self.grpo.loss
        if not self.grpo.rollouts.vllm_url:
            yield "the server is your own, on another GPU: set grpo.rollouts.vllm_url"
        if self.model.lora is None and not self.model.start:
            yield "the server is given adapters: set model.lora"
        if self.grpo.saving.check_tasks:
            yield "checkpoints cannot be measured: set grpo.saving.check_tasks: 0, and measure with evaluate"
        if self.grpo.phases:
            yield "there is one run: leave grpo.phases out"
        if any(reward.anneal for reward in self.grpo.rewards):
            yield "rewards keep their weight: leave anneal out"
        if (loss.type, loss.beta, loss.iterations) != ("dapo", 0, 1) or loss.scale == "batch":
            yield "the loss is dapo on each group: leave loss.type, beta, iterations and scale: batch out"

    @model_validator(mode="after")
    def _can_be_shared_out(self) -> Recipe:
        problem = next(self._find_what_cannot_be_shared(), "") if self.processes > 1 else ""
        if problem:
            raise ValueError(f"with processes: {self.processes} {problem}")
        return self

    def _find_what_cannot_be_shared(self) -> Iterator[str]:
        """Yield what several processes cannot do, each with what to change."""
        if self.sft is None and self.grpo is None:
            yield "there must be something to train: an evaluation is one process, leave processes out"
        batches = {"sft.batch": self.sft.batch} if self.sft else {}
        batches |= {"grpo.micro_batch": self.grpo.micro_batch} if self.grpo else {}
        for key, batch in batches.items():
            if batch % self.processes:
                yield f"{key} must be a multiple of {self.processes}: set it to {-batch % self.processes + batch}"
        if self.grpo is not None and self.grpo.rollouts.backend == "vllm-colocate":
            yield "vLLM cannot run in the trainer: set grpo.rollouts.backend: vllm (a server) or transformers"

    @model_validator(mode="after")
    def _can_be_sharded(self) -> Recipe:
        problem = next(self._find_what_cannot_be_sharded(), "") if self.sharding == "full" else ""
        if problem:
            raise ValueError(f"with sharding: full {problem}")
        return self

    def _find_what_cannot_be_sharded(self) -> Iterator[str]:
        """Yield what weights in several processes rule out, each with what to change."""
        if self.processes == 1:
            yield "the weights need processes to be shared out among: set processes: 2 or more"
        if self.grpo is not None:
            yield "one process cannot sample: leave grpo out, or set sharding: none"
        if self.sft is not None and self.sft.saving.check_tasks:
            yield "checkpoints cannot be measured while it trains: set sft.saving.check_tasks: 0"

    @model_serializer(mode="wrap")
    def _leave_out_newer_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Recipes without pools, for this machine and one process are written as they were before these keys came."""
        document: dict[str, Any] = serialize(self)
        if self.pools is None:
            document.pop("pools", None)
        if self.place.is_here:
            document.pop("where", None)
        if not self.place.is_rented:
            document.pop("max_hours", None)
        if self.processes == 1:
            document.pop("processes", None)
        if self.sharding == "none":
            document.pop("sharding", None)
        return document

    @property
    def place(self) -> JobPlace:
        """Where the job runs."""
        return parse_place(self.where)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of this recipe, in the order in which they run."""
        return tuple(stage for stage in STAGES if getattr(self, stage) is not None)

    @property
    def pool_draws(self) -> tuple[PoolSettings, ...]:
        """How the recipe draws pools: for all stages, then for phases of GRPO."""
        phases = self.grpo.phases if self.grpo else ()
        return tuple(pools for pools in (self.pools, *(phase.pools for phase in phases)) if pools is not None)

    def list_sources(self) -> tuple[str, ...]:
        """The sources of tasks of all stages, and those that checkpoints are measured on."""
        evaluated = self.evaluate.source if self.evaluate else ""
        unseen = (pools.unseen for pools in self.pool_draws)
        return tuple(source for source in (self.tasks.source, evaluated, *unseen) if source)

    def complete_evaluate(self) -> EvaluateSettings:
        """Return the evaluate section with its empty fields filled from the other sections.

        Tasks come from the tasks section, rounds from GRPO's rollouts. Only for a recipe with that section.
        """
        assert self.evaluate is not None, "the caller knows that the recipe has this stage"
        settings = self.evaluate
        rounds = settings.max_rounds or (self.grpo.rollouts.max_rounds if self.grpo else None)
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
        alone = {"processes": 1, "sharding": "none"} if stage == "evaluate" else {}
        return self.model_copy(update=left_out | alone)

    def with_max_cost(self, dollars: float) -> Recipe:
        """Return this recipe with another spend cap where it has one. Raises InvalidRecipe where it has none."""
        document = self.model_dump(mode="json")
        sections = [document["evaluate"] or {}, (document["grpo"] or {}).get("rollouts") or {}]
        capped = [section for section in sections if section.get("max_cost") is not None]
        if not capped:
            raise InvalidRecipe([("max_cost", "this recipe has no spend cap to raise")])
        for section in capped:
            section["max_cost"] = dollars
        return parse_recipe(_to_yaml(document, allow_unicode=False))


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


_ALTERNATIVES = ("str", "list[str]")  # what pydantic adds to the key where a value may be one of two types


def _list_problems(error: ValidationError) -> list[tuple[str, str]]:
    problems: dict[str, str] = {}
    for item in error.errors(include_url=False):
        key = ".".join(str(part) for part in item["loc"] if part not in _ALTERNATIVES)
        problems.setdefault(key, PLAIN_WORDS.get(item["type"], item["msg"].removeprefix("Value error, ")))
    deeper = {key.rpartition(".")[0] for key in problems}
    return [(key, what) for key, what in problems.items() if key == "" or key not in deeper]

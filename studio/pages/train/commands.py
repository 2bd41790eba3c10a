"""The commands of the Train page: recipes, and starting, stopping and resuming jobs.

Jobs are read from the database and their folders, never from memory.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from platformdirs import user_data_dir
from pydantic import ValidationError

from orchestrator.made_for import find_reader_of_records
from orchestrator.traces.agent_track_record import build_track_record
from pool_registry.actions import JsonValue
from pool_registry.errors import PoolNotFound
from pool_registry.kinds import field_problems
from studio.access.recipe_rights import check_recipe
from studio.frame.commands import Fields, PageCommands, PageReply, command, dollars
from studio.orchestrators.default import suggest_orchestrators
from studio.pages.train.improve_commands import ImproveCommands
from studio.pages.train.job_document import build_job_line, load_job_recipe
from studio.pages.train.notice_commands import NoticeCommands
from studio.pages.train.preflight import find_gaps
from studio.pages.train.schema import JobLine, PresetDocument, PresetStage, RecipeDocument, RentedPlace
from studio.pages.train.tasks.making_commands import MakingCommands
from studio.pages.train.tasks.recorded_commands import RecordedCommands
from studio.pages.train.tasks.task_commands import TaskCommands
from studio.runtime import Runtime
from trainer.errors import InvalidRecipe
from trainer.evaluation.worker_value import REFERENCE_PLANS
from trainer.methods.table import METHODS
from trainer.pool_recipe import PLANS, build_pool_recipe, choose_preset
from trainer.recipe import Recipe, dump_recipe, list_presets, load_recipe, parse_recipe
from trainer.recipe_schema import build_recipe_schema
from trainer.tasks.practice.stored import SOURCE, count_learnt, count_planned
from trainer.tasks.registry import find_missing_package

if TYPE_CHECKING:
    from trainer.rented.hub_jobs import RentedMachine

FIRST = ("cpu-first-steps", "own-pool")  # what the page shows first, where it can start
RENTING = Recipe.model_validate({"where": "hf:any", "evaluate": {}})  # what only an owner may have run
DEFAULT_TASKS = 70  # to learn from, of those that a job makes where there are none


class TrainCommands(PageCommands):
    """The commands of the Train page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.jobs = runtime.jobs
        parts = (TaskCommands, RecordedCommands, MakingCommands, ImproveCommands, NoticeCommands)
        self.parts = [part(runtime) for part in parts]

    # Recipes

    @command("viewer")
    def _open(self, _fields: Fields) -> PageReply:
        """What the page is built from, and the recipe that it shows first."""
        presets = list_preset_documents()
        first = _choose_first(presets)
        recipe = load_recipe(first) if first else Recipe.model_validate({next(iter(METHODS)): {}})
        return PageReply(
            fields={
                "schema": build_recipe_schema(),
                "presets": [preset.to_json() for preset in presets],
                "pools": self._runtime.store.pools.names(),
                "preset": first,
                **self._build_recipe(recipe, first, checked=False).to_json(),
            }
        )

    @command("viewer")
    def _preset(self, fields: Fields) -> PageReply:
        name = str(fields.get("name"))
        if name not in list_presets():
            raise InvalidRecipe([("", f"there is no preset {name!r}; there are: {', '.join(list_presets())}")])
        return self._reply(load_recipe(name), name)

    @command("viewer")
    def _of_job(self, fields: Fields) -> PageReply:
        """The recipe of a job, to be edited for another one."""
        return self._reply(self.jobs.recipe(self.jobs.get(str(fields.get("job"))).id), "")

    @command("viewer")
    def _of_pool(self, fields: Fields) -> PageReply:
        """The recipe that trains on a pool's own tasks."""
        pool = self._runtime.store.pools.latest(str(fields.get("name"))).pool
        planned = count_planned(pool.name)
        preset = choose_preset(pool, planned)
        count = planned if preset == PLANS else count_learnt(pool.name)
        recipe = build_pool_recipe(pool.name, count or DEFAULT_TASKS, preset, start=find_reader_of_records(pool))
        return self._reply(recipe, "")

    @command("viewer")
    def _check(self, fields: Fields) -> PageReply:
        """A recipe as edited: its problems by key, or its other form and what prevents a start."""
        return self._reply(parse_draft(fields), str(fields.get("preset") or ""))

    @command("editor")
    def _fit(self, fields: Fields) -> PageReply:
        from trainer.memory_fit.estimate import estimate_fit  # imports torch

        recipe = parse_draft(fields)
        try:
            pool = self._runtime.store.pools.latest(recipe.pool).pool
        except PoolNotFound:
            pool = None
        record = (
            build_track_record(self._runtime.store.engine, recipe.pool) if pool is not None and recipe.who else None
        )
        return PageReply(fields={"fit": estimate_fit(recipe, pool, record=record).model_dump(mode="json")})

    def _reply(self, recipe: Recipe, preset: str) -> PageReply:
        return PageReply(fields=self._build_recipe(recipe, preset).to_json())

    def _build_recipe(self, recipe: Recipe, preset: str, checked: bool = True) -> RecipeDocument:
        """A recipe as the page holds it. What is missing takes a moment to find: with `checked` off it is left out,
        and the page asks for it later."""
        unchanged = preset in list_presets() and load_recipe(preset) == recipe
        return RecipeDocument(
            recipe=recipe.model_dump(mode="json"),
            yaml=dump_recipe(recipe),
            command=self._command(recipe, preset if unchanged else ""),
            file=None if unchanged else f"{recipe.name}.yaml",
            teachers=self._list_teachers(recipe.pool),
            missing=find_gaps(recipe, self._runtime.store) if checked else None,
            busy=[build_job_line(row) for row in self.jobs.all() if row.active or row.state == "queued"],
        )

    def _list_teachers(self, pool: str) -> list[str]:
        """The orchestrators that can make demonstrations on a pool: reference plans, and those that plan for it."""
        try:
            return [REFERENCE_PLANS, *suggest_orchestrators(self._runtime.store.pools.latest(pool).pool)]
        except PoolNotFound:
            return [REFERENCE_PLANS]

    def _command(self, recipe: Recipe, preset: str) -> str:
        """What starts the same in a terminal; the data folder is named when it is not the usual one."""
        home = self._runtime.store.home.root
        words = ["python -m trainer train", preset or f"{recipe.name}.yaml"]
        if str(home) != user_data_dir("podium", appauthor=False):
            words.append(f"--home {shlex.quote(str(home))}")
        return " ".join(words)

    # Jobs

    @command("editor")
    def _submit(self, fields: Fields) -> PageReply:
        return submit(parse_draft(fields), self._runtime, agreed=fields.get("agreed") is True)

    @command("owner")
    def _places(self, _fields: Fields) -> PageReply:
        """The machines that can be rented now, with their prices. Raises TrainingFailed."""
        from trainer.rented.hub_jobs import open_hub_jobs  # loads the Hub's client

        check_recipe(RENTING)
        return PageReply(fields={"places": list_rented_places(open_hub_jobs().list_machines())})

    @command("owner")
    def _rent(self, fields: Fields) -> PageReply:
        """What a recipe's rented machine costs and will not have, to be agreed to. Raises InvalidRecipe with what
        cannot work there, and TrainingFailed."""
        from trainer.rented.hub_jobs import open_hub_jobs
        from trainer.rented.plan import plan_rental, refuse_problems

        recipe = parse_draft(fields)
        plan = plan_rental(recipe, self._runtime.store, self.jobs, open_hub_jobs())
        refuse_problems(plan)
        return PageReply(fields={"terms": plan.describe()})

    @command("editor")
    def _stop(self, fields: Fields) -> PageReply:
        row = self.jobs.stop(str(fields.get("job")))
        stopping = row.state == "stopping"
        how = "gives its machine back" if row.place.is_rented else "stops after this step, with a checkpoint"
        return PageReply(f"{row.id} {how if stopping else 'has left the queue'}")

    @command("editor")
    def _resume(self, fields: Fields) -> PageReply:
        """Let a job go on; a proposed one starts, and needs the rights of whoever would have submitted it."""
        job = str(fields.get("job"))
        row = self.jobs.get(job)
        if row.state == "proposed":
            refuse_gaps(self.jobs.recipe(job), self._runtime)
        if row.state == "proposed" or not row.place.is_here:
            check_recipe(self.jobs.recipe(job))
        row = self.jobs.resume(job, dollars(fields, "max_cost"))
        now = self.jobs.start(row.id)
        return PageReply(f"{row.id} {'continues' if now else 'waits in the queue'}")

    @command("editor")
    def _start_queue(self, _fields: Fields) -> PageReply:
        started = self.jobs.start_next()
        self.jobs.start_rented()
        return PageReply(f"{started} starts" if started else "No job to start: none is queued, or the next one waits")

    def list(self) -> list[JobLine]:
        """Every job, newest first."""
        return [build_job_line(row) for row in self.jobs.all()]

    def recipe_text(self, job: str) -> str:
        """The YAML of a job as it was submitted; empty when its file is gone."""
        recipe = load_job_recipe(self.jobs, job)
        return dump_recipe(recipe) if recipe else ""


def submit(recipe: Recipe, runtime: Runtime, agreed: bool = False) -> PageReply:
    """Put a job into the queue. Raises InvalidRecipe with what prevents its start. `agreed`: a person has seen what a
    rented machine costs."""
    if recipe.place.is_rented and not agreed:
        raise InvalidRecipe([("where", "a rented machine costs money: agree to its price first")])
    refuse_gaps(recipe, runtime)
    row = runtime.jobs.submit(drop_foreign_title(recipe))
    now = runtime.jobs.start(row.id)
    return PageReply(f"{row.id} {'starts' if now else 'waits in the queue'}", {"job": row.id})


def refuse_gaps(recipe: Recipe, runtime: Runtime) -> None:
    """Raise InvalidRecipe with what prevents a recipe's start."""
    blocking = [(gap.key, gap.sentence) for gap in find_gaps(recipe, runtime.store) if gap.blocks]
    if blocking:
        raise InvalidRecipe(blocking)


def list_rented_places(machines: Sequence[RentedMachine]) -> list[JsonValue]:
    """Machines as the page offers them."""
    places = [
        RentedPlace(where=f"hf:{row.flavor}", label=f"{row.title} ({row.memory}), ${row.hourly:.2f} an hour")
        for row in machines
    ]
    return [place.to_json() for place in places]


def drop_foreign_title(recipe: Recipe) -> Recipe:
    """The recipe without the title of the preset that it began as, where it has become about something else."""
    presets = [load_recipe(name) for name in list_presets()]
    origin = next((preset for preset in presets if preset.title and preset.title == recipe.title), None)
    any_pool = origin is not None and origin.tasks.source.startswith(SOURCE)
    if origin is None or ((any_pool or origin.pool == recipe.pool) and origin.stages == recipe.stages):
        return recipe
    return recipe.model_copy(update={"title": ""})


def parse_draft(fields: Fields) -> Recipe:
    """Parse the recipe of a command: `yaml` as text, or `recipe` as the form's document. Raises InvalidRecipe, and
    RoleRefused for what only an owner may let a job read or run."""
    recipe = _parse_fields(fields)
    check_recipe(recipe)
    return recipe


def _parse_fields(fields: Fields) -> Recipe:
    if isinstance(fields.get("yaml"), str):
        return parse_recipe(fields["yaml"])
    document = fields.get("recipe")
    if not isinstance(document, Mapping):
        raise InvalidRecipe([("", "a recipe is a mapping such as 'pool: starter'")])
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        raise InvalidRecipe(field_problems(error)) from error


def _choose_first(presets: Sequence[PresetDocument]) -> str:
    """The preset that the page shows first: one that can start here, if there is one."""

    def rank(preset: PresetDocument) -> tuple[bool, int]:
        return preset.needs != "", FIRST.index(preset.name) if preset.name in FIRST else len(FIRST)

    return min(presets, key=rank).name if presets else ""


def list_preset_documents() -> list[PresetDocument]:
    """The recipes that ship; one that a newer version cannot read is left out."""
    documents = []
    for name in list_presets():
        try:
            recipe = load_recipe(name)
        except InvalidRecipe:
            continue
        steps = {stage.name: stage.steps for stage in recipe.training_stages}
        documents.append(
            PresetDocument(
                name=name,
                title=recipe.title or name,
                stages=[PresetStage(name=stage, steps=steps.get(stage)) for stage in recipe.stages],
                base=recipe.model.base,
                adapter=recipe.model.lora is not None,
                needs=find_missing_package(recipe.list_sources()),
            )
        )
    return documents

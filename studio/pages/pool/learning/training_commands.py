"""The Pool page's commands that train an orchestrator for the pool: practice tasks, made and struck, then a job."""

from __future__ import annotations

from orchestrator.made_for import find_reader_of_records
from orchestrator.traces.agent_track_record import build_track_record
from pool_registry.errors import InvalidPool
from studio.frame.commands import Fields, PageCommands, PageReply, command, dollars, text, words
from studio.pages.pool.orchestrator_list import list_orchestrators
from studio.pages.pool.schema import TrainingPlan
from studio.pages.train.commands import submit
from studio.pages.train.preflight import find_gaps
from studio.pages.train.tasks.making_commands import estimate_making, parse_options, start_making
from studio.pages.train.tasks.task_documents import build_book_document
from studio.runtime import Runtime
from trainer.memory_fit.job_estimate import estimate_job
from trainer.pool_recipe import AGENTS, PLANS, build_pool_recipe, choose_preset, list_teachers
from trainer.recipe import Recipe
from trainer.tasks.practice.stored import change_tasks, count_learnt, count_planned
from trainer.tasks.teachers import EXPLAIN_NO_PLANS


class TrainingCommands(PageCommands):
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("viewer", "practice")
    def _show(self, fields: Fields) -> PageReply:
        return self._reply(text(fields, "pool"))

    @command("editor", "make_practice")
    def _make(self, fields: Fields) -> PageReply:
        """Start to make tasks in place of those that were made before; what a person did stays so."""
        return start_making(self._runtime, text(fields, "pool"), parse_options(fields))

    @command("viewer", "estimate_practice")
    def _estimate(self, fields: Fields) -> PageReply:
        """What the questions for agents would take; nothing is asked."""
        return estimate_making(self._runtime, text(fields, "pool"), parse_options(fields))

    @command("editor", "strike_practice")
    def _strike(self, fields: Fields) -> PageReply:
        """Take one task out; it is not made again."""
        name = text(fields, "pool")
        with change_tasks(self._runtime.store.pools, name) as book:
            book.strike(text(fields, "query"), words(fields, "based_on"))
        return self._reply(name)

    @command("editor", "train_on_pool")
    def _train(self, fields: Fields) -> PageReply:
        """Queue the job that learns these tasks. Raises InvalidRecipe with what prevents its start."""
        name = text(fields, "pool")
        if not count_learnt(name):
            raise InvalidPool([("", "there are no tasks to learn from; make them first")])
        recipe = self._build_recipe(name, dollars(fields, "max_cost"), words(fields, "teacher"))
        if recipe.needs_plans and not count_planned(name):
            raise InvalidPool([("", EXPLAIN_NO_PLANS)])
        return submit(recipe, self._runtime)

    @command("viewer", "training_plan")
    def _plan(self, fields: Fields) -> PageReply:
        """What *Train* would do with the tasks that are there, what it takes, and what prevents it."""
        name = text(fields, "pool")
        pool = self._runtime.store.pools.latest(name).pool
        recipe = self._build_recipe(name, teacher=words(fields, "teacher"))
        by_outcomes = recipe.who is not None
        document = TrainingPlan(
            by_outcomes=by_outcomes,
            teachers=list_teachers(pool) if by_outcomes else [],
            estimate=estimate_job(recipe, pool, build_track_record(self._runtime.store.engine, name))
            if by_outcomes
            else None,
            gaps=[gap.sentence for gap in find_gaps(recipe, self._runtime.store)] if count_learnt(name) else [],
        )
        return PageReply(fields={"plan": document.to_json()})

    def _build_recipe(self, name: str, max_cost: float | None = None, teacher: str = "") -> Recipe:
        pool, planned = self._runtime.store.pools.latest(name).pool, count_planned(name)
        preset = choose_preset(pool, planned)
        count = planned if preset == PLANS else count_learnt(name)
        teacher = teacher if preset == AGENTS else ""
        return build_pool_recipe(name, count, preset, max_cost, teacher, find_reader_of_records(pool))

    @command("viewer", "orchestrators")
    def _list_orchestrators(self, fields: Fields) -> PageReply:
        """What can orchestrate the pool, and what those that were trained on it scored."""
        pool = self._runtime.store.pools.latest(text(fields, "pool")).pool
        lines = list_orchestrators(self._runtime, pool)
        return PageReply(fields={"orchestrators": [line.to_json() for line in lines]})

    def _reply(self, name: str, message: str = "") -> PageReply:
        document = build_book_document(self._runtime.store.pools.latest(name).pool)
        return PageReply(message, {"practice": document.to_json()})

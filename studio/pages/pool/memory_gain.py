"""What a pool's failure memory brings on held-out tasks: an evaluation of the pool's own, with and without it."""

from __future__ import annotations

from orchestrator.policies.labels import label_orchestrator
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool
from studio.frame.document import PageDocument
from studio.orchestrators.default import write_model_name
from studio.pages.train.commands import parse_draft
from studio.pages.train.job_document import load_job_recipe
from studio.pages.train.progress import isoformat
from studio.runtime import Runtime
from trainer.jobs.queue import JobRow
from trainer.recipe import Recipe
from trainer.results.by_task import estimate_mean, group_by_task
from trainer.results.paired import compute_difference
from trainer.results.rows import read_results
from trainer.tasks.pool_conditions import MEMORY
from trainer.tasks.practice.stored import SOURCE, list_own_tasks

NAME = "memory-gain"  # of the jobs that measure it
SEEN = "seen"
COUNT = 60
Interval = tuple[float, float, float]  # mean, low, high of the 95 % interval


class MemoryGain(PageDocument):
    """The shares of held-out tasks that are right without and with the lessons, and the paired difference. `state` is
    the job's; there are no figures before it has some of both."""

    job: str
    state: str
    orchestrator: str
    tasks: int
    without: float | None
    with_lessons: float | None
    difference: Interval | None
    ended_at: str


def find_gain(runtime: Runtime, pool: str) -> MemoryGain | None:
    """The newest measurement on a pool; None where there is none."""
    for row in runtime.jobs.all():
        recipe = load_job_recipe(runtime.jobs, row.id) if row.name == NAME else None
        if recipe is not None and recipe.pool == pool:
            return _build_gain(runtime, row, recipe)
    return None


def _build_gain(runtime: Runtime, row: JobRow, recipe: Recipe) -> MemoryGain:
    results = read_results(runtime.jobs.folder(row.id).results)
    cells = {
        condition: group_by_task([line for line in results if line.condition == condition], across_conditions=True)
        for condition in (SEEN, MEMORY)
    }
    without, with_lessons = cells[SEEN], cells[MEMORY]
    both = bool(without and with_lessons)
    paired = compute_difference(with_lessons, without) if both else None
    names = recipe.evaluate.orchestrators if recipe.evaluate else ()
    return MemoryGain(
        job=row.id,
        state=row.state,
        orchestrator=", ".join(map(label_orchestrator, names)),
        tasks=paired.tasks if paired else 0,
        without=estimate_mean(without).mean if both else None,
        with_lessons=estimate_mean(with_lessons).mean if both else None,
        difference=(paired.difference.mean, paired.difference.low, paired.difference.high) if paired else None,
        ended_at=isoformat(row.ended_at) or "",
    )


def make_gain_recipe(pool: Pool, orchestrator: str, max_cost: float | None) -> Recipe:
    """The evaluation that measures it. Raises InvalidPool where it has no held-out tasks, or nobody reads lessons."""
    if not any(task.ref.split == "test" for task in list_own_tasks(pool.name)):
        problem = "the pool has no held-out tasks of its own: write some on the Train page (Ask in your words)"
        raise InvalidPool([("", f"{problem}, or: podium tasks add --pool {pool.name} --split test")])
    agents = pool.agents()
    if not orchestrator and not agents:
        problem = "no language model in this pool can orchestrate, and nothing else reads lessons"
        raise InvalidPool([("", f"{problem}: add an agent, or name a checkpoint that reads the pool")])
    section = {
        "orchestrators": [orchestrator or write_model_name(agents[0].name)],
        "source": f"{SOURCE}{pool.name}",
        "count": COUNT,
        "conditions": [SEEN, MEMORY],
    }
    if max_cost is not None:
        section["max_cost"] = max_cost
    title = f"The failure memory of {pool.name}: with and without"
    return parse_draft({"recipe": {"name": NAME, "title": title, "pool": pool.name, "evaluate": section}})

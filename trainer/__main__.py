"""`python -m trainer`: look at tasks, evaluate orchestrators."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.errors import OrchestratorError
from pool_registry.errors import PoolError
from trainer.errors import TrainerError
from trainer.tasks import SUITES, find_task, suite_named
from trainer.tasks.task import Task

if TYPE_CHECKING:
    from orchestrator.trace import Store
    from pool_registry.pool import Pool
    from trainer.evaluate import Evaluation

app = typer.Typer(
    help="Tasks with exact answers, and evaluations of orchestrators.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
tasks_app = typer.Typer(help="Look at generated tasks.", no_args_is_help=True)
app.add_typer(tasks_app, name="tasks")

FAMILIES = ", ".join(SUITES)
Split = Annotated[str, typer.Option(help="train, validation or test.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable.")]


@tasks_app.command("list")
def list_families() -> None:
    """The families, their levels and the workers they need."""
    from trainer.printed import families, show

    show(families())


@tasks_app.command("show")
def show_task(
    family: Annotated[str, typer.Option(help=f"One of: {FAMILIES}.")],
    level: Annotated[int, typer.Option(help="1, 2 or 3.")] = 1,
    index: Annotated[int, typer.Option(help="Which task, from 0.")] = 0,
    split: Split = "test",
    as_json: Json = False,
) -> None:
    """Print a task: its query, its answer and the oracle's plan."""
    from trainer.printed import show, task_document, task_text

    task = find_task(family, level, split, index)
    if as_json:
        typer.echo(json.dumps(task_document(task), indent=1, ensure_ascii=False))
    else:
        show(task_text(task))


@app.command()
def evaluate(
    orchestrator: Annotated[
        str, typer.Option(help="oracle, direct[:AGENT], fan_out, pipeline, model[:AGENT[:DIALECT]].")
    ],
    family: Annotated[str, typer.Option(help=f"One of: {FAMILIES}; or all.")],
    level: Annotated[int, typer.Option(help="1, 2 or 3; 0 for all.")] = 1,
    split: Split = "test",
    tasks: Annotated[int, typer.Option(help="How many of each level, from index 0 on.", min=1, max=100_000)] = 20,
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    concurrency: Annotated[int, typer.Option(help="Episodes at a time.", min=1, max=256)] = 8,
    as_json: Json = False,
    home: Annotated[str | None, typer.Option("--home", help="Data folder.")] = None,
) -> None:
    """Score an orchestrator on tasks with known answers; every episode is recorded."""
    from trainer.printed import evaluation_text, show

    chosen = chosen_tasks(family, level, split, tasks)
    result = asyncio.run(run_evaluation(orchestrator, chosen, pool, concurrency, home))
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        show(evaluation_text(result))


def chosen_tasks(family: str, level: int, split: str, count: int) -> list[Task]:
    """The first tasks of every wanted cell. Raises UnknownTask."""
    suites = list(SUITES.values()) if family == "all" else [suite_named(family)]
    cells = [(suite, each) for suite in suites for each in (suite.levels if level == 0 else (level,))]
    return [suite.task(each, split, index) for suite, each in cells for index in range(count)]


async def run_evaluation(
    orchestrator: str, tasks: list[Task], pool: str, concurrency: int, home: str | None
) -> Evaluation:
    """Evaluate with the data folder's pool and traces. Returns when every event is on disk."""
    from orchestrator.trace import open_store
    from orchestrator.tuning import expect_many_episodes
    from pool_registry.home import find_home
    from pool_registry.live import live_pool
    from trainer.evaluate import evaluate as evaluate_tasks

    expect_many_episodes()
    store = open_store(find_home(home))
    try:
        async with live_pool(seeded_pool(store, pool)) as live:
            result = await evaluate_tasks(orchestrator, tasks, live, sink=store.traces, concurrency=concurrency)
        store.traces.flush()
        return result
    finally:
        store.close()


def seeded_pool(store: Store, name: str) -> Pool:
    """The pool called `name`; the starter pool is there without having been saved."""
    from pool_registry.starter import starter_pool

    if name == "starter" and name not in store.pools.names():
        store.pools.save(starter_pool())
    return store.pools.latest(name).pool


def main() -> None:
    """The command line; errors that a person can mend are one line on stderr and exit code 2."""
    try:
        app(prog_name="python -m trainer")
    except (TrainerError, OrchestratorError, PoolError) as error:
        typer.echo(f"podium: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()

"""`python -m trainer`: look at tasks, evaluate orchestrators."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Annotated, Any

import typer

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.errors import OrchestratorError
from pool_registry.actions import as_text
from pool_registry.errors import PoolError
from trainer.errors import TrainerError
from trainer.tasks import SUITES, find_task, suite_named
from trainer.tasks.task import Task

app = typer.Typer(
    help="Tasks with exact answers, and evaluations of orchestrators.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
tasks_app = typer.Typer(help="Look at generated tasks.", no_args_is_help=True)
app.add_typer(tasks_app, name="tasks")

Family = Annotated[str, typer.Option(help=f"One of: {', '.join(SUITES)}.")]
Level = Annotated[int, typer.Option(help="1, 2 or 3.")]
Split = Annotated[str, typer.Option(help="train, validation or test.")]


@tasks_app.command("list")
def list_families() -> None:
    """The families, their levels and the workers they need."""
    for name, suite in SUITES.items():
        levels = ", ".join(map(str, suite.levels))
        typer.echo(f"{name:8} levels {levels}; needs {', '.join(suite.workers)}\n         {suite.description}")


@tasks_app.command()
def show(
    family: Family,
    level: Level = 1,
    index: Annotated[int, typer.Option(help="Which task, from 0.")] = 0,
    split: Split = "test",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Print a task: its query, its answer and the oracle's plan."""
    task = find_task(family, level, split, index)
    typer.echo(json.dumps(_document(task), indent=1, ensure_ascii=False) if as_json else _described(task))


@app.command()
def evaluate(
    orchestrator: Annotated[
        str, typer.Option(help="oracle, direct[:AGENT], fan_out, pipeline, model[:AGENT[:DIALECT]].")
    ],
    family: Family,
    level: Level = 1,
    split: Split = "test",
    tasks: Annotated[int, typer.Option(help="How many, from index 0 on.", min=1, max=100_000)] = 20,
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    concurrency: Annotated[int, typer.Option(help="Episodes at a time.", min=1, max=256)] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    home: Annotated[str | None, typer.Option("--home", help="Data folder.")] = None,
) -> None:
    """Score an orchestrator on tasks with known answers; every episode is recorded."""
    from trainer.evaluate import evaluate as run_evaluation

    suite = suite_named(family)
    chosen = [suite.task(level, split, index) for index in range(tasks)]

    async def run() -> Any:
        from orchestrator.trace import open_store
        from pool_registry.home import find_home
        from pool_registry.live import live_pool

        store = open_store(find_home(home))
        try:
            async with live_pool(seeded_pool(store, pool)) as live:
                return await run_evaluation(orchestrator, chosen, live, sink=store.traces, concurrency=concurrency)
        finally:
            store.close()

    result = asyncio.run(run())
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
        return
    low, high = result.interval
    typer.echo(
        f"{orchestrator} on {family} level {level} ({split}, {tasks} tasks): {result.mean:.3f} "
        f"[{low:.3f}, {high:.3f}] in {result.wall_s:.1f} s\nsteps: {result.statuses}  outcomes: {result.outcomes}"
    )


def seeded_pool(store: Any, name: str) -> Any:
    """The pool called `name`; the starter pool is there without having been saved."""
    from pool_registry.starter import starter_pool

    if name == "starter" and name not in store.pools.names():
        store.pools.save(starter_pool())
    return store.pools.latest(name).pool


def _document(task: Task) -> dict[str, Any]:
    plan = PlanDialect().format(task.oracle_turn, ())
    ref = task.ref
    return {
        "family": ref.family,
        "level": ref.level,
        "split": ref.split,
        "index": ref.index,
        "query": task.query,
        "answer": task.expected,
        "plan": json.loads(plan),
    }


def _described(task: Task) -> str:
    ref = task.ref
    lines = [
        f"{ref.family} level {ref.level}, {ref.split} {ref.index}",
        f"Query:  {task.query}",
        f"Answer: {as_text(task.expected)}",
        "Oracle plan:",
    ]
    for step in task.oracle_turn.steps:
        seen = f"sees {', '.join(map(str, step.access))}" if step.access else "sees nothing"
        arguments = ", ".join(f"{name}: {as_text(value)}" for name, value in step.arguments.items())
        lines.append(f"  {step.id}. {step.worker:13} {seen:14} {arguments}")
    return "\n".join([*lines, f"  answer: {task.oracle_turn.answer}"])


def main() -> None:
    """The command line; errors that a person can mend are one line on stderr and exit code 2."""
    try:
        app()
    except (TrainerError, OrchestratorError, PoolError) as error:
        typer.echo(f"podium: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()

"""`python -m trainer regrade`: the verdicts of an evaluation by tasks that have changed since."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.options import HomeOption, JsonOption, open_jobs

if TYPE_CHECKING:
    from orchestrator.traces.store import Store
    from trainer.evaluation.regrading import Regrading
    from trainer.results.rows import ResultRow
    from trainer.tasks.task import Task

SHOWN = 20  # queries that changed sides


def regrade(
    job: Annotated[str, typer.Argument(help="A job that has evaluated.")],
    tasks: Annotated[
        str,
        typer.Option(
            help="The tasks with their new answers or verifiers: file:PATH, hub:OWNER/NAME or practice:POOL. "
            "Default: the source of the evaluation, as it is now."
        ),
    ] = "",
    asks_judges: Annotated[
        bool, typer.Option("--ask-judges", help="Ask the judges of tasks that have one: these calls cost.")
    ] = False,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Store the new verdicts; the old ones stay in before-N.jsonl."),
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Grade the stored answers of an evaluation again, with the verifiers of its tasks as they are now. No worker is
    called."""
    from trainer.evaluation.regrading import (
        find_task_source,
        keep_regrading,
        read_current_tasks,
        read_finished_results,
    )

    with open_jobs(home) as (store, jobs):
        row, folder, recipe = jobs.get(job), jobs.folder(job), jobs.recipe(job)
        rows = read_finished_results(folder, job, row.active)
        current = read_current_tasks(tasks or find_task_source(recipe), rows)
        regrading = asyncio.run(_regrade(rows, current, store, recipe.pool, asks_judges))
        if keep and regrading.changed_rows:
            keep_regrading(regrading, folder, store)
    if as_json:
        typer.echo(json.dumps(build_regrading_document(regrading), indent=1, ensure_ascii=False))
        return
    from trainer.cli.terminal_tables import print_rich, regrading_text

    print_rich(regrading_text(regrading, SHOWN))
    if regrading.changed_rows and not keep:
        typer.echo("Nothing was stored; --keep puts these verdicts in place of the old ones.")


async def _regrade(
    rows: list[ResultRow], tasks: Mapping[str, Task], store: Store, pool: str, asks_judges: bool
) -> Regrading:
    from pool_registry.calls.live_pool import live_pool
    from trainer.evaluation.regrading import regrade
    from trainer.run_recipe import load_pool

    async with live_pool(load_pool(store, pool)) as live:
        return await regrade(rows, tasks, store, live, asks_judges=asks_judges)


def build_regrading_document(regrading: Regrading) -> dict[str, object]:
    """Build the JSON document of a regrading. Scores are shares of tasks in [0, 1], intervals 95 % over tasks."""
    return {
        "episodes": len(regrading.after),
        "left": dict(regrading.left),
        "ranking": [
            {
                "orchestrator": change.orchestrator,
                "condition": change.condition,
                "before": change.before,
                "after": change.after,
                "difference": asdict(change.difference.difference),
            }
            for change in regrading.rank()
        ],
        "changed": [
            {"orchestrator": row.orchestrator, "query": row.query, "episode": row.episode, "correct": row.correct}
            for row in regrading.changed_rows
        ],
    }

"""The command `tasks make`: practice tasks for any pool."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from trainer.cli.options import HomeOption, JsonOption, open_data_folder


def make(
    pool: Annotated[str, typer.Option(help="Name of the pool.")],
    count: Annotated[int, typer.Option(help="How many tasks at most.", min=1, max=10_000)] = 100,
    max_steps: Annotated[int, typer.Option(help="Steps of a plan at most.", min=1, max=4)] = 4,
    allow: Annotated[
        list[str] | None, typer.Option(help="A worker that may be called although its kind may have effects.")
    ] = None,
    words: Annotated[str, typer.Option(help="An agent of the pool that words the queries.")] = "",
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The task file. Default: tasks/POOL.jsonl in the data folder.")
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Make practice tasks for a pool: queries with answers and reference plans, from calls that its workers answer.

    Agents and workers whose calls may have effects are left out; --allow NAME takes one in.
    """
    from pool_registry.calls.live_pool import live_pool
    from trainer.cli.terminal_tables import practice_text, print_rich
    from trainer.tasks.practice.make_tasks import (
        PracticeOptions,
        PracticeTasks,
        make_practice_tasks,
        save_practice_tasks,
    )
    from trainer.tasks.practice.recorded import list_recorded_arguments

    with open_data_folder(home) as store:
        chosen = store.pools.latest(pool).pool
        recorded = list_recorded_arguments(store.traces, pool)
        options = PracticeOptions(count, max_steps, seed, frozenset(allow or ()), words, recorded)

        async def draw() -> PracticeTasks:
            async with live_pool(chosen) as live:
                return await make_practice_tasks(live, options)

        tasks = asyncio.run(draw())
        file = out or store.home.root / "tasks" / f"{pool}.jsonl"
        save_practice_tasks(tasks, file)
    if as_json:
        document = {"file": str(file), "tasks": tasks.count_splits(), "calls": dict(tasks.calls)}
        typer.echo(json.dumps({**document, "left_out": dict(tasks.reasons)}, indent=1))
    else:
        print_rich(practice_text(tasks, file))

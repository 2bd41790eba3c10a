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
    from trainer.cli.terminal_tables import practice_text, print_rich
    from trainer.tasks.practice.make_tasks import PracticeOptions
    from trainer.tasks.practice.stored import find_practice_file, make_and_save

    with open_data_folder(home) as store:
        options = PracticeOptions(count, max_steps, seed, frozenset(allow or ()), words)
        file = out or find_practice_file(pool)
        tasks = asyncio.run(make_and_save(store, pool, options, file))
    if as_json:
        document = {"file": str(file), "tasks": tasks.count_splits(), "calls": dict(tasks.calls)}
        typer.echo(json.dumps({**document, "left_out": dict(tasks.reasons)}, indent=1))
    else:
        print_rich(practice_text(tasks, file))

"""What the commands `tasks check` and `tasks add` do with data sets of tool use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trainer.cli.options import open_data_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.tasks.sources.files.reader import ReadOptions

PREVIEW_POOL = "recorded"
SHOWN_PROBLEMS = 20


def check_tool_data(file: str, options: ReadOptions, answers: Sequence[str]) -> bool:
    """Show what a data set of tool use makes; False where the file is none. Exit code 2 when it makes no task."""
    from trainer.cli.terminal_tables import print_rich, task_file_text
    from trainer.tasks.tool_use.places import open_tool_data
    from trainer.tasks.tool_use.recorded_pool import make_recorded_pool

    data = open_tool_data(file, options, answers)
    if data is None:
        return False
    recorded = make_recorded_pool(data, PREVIEW_POOL)
    print_rich(task_file_text(data.name, recorded.read))
    for note in recorded.notes:
        typer.echo(note)
    if not any(line.task for line in recorded.read.lines):
        raise typer.Exit(2)
    typer.echo(f"Make it a pool of recorded tools with these tasks: podium tasks add --pool NEW --file {file}")
    return True


def add_tool_data(file: str, options: ReadOptions, answers: Sequence[str], pool: str, home: str | None) -> bool:
    """Make a pool of a data set of tool use, with its tasks; False where the file is none. Raises UnusableTasks where
    there is a pool of this name."""
    from trainer.errors import UnusableTasks
    from trainer.tasks.practice.stored import find_practice_file
    from trainer.tasks.tool_use.places import open_tool_data
    from trainer.tasks.tool_use.recorded_pool import keep_recorded_pool, make_recorded_pool

    with open_data_folder(home) as store:
        data = open_tool_data(file, options, answers)
        if data is None:
            return False
        if pool in store.pools.names():
            raise UnusableTasks(
                f"{file} holds calls of tools ({data.format}), and there is a pool {pool} already: give --pool a new "
                "name, and its tools become workers that replay their recorded answers"
            )
        recorded = make_recorded_pool(data, pool)
        typer.echo(recorded.read.form, err=True)
        problems = [f"{data.unit} {row.number}: {problem}" for row in recorded.read.lines for problem in row.problems]
        for problem in problems[:SHOWN_PROBLEMS]:
            typer.echo(problem, err=True)
        if len(problems) > SHOWN_PROBLEMS:
            typer.echo(f"{len(problems):,} problems; all of them: podium tasks check {file}", err=True)
        for note in recorded.notes:
            typer.echo(note, err=True)
        count = keep_recorded_pool(store, recorded)
        typer.echo(f"{count} added to {find_practice_file(pool)}, on the new pool {pool}")
    return True

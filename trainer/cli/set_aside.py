"""The command `tasks aside`: tasks that no improvement takes until a person has looked at them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from trainer.cli.candidates import ALL
from trainer.cli.options import HomeOption, JsonOption
from trainer.cli.practice import PoolOption, open_pool


def aside(
    pool: PoolOption,
    put_back: Annotated[list[str] | None, typer.Option(help="A task by its query, or all.")] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the tasks of a pool that no improvement takes, because candidates that learnt from them were refused, or put
    them back."""
    from trainer.improve.set_aside import REASON, list_set_aside
    from trainer.improve.set_aside import put_back as put_tasks_back

    with open_pool(pool, home) as store:
        queries = [line.query for line in list_set_aside(store.home, pool)]
        chosen = queries if ALL in (put_back or ()) else put_back or []
        count = put_tasks_back(store.home, pool, chosen) if chosen else 0
        queries = [line.query for line in list_set_aside(store.home, pool)]
    if as_json:
        typer.echo(json.dumps({"put_back": count, "set_aside": queries}, indent=1, ensure_ascii=False))
        return
    if put_back:
        typer.echo(f"{count} put back: the next improvement takes them.")
    typer.echo("\n".join([REASON, *queries]) if queries else f"No task of {pool} is set aside.")

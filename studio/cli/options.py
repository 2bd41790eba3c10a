"""Options that several commands share, and the store that they open."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.options import HomeOption, JsonOption

if TYPE_CHECKING:
    from orchestrator.traces.store import Store

__all__ = [
    "MAX_VERSION",
    "FinalizerOption",
    "HomeOption",
    "JsonOption",
    "MaxCostOption",
    "SeenByOption",
    "WithoutWorkerOption",
    "name_self",
    "open_prepared_store",
]

MAX_VERSION = 2**31 - 1  # of a pool: more fits no column of a database
FinalizerOption = Annotated[
    bool,
    typer.Option(help="Have the plan's answer put into words, by the pool's finalizer where it names one."),
]
WithoutWorkerOption = Annotated[
    list[str] | None,
    typer.Option(help="A worker that this run may not call. May be repeated."),
]
MaxCostOption = Annotated[
    float | None,
    typer.Option(help="Most US dollars that this run may cost; a call that might cost more than is left is not made."),
]
SeenByOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHOSE=NAME,...",
        help="The only workers that may see what a worker returns, or step 2 (2=NAME). None: crm=. May be repeated.",
    ),
]


def name_self() -> str:
    """Who acts from this shell: the account's name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name, as in some containers
        return "a person at the command line"


@contextmanager
def open_prepared_store(home: str | None) -> Iterator[Store]:
    """Make `home` this process's data folder and open its store, with the starter pool in it."""
    from studio.prepare import open_chosen_store

    store = open_chosen_store(home)
    try:
        yield store
    finally:
        store.close()

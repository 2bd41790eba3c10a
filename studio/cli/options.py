"""Options that several commands share, and the store that they open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.options import HomeOption, JsonOption

if TYPE_CHECKING:
    from orchestrator.traces.store import Store

__all__ = [
    "HomeOption",
    "JsonOption",
    "MaxCostOption",
    "SeenByOption",
    "WithoutWorkerOption",
    "open_prepared_store",
    "read_seen_by",
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


def read_seen_by(texts: Sequence[str]) -> dict[str, list[str]]:
    """Read who may see whose outputs, as typed on the command line. Raises InvalidRunLimits."""
    from pool_registry.errors import InvalidRunLimits

    seen_by: dict[str, list[str]] = {}
    for text in texts:
        source, equals, names = text.partition("=")
        if not (source.strip() and equals):
            raise InvalidRunLimits(
                "seen_by", f"--seen-by {text[:80]!r} names no readers; write WORKER=READER,READER, or WORKER= for none"
            )
        seen_by.setdefault(source.strip(), []).extend(name.strip() for name in names.split(",") if name.strip())
    return seen_by


@contextmanager
def open_prepared_store(home: str | None) -> Iterator[Store]:
    """Make `home` this process's data folder and open its store, with the starter pool in it."""
    from studio.prepare import open_chosen_store

    store = open_chosen_store(home)
    try:
        yield store
    finally:
        store.close()

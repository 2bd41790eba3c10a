"""Options that several commands share, and the data folder that they open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestrator.traces.store import Store
    from trainer.jobs.queue import JobStore

HomeOption = Annotated[
    str | None, typer.Option("--home", help="Data folder. Default: PODIUM_HOME, or the platform's user data folder.")
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without", help="A repair of a reader's turns that is off, or all: the model alone. May be repeated."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable.")]

EncodingOption = Annotated[
    str, typer.Option(help="The encoding of the file, such as cp1252. Default: found out, and said.")
]
QueryColumnOption = Annotated[str, typer.Option(help="The column of the queries. Default: known by its name.")]
AnswersOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A second file, or a folder, with the possible answers of a suite such as BFCL, or with descriptions of "
        "its functions; may be repeated."
    ),
]
AnswerColumnOption = Annotated[str, typer.Option(help="The column of the answers. Default: known by its name.")]


@contextmanager
def open_data_folder(home: str | None) -> Iterator[Store]:
    """Make `home` (default: PODIUM_HOME or the platform's folder) this process's data folder and open its store."""
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import choose_home

    store = open_store(choose_home(home))
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_jobs(home: str | None) -> Iterator[tuple[Store, JobStore]]:
    """Open the data folder's store and its queue of jobs."""
    from trainer.jobs.queue import JobStore

    with open_data_folder(home) as store:
        yield store, JobStore(store.engine, store.home)

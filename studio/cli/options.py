"""Options that several commands share, and the store that they open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainer.cli.options import HomeOption, JsonOption

if TYPE_CHECKING:
    from orchestrator.traces.store import Store

__all__ = ["HomeOption", "JsonOption", "open_prepared_store"]


@contextmanager
def open_prepared_store(home: str | None) -> Iterator[Store]:
    """Make `home` this process's data folder and open its store, with the starter pool in it."""
    from studio.prepare import open_chosen_store

    store = open_chosen_store(home)
    try:
        yield store
    finally:
        store.close()

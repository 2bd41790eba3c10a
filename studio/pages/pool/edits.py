"""Edits of a pool on its page, and what the page says of one that met another: both in words, or that they were put
together."""

from __future__ import annotations

from collections.abc import Callable

from pool_registry.pools.pool_diff import diff, summary
from pool_registry.pools.pool_merge import EditConflict
from pool_registry.storage.pool_store import SavedEdit
from studio.frame.commands import PageReply
from studio.pages.pool.schema import ConflictDocument, ConflictLine
from studio.pages.pool.version_diff import write_value

Edit = Callable[..., PageReply]  # changes a pool, saves it and answers with the page's new state


def build_conflict(conflict: EditConflict) -> ConflictDocument:
    """What both edits say, for a person to choose."""
    lines = [
        ConflictLine(
            worker=clash.worker, field=clash.field, theirs=write_value(clash.theirs), yours=write_value(clash.yours)
        )
        for clash in conflict.clashes
    ]
    return ConflictDocument(based_on=conflict.head.hash, lines=lines)


def describe_saved(saved: SavedEdit) -> str:
    """Say as which version an edit was saved, and what of others is in it, too."""
    message = f"Saved as version {saved.stored.version}"
    if not saved.is_merged:
        return message
    return f"{message}, together with what others have saved meanwhile: {summary(diff(saved.base, saved.before))}"

"""What the Pool page says of an edit that met another one: both in words, or that they were put together."""

from __future__ import annotations

from pool_registry.pool_diff import diff, summary
from pool_registry.pool_merge import EditConflict
from pool_registry.storage.pool_store import SavedEdit
from studio.pages.pool.schema import ConflictDocument, ConflictLine
from studio.pages.pool.version_diff import write_value


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

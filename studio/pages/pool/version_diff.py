"""Two versions of a pool side by side, as the page shows them: grouped by worker, every value as text."""

from __future__ import annotations

import json

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.pools.pool_diff import Change, diff
from studio.pages.pool.schema import FieldDifference, VersionDifference, WorkerDifference


def build_version_diff(before: Pool, after: Pool) -> VersionDifference:
    """What differs: workers in the order of their first change, and fields of the pool itself."""
    workers: dict[str, WorkerDifference] = {}
    pool: list[FieldDifference] = []
    for change in diff(before, after):
        if not change.worker:
            pool.append(_build_field(change))
        elif not change.field:
            workers[change.worker] = _build_whole(change)
        else:
            changed = WorkerDifference(name=change.worker, change="changed", about="", fields=[])
            workers.setdefault(change.worker, changed).fields.append(_build_field(change))
    return VersionDifference(workers=list(workers.values()), pool=pool)


def _build_whole(change: Change) -> WorkerDifference:
    """A worker that came or went."""
    spec = change.after if change.what == "added" else change.before
    about = f"{spec['kind']}: {spec['description']}" if isinstance(spec, dict) else ""
    return WorkerDifference(name=change.worker, change=change.what, about=about, fields=[])


def _build_field(change: Change) -> FieldDifference:
    return FieldDifference(field=change.field, before=write_value(change.before), after=write_value(change.after))


def write_value(value: JsonValue) -> str | None:
    """Return text as it is, everything else as JSON; None stands for a field that is not set."""
    return value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False)

"""Two versions of a pool side by side, as the page shows them: grouped by worker, every value as text."""

from __future__ import annotations

import json
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.pool_diff import Change, diff


def build_version_diff(before: Pool, after: Pool) -> dict[str, Any]:
    """What differs: workers in the order of their first change, and fields of the pool itself."""
    workers: dict[str, dict[str, Any]] = {}
    pool: list[dict[str, str | None]] = []
    for change in diff(before, after):
        if not change.worker:
            pool.append(_field(change))
        elif not change.field:
            workers[change.worker] = _whole(change)
        else:
            entry = {"name": change.worker, "change": "changed", "about": "", "fields": []}
            workers.setdefault(change.worker, entry)["fields"].append(_field(change))
    return {"workers": list(workers.values()), "pool": pool}


def _whole(change: Change) -> dict[str, Any]:
    """A worker that came or went."""
    spec = change.after if change.what == "added" else change.before
    about = f"{spec['kind']}: {spec['description']}" if isinstance(spec, dict) else ""
    return {"name": change.worker, "change": change.what, "about": about, "fields": []}


def _field(change: Change) -> dict[str, str | None]:
    return {"field": change.field, "before": _as_text(change.before), "after": _as_text(change.after)}


def _as_text(value: JsonValue) -> str | None:
    """Text as it is, everything else as JSON; None stands for a field that is not set."""
    return value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False)

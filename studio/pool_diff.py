"""Two versions of a pool side by side: which workers came, went or changed, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec


def diff_document(before: Pool, after: Pool) -> dict[str, Any]:
    """What differs, for the page: workers in the order of the newer pool, then those that are gone."""
    old = {spec.name: spec for spec in before.workers}
    new = {spec.name: spec for spec in after.workers}
    workers = [_worker(old.get(name), spec) for name, spec in new.items() if old.get(name) != spec]
    workers += [_worker(spec, None) for name, spec in old.items() if name not in new]
    plain = {"workers", "name"}
    pool = _fields(before.model_dump(mode="json", exclude=plain), after.model_dump(mode="json", exclude=plain))
    return {"workers": workers, "pool": pool}


def _worker(before: WorkerSpec | None, after: WorkerSpec | None) -> dict[str, Any]:
    spec = after or before
    assert spec is not None, "one of the two is there"
    if before is None or after is None:
        change = "added" if before is None else "removed"
        return {"name": spec.name, "change": change, "about": f"{spec.kind}: {spec.description}", "fields": []}
    fields = _fields(before.model_dump(mode="json"), after.model_dump(mode="json"))
    return {"name": spec.name, "change": "changed", "about": "", "fields": fields}


def _fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every leaf that differs; None stands for a field that is not there."""
    old, new = dict(_leaves("", before)), dict(_leaves("", after))
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def _leaves(prefix: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """`config.base_url` and the like, with values as text."""
    for name, inner in value.items():
        if isinstance(inner, Mapping) and inner and all(isinstance(key, str) for key in inner):
            yield from _leaves(f"{prefix}{name}.", inner)
        elif inner is not None:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)

"""What differs between two versions of a pool, as data: for the page's view and its one-line summaries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

What = Literal["added", "removed", "changed"]
MAX_NAMES = 12  # in a summary


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    `worker` is the worker's name (the new one when it was renamed), "" for the pool itself. `field` is the path
    inside it, such as `config.server.command`, "" for a worker as a whole; the pool's own are `name`,
    `description`, `order` (two lists of names) and `limits.…`. What is absent on one side is None there.
    """

    what: What
    worker: str
    field: str
    before: JsonValue = None
    after: JsonValue = None


def diff(before: Pool, after: Pool) -> tuple[Change, ...]:
    """List every difference; empty exactly when the two pools have the same content."""
    return (*_pool_changes(before, after), *_worker_changes(before, after))


def summary(changes: Sequence[Change]) -> str:
    """Summarize the changes in a line: "added sql, changed coder, changed limits"; "no change" when there is none."""
    parts: list[str] = []
    for what in ("added", "removed"):
        names = [change.worker for change in changes if change.what == what and change.worker and not change.field]
        parts += [f"{what} {_list_names(names)}"] if names else []
    renamed = {change.worker: change.before for change in changes if change.worker and change.field == "name"}
    parts += [f"renamed {old} to {new}" for new, old in renamed.items()]
    edited = dict.fromkeys(change.worker for change in changes if change.worker and change.field)
    others = [name for name in edited if name not in renamed]
    parts += [f"changed {_list_names(others)}"] if others else []
    own = dict.fromkeys(change.field.partition(".")[0] for change in changes if not change.worker)
    parts += [f"changed {name}" for name in own]
    return ", ".join(parts) or "no change"


def _list_names(names: Sequence[str]) -> str:
    """Names, and how many more there are."""
    more = len(names) - MAX_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MAX_NAMES])} and {more:,} more"


def diff_workers(before: WorkerSpec, after: WorkerSpec) -> tuple[Change, ...]:
    """List every field in which two states of a worker differ."""
    if before.model_dump_json() == after.model_dump_json():  # most are: a page lists what each of many versions changed
        return ()
    return tuple(_field_changes(after.name, "", before.model_dump(mode="json"), after.model_dump(mode="json")))


def _pool_changes(before: Pool, after: Pool) -> Iterator[Change]:
    old, new = (pool.model_dump(mode="json", exclude={"workers"}) for pool in (before, after))
    yield from _field_changes("", "", old, new)


def _worker_changes(before: Pool, after: Pool) -> Iterator[Change]:
    old = {spec.name: spec for spec in before.workers}
    new = {spec.name: spec for spec in after.workers}
    renamed = _find_renames(old, new)
    for name, spec in old.items():
        if name not in new and name not in renamed.values():
            yield Change("removed", name, "", before=spec.model_dump(mode="json"))
    for name, spec in new.items():
        earlier = old.get(renamed.get(name, name))
        if earlier is None:
            yield Change("added", name, "", after=spec.model_dump(mode="json"))
        elif earlier.model_dump_json() != spec.model_dump_json():  # quick, and most are the same
            yield from diff_workers(earlier, spec)
    # The order counts for workers of both sides alone: adding or removing one is no other order.
    kept = [renamed.get(name, name) for name in new if renamed.get(name, name) in old]
    names_before = [name for name in old if name in kept]
    if kept != names_before:
        yield Change("changed", "", "order", before=names_before, after=kept)


def _find_renames(old: Mapping[str, WorkerSpec], new: Mapping[str, WorkerSpec]) -> dict[str, str]:
    """Map new to old names of workers that differ in nothing else."""
    gone = {_but_name(spec): name for name, spec in old.items() if name not in new}
    renames: dict[str, str] = {}
    for name, spec in new.items():
        if name not in old and (earlier := gone.pop(_but_name(spec), None)) is not None:
            renames[name] = earlier
    return renames


def _but_name(spec: WorkerSpec) -> str:
    return _canonical(spec.model_dump(mode="json", exclude={"name"}))


def _field_changes(worker: str, path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Compare field by field, into nested objects; lists are compared as a whole."""
    for key in dict.fromkeys([*old, *new]):
        field = f"{path}{key}"
        if key not in new:
            yield Change("removed", worker, field, before=old[key])
        elif key not in old:
            yield Change("added", worker, field, after=new[key])
        elif isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            yield from _field_changes(worker, f"{field}.", old[key], new[key])
        elif _canonical(old[key]) != _canonical(new[key]):
            yield Change("changed", worker, field, before=old[key], after=new[key])


def _canonical(value: JsonValue) -> str:
    """Return a text that is equal exactly when the JSON is: in Python 1, 1.0 and true are equal."""
    return json.dumps(value, sort_keys=True)

"""Merges an edit of a pool with what others have saved since it was begun: three ways, worker by worker.

Edits of different workers, and of different settings of the pool, are both kept. Two edits of one worker, or of one
setting, that say different things are refused, with what each of them says. The mode counts as one setting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.pool import Limits, Pool, check_pool
from pool_registry.pools.pool_diff import diff_workers
from pool_registry.worker import WorkerSpec

MAX_VALUE_CHARS = 200  # of a value in a sentence


@dataclass(frozen=True, slots=True)
class Clash:
    """What two edits say of one thing. `worker` is "" for the pool itself, `field` is "" for a worker as a whole, and
    None stands for what is not there."""

    worker: str
    field: str
    theirs: JsonValue
    yours: JsonValue

    def describe(self) -> str:
        """Say both in one sentence."""
        what = ": ".join(part for part in (self.worker, self.field) if part)
        return f"{what}: the other edit says {_quote(self.theirs)}, yours says {_quote(self.yours)}"


class EditConflict(InvalidPool):
    """Another edit of the same worker or setting was saved first. `head` is the pool with that edit."""

    def __init__(self, clashes: tuple[Clash, ...], head: Pool) -> None:
        self.clashes, self.head = clashes, head
        both = "; ".join(clash.describe() for clash in clashes)
        sentence = (
            f"not saved, because somebody else has changed the same meanwhile. {both}. Take theirs, or save again"
        )
        super().__init__([("", sentence)])


def merge_edits(base: Pool, edit: Pool, head: Pool) -> Pool:
    """Return `head` with everything that `edit` changes of `base`.

    Raises EditConflict, and InvalidPool where the two edits do not fit together.
    """
    if head.hash == base.hash:
        return edit
    steps = _WorkerSteps(base, edit, head)
    clashes = (*_find_setting_clashes(base, edit, head), *steps.find_clashes())
    if clashes:
        raise EditConflict(clashes, head)
    settings = {name: _choose(*values) for name, values in _list_settings(base, edit, head)}
    limits = Limits.model_validate({name: settings.pop(f"limits.{name}") for name in Limits.model_fields})
    merged = head.model_copy(update={**settings, "limits": limits, "workers": steps.merge()})
    _check_together(merged, head)
    return merged


class _WorkerSteps:
    """What became of the workers of `base` in `edit` and in `head`."""

    def __init__(self, base: Pool, edit: Pool, head: Pool) -> None:
        self._base, self._head, self._edit = base, head, edit
        self._mine = {spec.name: _find_successor(base, edit, place) for place, spec in enumerate(base.workers)}
        kept = {spec.name for spec in self._mine.values() if spec is not None}
        self._added = {spec.name: spec for spec in edit.workers if spec.name not in kept}

    def find_clashes(self) -> Iterator[Clash]:
        for was in self._base.workers:
            mine, theirs = self._mine[was.name], self._head.find_worker(was.name)
            if _all_differ(was, mine, theirs):
                yield from _compare_specs(was.name, theirs, mine)
        for mine in self._list_new():
            theirs = self._head.find_worker(mine.name)
            if theirs is not None and not _is_same(theirs, mine):
                yield from _compare_specs(mine.name, theirs, mine)

    def _list_new(self) -> list[WorkerSpec]:
        """The workers of the edit whose names the base does not have."""
        return [spec for spec in self._edit.workers if self._base.find_worker(spec.name) is None]

    def merge(self) -> tuple[WorkerSpec, ...]:
        """The workers of `head`, each as the edit has it where the edit changes it, and those that the edit adds."""
        merged: dict[str, WorkerSpec] = {}
        for theirs in self._head.workers:
            was = self._base.find_worker(theirs.name)
            chosen = theirs if was is None else _choose(was, self._mine[was.name], theirs)
            if chosen is not None:
                merged[chosen.name] = chosen
        merged |= {name: spec for name, spec in self._added.items() if name not in merged}
        return tuple(merged[name] for name in self._order(merged))

    def _order(self, names: Mapping[str, WorkerSpec]) -> list[str]:
        """The order of `head`, unless the edit has another one than `base`: then the edit's, and others behind it."""
        old = [spec.name for spec in self._base.workers]
        now = [spec.name for spec in self._edit.workers]
        if [name for name in old if name in now] == [name for name in now if name in old]:
            return list(names)
        return [name for name in dict.fromkeys([*now, *names]) if name in names]


def _find_successor(base: Pool, edit: Pool, place: int) -> WorkerSpec | None:
    """What became of the worker of `base` at a place: a new name at the same place is the same worker, renamed."""
    name = base.workers[place].name
    same = edit.find_worker(name)
    if same is not None or len(edit.workers) != len(base.workers):
        return same
    other = edit.workers[place]
    return other if base.find_worker(other.name) is None else None


def _compare_specs(name: str, theirs: WorkerSpec | None, mine: WorkerSpec | None) -> Iterator[Clash]:
    if theirs is not None and mine is not None:
        for change in diff_workers(theirs, mine):
            yield Clash(name, change.field, change.before, change.after)
    else:
        yield Clash(name, "", _dump(theirs), _dump(mine))


def _dump(spec: WorkerSpec | None) -> JsonValue:
    return None if spec is None else spec.model_dump(mode="json", exclude_defaults=True)


def _list_settings(base: Pool, edit: Pool, head: Pool) -> Iterator[tuple[str, tuple[Any, Any, Any]]]:
    """Every setting of the pool itself in the three."""
    for name in ("description", "mode"):
        yield name, (getattr(base, name), getattr(edit, name), getattr(head, name))
    for name in Limits.model_fields:
        yield f"limits.{name}", (getattr(base.limits, name), getattr(edit.limits, name), getattr(head.limits, name))


def _find_setting_clashes(base: Pool, edit: Pool, head: Pool) -> Iterator[Clash]:
    for name, (was, mine, theirs) in _list_settings(base, edit, head):
        if _all_differ(was, mine, theirs):
            yield Clash("", name, _as_json(theirs), _as_json(mine))


def _choose(was: Any, mine: Any, theirs: Any) -> Any:
    return theirs if _is_same(mine, was) else mine


def _all_differ(was: Any, mine: Any, theirs: Any) -> bool:
    return not (_is_same(was, mine) or _is_same(was, theirs) or _is_same(mine, theirs))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: in Python 1, 1.0 and true are equal."""
    return json.dumps(_as_json(one), sort_keys=True) == json.dumps(_as_json(other), sort_keys=True)


def _as_json(value: Any) -> JsonValue:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def _check_together(merged: Pool, head: Pool) -> None:
    """Raise InvalidPool where each edit is right by itself, such as a fallback on a worker that the other removed."""
    try:
        check_pool(merged, head)
    except InvalidPool as error:
        reasons = "; ".join(what for _, what in error.problems)
        problem = f"not saved, because it does not fit with what somebody else has saved meanwhile: {reasons}"
        raise InvalidPool([("", problem)]) from error


def _quote(value: JsonValue) -> str:
    if value is None:
        return "nothing (it is not there)"
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= MAX_VALUE_CHARS else f"{written[:MAX_VALUE_CHARS]} …"

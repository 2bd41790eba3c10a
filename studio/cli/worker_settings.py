"""`--set FIELD=VALUE`: any field of a worker, of its kind, or of a pool's limits, from the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS
from pool_registry.pool import Limits
from pool_registry.worker import WorkerSpec

CONFIG = "config"
HELP = "FIELD=VALUE of the worker or of its kind, such as price_in=0.5 or model=m; VALUE may be JSON. May be repeated."


def apply_settings(document: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A worker's document with these settings. What a value may be is checked where the worker is saved.

    A dot leads into a field: `config.KEY` is a field of the kind, and KEY alone is, too, where the worker has no such
    field. Raises InvalidPool, which lists the fields, where there is none of that name.
    """
    changed: dict[str, Any] = json.loads(json.dumps(document))
    for setting in settings:
        path, value = _read_setting(setting)
        _set_field(changed, _find_place(path.split("."), str(document["kind"])), value, setting)
    return changed


def apply_limit_settings(limits: Limits, settings: Sequence[str]) -> dict[str, Any]:
    """A pool's limits with these settings. Raises InvalidPool, which lists them, where there is none of a name."""
    changed = limits.model_dump(mode="json")
    for setting in settings:
        field, value = _read_setting(setting)
        if field not in changed:
            raise InvalidPool([("", f"there is no limit {field[:80]!r}: a pool has {', '.join(changed)}")])
        changed[field] = value
    return changed


def _read_setting(setting: str) -> tuple[str, Any]:
    """The field and its value: JSON where it is some, else the text."""
    path, equals, value = setting.partition("=")
    if not (path and equals):
        raise InvalidPool([("", f"--set takes FIELD=VALUE, not {setting[:80]!r}")])
    try:
        return path, json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return path, value


def _find_place(path: list[str], kind: str) -> list[str]:
    """Where a field stands in a worker's document. Raises InvalidPool where the worker and its kind have none."""
    own = [name for name in WorkerSpec.model_fields if name not in ("kind", CONFIG)]
    if path[0] in own or kind not in KINDS:  # an unknown kind is refused with the kinds that there are
        return path
    of_kind = list(KINDS[kind].load().Config.model_fields)
    key = path[1:] if path[0] == CONFIG else path
    if key and key[0] in of_kind:
        return [CONFIG, *key]
    has = f"a worker has {', '.join(own)}; the kind {kind} has {', '.join(of_kind) or 'none'}"
    raise InvalidPool([("", f"there is no field {'.'.join(path)[:80]!r}: {has}")])


def _set_field(document: dict[str, Any], place: Sequence[str], value: Any, setting: str) -> None:
    *outer, last = place
    for name in outer:
        inner = document.setdefault(name, {})
        if inner is None:
            inner = document[name] = {}
        if not isinstance(inner, dict):
            raise InvalidPool([("", f"--set {setting[:80]}: {name} holds {json.dumps(inner)[:80]} and has no fields")])
        document = inner
    document[last] = value

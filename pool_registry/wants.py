"""What a worker wants of this machine and of its owner, in sentences that a person confirms before it is switched on.

A pool's file may come from anyone. It can name any variable as its key and any address to send it to, any program,
function, file and private address. So whatever wants something arrives switched off, and a sentence holds both halves:
the reference and the address that it would go to. Where either changes, it is another sentence, and asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.kinds import kind_of, load_config
from pool_registry.network.address_policy import is_own_host
from pool_registry.pool import Pool, mend_finalizer
from pool_registry.secrets import list_references
from pool_registry.worker import WorkerSpec

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def list_wants(spec: WorkerSpec) -> list[str]:
    """What a worker wants, a sentence each; none for one that only computes or asks public addresses without a key."""
    try:
        config = load_config(spec)
    except InvalidPool:
        return []  # it cannot be opened either
    worker = kind_of(spec).load()
    origins = sorted({origin for text in _texts(spec.config) if (origin := find_origin(text))})
    sentences = [f"starts {program} on this machine, with your rights"] if (program := worker.runs(config)) else []
    receivers = [program] if program else origins or [worker.sends_to(config) or "an address that it does not name"]
    for reference in list_references(spec.config):
        sentences += [f"sends {reference} to {receiver}" for receiver in receivers]
    sentences += [f"reads {file} on this machine" for file in worker.reads(config)]
    sentences += [f"reaches {origin}, on this machine or in its network" for origin in origins if _is_own(origin)]
    if any(name == "allow_private" and value is True for name, value in _fields(spec.config)):
        sentences.append("may reach private addresses: this machine's network")
    if any(name == "network" and value is True for name, value in _fields(spec.config)):
        sentences.append("may reach any address from the sandbox, this machine's own too")
    for inner in worker.inner_workers(config):
        sentences += list_wants(inner)
    return list(dict.fromkeys(sentences))


def list_new_wants(spec: WorkerSpec, before: WorkerSpec | None) -> list[str]:
    """What an enabled worker wants that it did not want before, or while it was switched off."""
    if not spec.enabled:
        return []
    old = list_wants(before) if before is not None and before.enabled else []
    return [want for want in list_wants(spec) if want not in old]


def disarm_pool(pool: Pool) -> tuple[Pool, dict[str, list[str]], tuple[str, ...]]:
    """Switch off the workers of a foreign pool that want something.

    Returns the pool, what each of them wants, and what else has changed.
    """
    wants = {spec.name: sentences for spec in pool.workers if (sentences := list_wants(spec))}
    notes = []
    workers: list[WorkerSpec] = []
    for spec in pool.workers:
        enabled, fallback = spec.enabled and spec.name not in wants, spec.fallback
        if enabled and fallback in wants:
            notes.append(f"{spec.name} no longer falls back on {fallback}, which is off")
            fallback = ""
        workers.append(spec.model_copy(update={"enabled": enabled, "fallback": fallback}))
    disarmed = {spec.name: wants[spec.name] for spec in pool.switched_on if spec.name in wants}
    if pool.limits.finalizer in wants:
        notes.append(f"{pool.limits.finalizer}, which is off, no longer writes the final answers")
    return mend_finalizer(pool.model_copy(update={"workers": tuple(workers)})), disarmed, tuple(notes)


def find_origin(text: str) -> str:
    """The scheme, host and port of a URL; "" for any other text."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or PORTS[parts.scheme]}"


def _is_own(origin: str) -> bool:
    return is_own_host(urlsplit(origin).hostname or "")


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _fields(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name), item
            yield from _fields(item)

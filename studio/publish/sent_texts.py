"""The texts of a pool that a publication sends and no scan can judge: a person reads them first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.secrets import ends_in_reference
from pool_registry.starter import starter_pool

# Parts of a configuration that describe calls: names, types and examples of arguments, which its card shows anyway.
OF_CALLS = {"parameters", "properties", "output", "sample", "json_schema"}
SENT = {"headers", "extra", "args", "env", "query", "body", "url", "base_url", "server", "command"}
LEAST_WORDS = 4  # of a text elsewhere: fewer are a name or a choice


@dataclass(frozen=True, slots=True)
class SentText:
    """One text of a worker's configuration; `field` is where it stands, such as headers.X-Team."""

    worker: str
    field: str
    text: str


def list_sent_texts(pool: Pool) -> list[SentText]:
    """The roles, headers, request fields, addresses and arguments of programs in a pool, as they would be sent; not
    those that ship with Podium."""
    shipped = set(_list_texts(starter_pool()))
    return [text for text in _list_texts(pool) if text not in shipped]


def _list_texts(pool: Pool) -> Iterator[SentText]:
    for spec in pool.workers:
        yield from (SentText(spec.name, field, text) for field, text in _walk(dict(spec.config), "", False))


def _walk(value: JsonValue, field: str, is_sent: bool) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if value.strip() and not ends_in_reference(value) and (is_sent or len(value.split()) >= LEAST_WORDS):
            yield field, value
        return
    items = value.items() if isinstance(value, Mapping) else enumerate(value, 1) if isinstance(value, list) else ()
    for name, item in items:
        if name not in OF_CALLS:
            yield from _walk(item, f"{field}.{name}" if field else str(name), is_sent or name in SENT)

"""What a row of the table gets (a text and settings) and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from pool_registry.actions import JsonValue
from pool_registry.imports import Offer, worker_name
from pool_registry.pasted.keys import KeyReferences
from pool_registry.worker import WorkerSpec

Setting = Literal["key", "server", "env", "headers", "name", "private", "model"]


class UnfitText(Exception):
    """A part of what was pasted cannot become workers; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class PastedText:
    """A text without fences and marks around it, and the JSON or TOML that it is; None where it is neither."""

    text: str
    document: JsonValue = None


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """What a person sets beside a text. `key` is a reference, `server` where its operations are called, `model` the
    agent whose model an agent runs on, `source` the address that the text came from; `keys` puts references in place
    of the keys in the text."""

    key: str = ""
    server: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    private: bool = False
    model: WorkerSpec | None = None
    source: str = ""
    keys: KeyReferences = field(default_factory=KeyReferences)


@dataclass(frozen=True, slots=True)
class Source:
    """What has to be asked before its workers are known: `action` says what asking does, `fields` what it reaches, in
    the words of the importers' forms. `list_offers` raises InvalidPool and WorkerFault."""

    name: str
    action: str
    fields: Mapping[str, JsonValue]
    list_offers: Callable[[], Coroutine[Any, Any, Sequence[Offer]]]


@dataclass(frozen=True, slots=True)
class Recognition:
    """What a text is: workers that are known at once, and sources that have to be asked. `keys` is how many keys stood
    in it."""

    offers: tuple[Offer, ...] = ()
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    keys: int = 0


@dataclass(frozen=True, slots=True)
class PastedKind:
    """A row: what it is called, the settings that it takes, and how a text is recognised and read. `read` raises
    UnfitText and InvalidPool. Only rows that are `safe` are read from an address: they start nothing."""

    name: str
    label: str
    settings: tuple[Setting, ...]
    recognise: Callable[[PastedText], bool]
    read: Callable[[PastedText, ImportSettings], Recognition]
    safe: bool = False


def check_address(url: str) -> str:
    """A URL whose parts can be read. Raises UnfitText."""
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise UnfitText(f"{url[:200]} is no address: {error}") from error
    return url


def refuse(name: str, kind: str, problem: str) -> Offer:
    """An offer that cannot be added, with the reason."""
    return Offer(WorkerSpec(name=worker_name(name), kind=kind, description=problem[:2000]), problem)

"""What a page or a client sends, with a long text in place of each of its texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tests.trust.readers import as_table, as_words

Fill = Callable[[str], Any]  # what is sent, with a text in its place
OTHERS = (None, True, 1, ["x"], "x")  # what a field may be that nobody has a value for
FORMS: tuple[Fill, ...] = (str, as_words, as_table)  # a text, many texts, many names


class FieldsRead(Mapping[str, Any]):
    """Fields that note which of them a command reads, with `other` for those that `values` does not have."""

    def __init__(self, values: Mapping[str, Any], other: Any = "x") -> None:
        self._values, self._other = values, other
        self.names: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.names.setdefault(name, self._values.get(name, self._other))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def list_fields(command: Callable[[Mapping[str, Any]], object], values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a command reads, with the values that it goes on with."""
    names: dict[str, Any] = {}
    for other in OTHERS:
        fields = FieldsRead(values, other)
        with suppress(Exception):
            command(fields)
        names |= fields.names
    return names


def list_fills(value: Any) -> Iterator[tuple[str, Fill]]:
    """The value with a text in place of itself or of one of the texts in it, and the path to that text."""
    yield "", str
    for path, inner in _list_parts(value):
        for where, fill in list_fills(inner):
            yield f".{path}{where}", lambda text, path=path, fill=fill: _put(value, path, fill(text))


def _list_parts(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _put(value: Any, path: Any, inner: Any) -> Any:
    changed = value.copy()
    changed[path] = inner
    return changed

"""Tables that other packages may extend: the built-in rows, and those of installed entry points.

A package adds a row by one line of its pyproject.toml; the value names an object of the row's class:

    [project.entry-points."podium.policies"]
    debate = "podium_debate:POLICY"

Entry points are read when a name is asked for that is not built in, or when the whole table is, and only once in a
process. One that cannot be loaded, is of another class or takes a name twice is left out, with a sentence in
`problems` and in the log that names its package: it never breaks the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from pool_registry.extensions.known_packages import explain_missing

log = logging.getLogger(__name__)


class Named(Protocol):
    """A row: anything with a name that is unique in its table."""

    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


@dataclass(slots=True)
class _Extensions(Generic[Row]):
    """What the entry points of a group gave. `entries` holds the entry point of each row, `problems` sentences by the
    name of the entry point that was left out."""

    rows: dict[str, Row] = field(default_factory=dict)
    entries: dict[str, EntryPoint] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


class ExtensionTable(Mapping[str, Row], Generic[Row]):
    """Rows by name: `built_in` ones in their order, then those of entry points in `group` by package and name.

    `make_row` turns what an entry point names into a row, where it is not the row itself.
    """

    def __init__(
        self,
        group: str,
        row_type: type[Row],
        built_in: Iterable[Row],
        make_row: Callable[[EntryPoint, object], object] = lambda _, loaded: loaded,
    ) -> None:
        self.group = group
        self.built_in = {row.name: row for row in built_in}
        self._row_type = row_type
        self._make_row = make_row

    @cached_property
    def _extensions(self) -> _Extensions[Row]:
        extensions: _Extensions[Row] = _Extensions()
        for entry in sorted(entry_points(group=self.group), key=lambda entry: (_package_of(entry), entry.name)):
            problem = self._add(entry, extensions)
            if problem:
                sentence = f"the entry point {entry.name!r} ({self.group}) of {_package_of(entry)} {problem}"
                extensions.problems[entry.name] = sentence
                log.warning("%s; it is left out", sentence)
        return extensions

    def _add(self, entry: EntryPoint, extensions: _Extensions[Row]) -> str:
        """Take in the row of an entry point; returns what is wrong with it, or ""."""
        try:
            row = self._make_row(entry, entry.load())
        except Exception as error:  # noqa: BLE001  whatever another package's code raises when it is imported
            return f"cannot be loaded: {type(error).__name__}: {error}"
        if not isinstance(row, self._row_type):
            return f"gives a {type(row).__name__}, not a {self._row_type.__name__}: {entry.value}"
        if row.name != entry.name:
            return f"gives a row named {row.name!r}; use one name for both"
        if row.name in self.built_in:
            return "takes the name of a built-in one; use another name"
        if row.name in extensions.rows:
            return f"takes a name that {_package_of(extensions.entries[row.name])} has taken; use another name"
        extensions.rows[row.name] = row
        extensions.entries[row.name] = entry
        return ""

    @property
    def problems(self) -> Mapping[str, str]:
        """Why entry points were left out, by their names."""
        return self._extensions.problems

    def explain_absence(self, name: str) -> str:
        """Why there is no row called `name`, as the end of a sentence about it: its entry point was left out, or a
        package that is known to add it is not installed. "" where neither is so."""
        if name in self:
            return ""
        problem = self.problems.get(name)
        return f"cannot be used: {problem}" if problem else explain_missing(self.group, name)

    def package_of(self, name: str) -> str:
        """The package (and version) that adds the row called `name`; "" for a built-in one."""
        entry = self._find_entry(name)
        return "" if entry is None else _package_of(entry)

    def distribution_of(self, name: str) -> str:
        """The name of the installed distribution that adds the row called `name`; "" for a built-in one."""
        entry = self._find_entry(name)
        return "" if entry is None or entry.dist is None else entry.dist.name

    def _find_entry(self, name: str) -> EntryPoint | None:
        return None if name in self.built_in else self._extensions.entries.get(name)

    def __getitem__(self, name: str) -> Row:
        return self.built_in[name] if name in self.built_in else self._extensions.rows[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self._extensions.rows

    def __len__(self) -> int:
        return len(self.built_in) + len(self._extensions.rows)


def _package_of(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown package"

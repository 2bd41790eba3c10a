"""What a reader of a format is given, and what it gives: a source of bytes, and rows with numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainer.tasks.sources.files.columns import ColumnChooser
from trainer.tasks.sources.files.encoding import DecodedText, check_text, decode_text


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the number that a person finds it by. One without a record is a line of a task file as it stands, or
    has a problem."""

    number: int
    record: Mapping[str, Any] | None = None
    raw: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a source holds. `unit` is what its numbers count; without columns, the rows are lines of a task file.
    `is_table`: with names of columns or fields."""

    form: str
    rows: Iterable[Row]
    columns: tuple[str, ...] = ()
    unit: str = "line"
    is_table: bool = True


@dataclass(frozen=True)
class Source:
    """The bytes of a file, and what a person says about them. `takes_all`: its rows have all columns, not only those
    of tasks."""

    data: bytes
    name: str
    encoding: str
    chooser: ColumnChooser
    takes_all: bool = False

    @cached_property
    def decoded_text(self) -> DecodedText:
        """The text. Raises UnusableTasks."""
        return decode_text(self.data, self.name, self.encoding)

    @cached_property
    def sound_text(self) -> str:
        """The text with plain line breaks. Raises UnusableTasks where it is damaged."""
        check_text(self.decoded_text, self.name)
        return self.decoded_text.text.replace("\r\n", "\n").replace("\r", "\n")

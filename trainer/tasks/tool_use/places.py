"""Opens data sets of tool use by their place: a file, bytes that were uploaded, or a data set of the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.columns import ColumnChooser
from trainer.tasks.sources.files.encoding import read_bytes
from trainer.tasks.sources.files.formats import read_rows
from trainer.tasks.sources.files.reader import ReadOptions
from trainer.tasks.sources.files.rows import Rows, Source
from trainer.tasks.sources.jsonl import MAX_FILE_BYTES
from trainer.tasks.sources.places import HUB
from trainer.tasks.tool_use.reader import ToolData, read_tool_data


def open_tool_data(place: str, options: ReadOptions, answers: Sequence[str] = ()) -> ToolData | None:
    """The conversations of a file, or of hub:OWNER/NAME or hub:OWNER/NAME:CONFIG; None where it is not of tool use.
    `answers` are the files, or folders of files, of a suite's possible answers and of its functions' descriptions.
    Raises UnusableTasks where something cannot be read."""
    name, rows = _open_place(place, options)
    more = [_open_place(file, options)[1] for answer in answers for file in _list_files(answer)]
    data = read_tool_data([rows, *more], name)
    if data is None and answers:
        raise UnusableTasks(f"{place} holds no queries with functions, so that --answers says nothing about it")
    return data


def refuse_tool_data(file: str) -> None:
    """Raise UnusableTasks where a file holds calls of tools: they are tasks on a pool of these tools alone."""
    place = str(Path(file).expanduser())
    if (data := open_tool_data(place, ReadOptions())) is not None:
        raise UnusableTasks(
            f"{file} holds calls of tools ({data.format}): make it a pool with tasks (podium tasks add --pool NEW "
            f"--file {file}), and name those as practice:NEW"
        )


def read_tool_bytes(data: bytes, name: str, options: ReadOptions, answers: bytes = b"") -> ToolData | None:
    """The conversations in the bytes of what is called `name`; None where they are not of tool use. `answers` are the
    bytes of a suite's possible answers. Raises UnusableTasks."""
    parts = [data, answers] if answers else [data]
    return read_tool_data([_read_source(part, name, options) for part in parts], name)


def _list_files(place: str) -> list[str]:
    """The place itself, or the files of a folder."""
    folder = Path(place).expanduser()
    return [str(file) for file in sorted(folder.iterdir()) if file.is_file()] if folder.is_dir() else [place]


def _open_place(place: str, options: ReadOptions) -> tuple[str, Rows]:
    if place.startswith(HUB):
        from trainer.tasks.sources.hub import open_hub

        return open_hub(place.removeprefix(HUB))
    return Path(place).name, open_rows(place, options)


def open_rows(place: str, options: ReadOptions | None = None) -> Rows:
    """The rows of a file with all of its columns. Raises UnusableTasks."""
    file = Path(place)
    data = read_bytes(file)
    if len(data) > MAX_FILE_BYTES:
        raise UnusableTasks(f"{file} has more than {MAX_FILE_BYTES:,} bytes; split it into several files")
    return _read_source(data, place, options or ReadOptions())


def _read_source(data: bytes, name: str, options: ReadOptions) -> Rows:
    return read_rows(Source(data, name, options.encoding, ColumnChooser(name), takes_all=True))

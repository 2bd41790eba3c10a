"""Tasks that a person names by their place: a file, or a data set of the Hub."""

from __future__ import annotations

from pathlib import Path

from trainer.tasks.sources.files.reader import ReadOptions, ReadTasks, read_task_file

HUB = "hub:"


def read_place(place: str, options: ReadOptions) -> ReadTasks:
    """The tasks of a file, or of hub:OWNER/NAME or hub:OWNER/NAME:CONFIG. Raises UnusableTasks and UnclearColumns."""
    if not place.startswith(HUB):
        return read_task_file(Path(place), options)
    from trainer.tasks.sources.hub import read_hub

    return read_hub(place.removeprefix(HUB), options)

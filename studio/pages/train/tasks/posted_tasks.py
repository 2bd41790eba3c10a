"""Tasks that a person pastes, uploads or names on the page: the bytes, what they are called, and how they are read."""

from __future__ import annotations

from base64 import b64decode

from pool_registry.errors import InvalidPool
from pool_registry.text import one_line, shorten
from studio.access.recipe_rights import check_task_source
from studio.frame.commands import Fields, text, words
from trainer.tasks.sources.files.reader import ReadOptions, ReadTasks, read_tasks
from trainer.tasks.sources.places import HUB

MAX_BYTES = 20_000_000
MAX_NAME_CHARS = 80
REMEDY = "choose one below"


def read_posted(fields: Fields) -> ReadTasks:
    """The tasks of a data set of the Hub, of an uploaded file, whose bytes come as base64, or of pasted text. Raises
    InvalidPool, UnusableTasks, and UnclearColumns."""
    options = read_options(fields)
    if address := words(fields, "dataset").removeprefix(HUB):
        from trainer.tasks.sources.hub import read_hub  # imports what reads data sets

        check_task_source(f"{HUB}{address}")
        return read_hub(address, options, REMEDY)
    data, _ = read_uploads(fields)
    return read_tasks(data, name_posted(fields), "own", options, REMEDY)


def read_options(fields: Fields) -> ReadOptions:
    """How a person wants it read."""
    return ReadOptions(*(words(fields, name) for name in ("encoding", "query_column", "answer_column")))


def read_uploads(fields: Fields) -> tuple[bytes, bytes]:
    """The bytes of the file or of the text, and those of a second file with answers. Raises InvalidPool."""
    try:
        data = b64decode(words(fields, "data"), validate=True) or text(fields, "text").encode()
        answers = b64decode(words(fields, "answers"), validate=True)
    except ValueError as error:
        raise InvalidPool([("text", "the file did not arrive whole: choose it again")]) from error
    if len(data) + len(answers) > MAX_BYTES:
        raise InvalidPool([("text", f"this has more than {MAX_BYTES:,} bytes; put it into a file and name that")])
    return data, answers


def name_posted(fields: Fields) -> str:
    """What sentences call a data set, an uploaded file, or pasted text."""
    if address := words(fields, "dataset"):
        return f"the data set {shorten(one_line(address), MAX_NAME_CHARS)}"
    name = shorten(one_line(words(fields, "name")), MAX_NAME_CHARS)
    return f"the file {name}" if name else "this"

"""What was written and answered so far, one JSON object per line beside the task file, so that a later call goes on.

Each line is flushed to the disk as soon as it is known. One writes at a time, who first drops a line that a kill has
cut. Lines of another panel, or of another pool's content, are kept and not read.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pool_registry.strict_model import FrozenModel
from trainer.errors import UnusableTasks
from trainer.tasks.practice.agents.propose import Question


class Request(FrozenModel):
    """What an author wrote about one subject. `problems`: how many lines are no questions. `cost`: in US dollars."""

    kind: Literal["request"] = "request"
    run: str
    worker: str
    is_passage: bool = False
    questions: tuple[Question, ...] = ()
    problems: int = 0
    cost: float = 0.0


class Reply(FrozenModel):
    """What an agent answered to a question."""

    kind: Literal["reply"] = "reply"
    run: str
    key: str
    worker: str
    text: str
    cost: float = 0.0


class Verdict(FrozenModel):
    """Whether the judge takes an agent's reply for the same as the author's answer."""

    kind: Literal["verdict"] = "verdict"
    run: str
    key: str
    worker: str
    same: bool
    cost: float = 0.0


Record = Annotated[Request | Reply | Verdict, Field(discriminator="kind")]
_RECORD: TypeAdapter[Request | Reply | Verdict] = TypeAdapter(Record)


class Journal:
    """The records of one `run`: of a panel on a pool as it is now. Without a file they are kept in memory alone."""

    def __init__(self, file: Path | None, run: str) -> None:
        self.file = file
        self.run = run
        self.requests: list[Request] = []
        self.replies: dict[str, dict[str, str]] = {}
        self.verdicts: dict[str, dict[str, bool]] = {}
        for record in _read_records(file) if file is not None else ():
            if record.run == run:
                self._take(record)

    def add(self, record: Request | Reply | Verdict) -> None:
        """Keep a record. Raises OSError where it cannot be written."""
        if self.file is not None:
            _append(self.file, record.model_dump_json().encode() + b"\n")
        self._take(record)

    def _take(self, record: Request | Reply | Verdict) -> None:
        match record:
            case Request():
                self.requests.append(record)
            case Reply():
                self.replies.setdefault(record.key, {})[record.worker] = record.text
            case Verdict():
                self.verdicts.setdefault(record.key, {})[record.worker] = record.same


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def hold_journal(file: Path | None) -> Iterator[None]:
    """Let nobody else write a journal meanwhile. Raises UnusableTasks where somebody does: both would pay for the same
    questions."""
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UnusableTasks(
                "questions for these tasks are being made already: wait until that has ended"
            ) from error
        content = file.read_bytes()
        os.truncate(file, content.rfind(b"\n") + 1)
        yield


def _read_records(file: Path) -> Iterator[Request | Reply | Verdict]:
    """The records of a file, without a last line that has no end. Raises UnusableTasks for any other line."""
    if not file.is_file():
        return
    content = file.read_bytes()
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            yield _RECORD.validate_json(line)
        except ValidationError as error:
            raise UnusableTasks(
                f"{file}, line {number}, is damaged; remove that line, or the file to ask everything again"
            ) from error

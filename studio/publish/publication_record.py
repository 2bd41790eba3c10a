"""The record of a publication: what was asked, how far it came, and what it led to. One folder each, files only.

publications/KEY/request.json   what was asked for
publications/KEY/state.json     the steps that are done; replaced as a whole, so a kill never leaves half of it
publications/KEY/lock           held by the process that publishes
publications/KEY/log.txt        what that process printed
"""

from __future__ import annotations

import fcntl
import json
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.engine.process_identity import is_alive, this_process
from pool_registry.atomic_write import draft_folder, write_atomically
from pool_registry.storage.data_folder import Home
from studio.publish.request import Publication, PublishError, publication

KEPT = 50  # publications whose records are kept
Stage = Literal["prepare", "model", "create", "secrets", "files", "hardware", "visibility"]
STAGES: dict[Stage, str] = {
    "prepare": "Files are ready and hold no secret",
    "model": "Model repository is up to date",
    "create": "Space is there, private",
    "secrets": "Secrets are set",
    "files": "Space holds its files",
    "hardware": "Hardware is requested",
    "visibility": "Visibility is set",
}
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,110}")


class State(BaseModel):
    """How far a publication came. `done` are finished stages in order; links are addresses at the Hub."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: Literal["ready", "running", "done", "failed", "interrupted"] = "ready"
    owner: str = ""
    stage: str = ""
    done: tuple[str, ...] = ()
    message: str = ""
    model: str = ""
    model_revision: str = ""
    space: str = ""
    space_revision: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One publication's folder."""

    folder: Path

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def request(self) -> Publication:
        """What was asked for. Raises PublishError when the record is damaged."""
        try:
            return publication(json.loads((self.folder / "request.json").read_bytes()))
        except (OSError, ValueError) as error:
            raise PublishError(f"the record {self.folder} cannot be read; publish anew from the page") from error

    def state(self) -> State:
        """How far it came; a running one whose process is gone was interrupted."""
        try:
            known = State.model_validate_json((self.folder / "state.json").read_bytes())
        except (OSError, ValidationError):
            return State()
        if known.state == "running" and not is_alive(known.owner):
            said = "its process ended in the middle; publish again, nothing half-finished is public"
            return known.model_copy(update={"state": "interrupted", "message": said})
        return known

    def write(self, **changes: object) -> State:
        """Change the state, all or nothing."""
        changed = self.state().model_copy(update={**changes, "at": datetime.now(UTC).isoformat(timespec="seconds")})
        write_atomically(self.folder / "state.json", changed.model_dump_json().encode())
        return changed

    def began(self, stage: str) -> None:
        self.write(stage=stage)

    def finished(self, stage: str, **changes: object) -> None:
        """A stage is done, with what it led to."""
        self.write(done=(*self.state().done, stage), stage="", **changes)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the lock. Raises PublishError when another process publishes this."""
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise PublishError(
                    f"{self.request.repo} is being published already; wait until that has ended"
                ) from error
            self.write(state="running", owner=this_process(), done=(), stage="", message="")
            yield


def new_record(home: Home, asked: Publication) -> Record:
    """A record for a publication; the one of the same repository is used again, so that a repeat goes on with it."""
    place = home.root / "publications"
    place.mkdir(exist_ok=True)
    for known in records(home):
        if known.request.repo == asked.repo:
            write_atomically(known.folder / "request.json", asked.model_dump_json().encode())
            return known
    slug = re.sub(r"[^a-z0-9._-]+", "-", asked.repo.lower()).strip("-.")[:80]
    folder = place / f"{slug}-{secrets.token_hex(3)}"
    with draft_folder(folder) as draft:
        (draft / "request.json").write_text(asked.model_dump_json(), encoding="utf-8")
    for old in records(home)[KEPT:]:
        shutil.rmtree(old.folder, ignore_errors=True)
    return Record(folder)


def records(home: Home) -> list[Record]:
    """Every readable record, newest first."""
    found = [Record(path) for path in (home.root / "publications").glob("*") if (path / "request.json").is_file()]
    found = [each for each in found if not each.key.startswith(".") and _is_readable(each)]
    return sorted(found, key=lambda each: each.folder.stat().st_mtime, reverse=True)


def find_record(home: Home, key: str) -> Record:
    """The record called `key`. Raises PublishError."""
    record = Record(home.root / "publications" / key)
    if not _KEY.fullmatch(key) or not (record.folder / "request.json").is_file():
        raise PublishError(f"there is no publication {key!r} in this data folder")
    return record


def _is_readable(record: Record) -> bool:
    try:
        return bool(record.request)
    except PublishError:
        return False

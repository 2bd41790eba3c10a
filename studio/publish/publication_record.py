"""The record of a publication: the request, its progress and its results. Each has a folder of its own with files.

publications/KEY/request.json   the request
publications/KEY/state.json     the finished stages; written atomically
publications/KEY/state.lock     locked by whoever changes the state
publications/KEY/lock           locked by the process that publishes
publications/KEY/log.txt        the output of that process
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
from pool_registry.atomic_write import draft_folder, lock_file, write_atomically
from pool_registry.storage.data_folder import Home
from studio.publish.request import InvalidPublication, Publication, PublishError, parse_publication

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


class PublicationState(BaseModel):
    """The progress of a publication. `done` lists the finished stages in order; links are addresses at the Hub."""

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
class PublicationRecord:
    """The folder of one publication."""

    folder: Path

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def request(self) -> Publication:
        """The publication that was requested. Raises PublishError when the record is damaged."""
        try:
            return parse_publication(json.loads((self.folder / "request.json").read_bytes()))
        except (OSError, ValueError) as error:
            raise PublishError(f"the record {self.folder} cannot be read; publish again from the page") from error

    def state(self) -> PublicationState:
        """The current state. A running publication whose process has ended counts as interrupted."""
        try:
            state = PublicationState.model_validate_json((self.folder / "state.json").read_bytes())
        except (OSError, ValidationError):
            return PublicationState()
        if state.state == "running" and not is_alive(state.owner, self.folder.parents[1]):
            message = "its process ended in the middle; publish again, nothing half-finished is public"
            return state.model_copy(update={"state": "interrupted", "message": message})
        return state

    def update(self, **changes: object) -> PublicationState:
        """Change fields of the state, whatever another process changes of the others, and write it atomically."""
        with lock_file(self.folder / "state.lock"):
            state = self.state().model_copy(update={**changes, "at": datetime.now(UTC).isoformat(timespec="seconds")})
            write_atomically(self.folder / "state.json", state.model_dump_json().encode())
        return state

    def begin(self) -> None:
        """Say that this process publishes it, from the first stage on."""
        self.update(state="running", owner=this_process(), done=(), stage="", message="")

    def start_stage(self, stage: str) -> None:
        self.update(stage=stage)

    def finish_stage(self, stage: str, **changes: object) -> None:
        """Mark a stage as done, and change further fields of the state."""
        self.update(done=(*self.state().done, stage), stage="", **changes)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock while publishing. Raises PublishError when another process holds it."""
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise PublishError(
                    f"{self.request.repo} is being published already; wait until that has ended"
                ) from error
            self.begin()
            yield


def claim_record(home: Home, publication: Publication) -> PublicationRecord:
    """Open the record for a publication that this process begins. A repeated publish to the same repository continues
    its record. Raises InvalidPublication while somebody publishes to it."""
    place = home.root / "publications"
    with lock_file(place / ".lock"):
        record = next((row for row in list_records(home) if row.request.repo == publication.repo), None)
        if record is None:
            record = _create_record(place, publication)
        elif record.state().state == "running":
            reason = f"{publication.repo} is being published already; wait until that has ended"
            raise InvalidPublication([("repo", reason)])
        else:
            write_atomically(record.folder / "request.json", publication.model_dump_json().encode())
        record.begin()
        for old in list_records(home)[KEPT:]:
            shutil.rmtree(old.folder, ignore_errors=True)
    return record


def _create_record(place: Path, publication: Publication) -> PublicationRecord:
    slug = re.sub(r"[^a-z0-9._-]+", "-", publication.repo.lower()).strip("-.")[:80]
    folder = place / f"{slug}-{secrets.token_hex(3)}"
    with draft_folder(folder) as draft:
        (draft / "request.json").write_text(publication.model_dump_json(), encoding="utf-8")
    return PublicationRecord(folder)


def list_records(home: Home) -> list[PublicationRecord]:
    """List every readable record, newest first."""
    folders = (home.root / "publications").glob("[!.]*")
    readable = [record for record in map(PublicationRecord, folders) if _is_readable(record)]
    return sorted(readable, key=lambda record: record.folder.stat().st_mtime, reverse=True)


def find_record(home: Home, key: str) -> PublicationRecord:
    """Find the record called `key`. Raises PublishError."""
    record = PublicationRecord(home.root / "publications" / key)
    if not _KEY.fullmatch(key) or not (record.folder / "request.json").is_file():
        raise PublishError(f"there is no publication {key!r} in this data folder")
    return record


def _is_readable(record: PublicationRecord) -> bool:
    try:
        return bool(record.request)
    except PublishError:
        return False

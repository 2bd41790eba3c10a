"""What is remembered about the runs of a pool that may become its tasks: whether those of clients may, and which
questions were settled already. It lies beside the pool's task file, and holds digests of questions, never their words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from orchestrator.engine.events import SERVED
from pool_registry.atomic_write import lock_file, write_atomically
from pool_registry.storage.data_folder import find_home
from trainer.errors import UnusableTasks
from trainer.tasks.sources.jsonl import compute_digest
from trainer.tasks.task import normalize_query

SUFFIX = ".traffic"
NO_CONSENT = (
    "it is a client's request, and those of this pool neither become tasks nor are shown to a coding agent: allow it, "
    "on the Tasks page or with podium tasks candidates --clients"
)


class TrafficRecord(BaseModel):
    """`clients`: requests of clients may become tasks. `struck` and `accepted` are digests of questions."""

    clients: bool = False
    struck: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()

    def allows(self, source: str) -> bool:
        """Whether runs of this source may become tasks."""
        return self.clients or source != SERVED


def digest_query(query: str) -> str:
    """What a question is remembered by."""
    return compute_digest(normalize_query(query).casefold())


def check_consent(pool: str, source: str) -> None:
    """Raise UnusableTasks where runs of this source may not become tasks of the pool."""
    if not read_traffic(pool).allows(source):
        raise UnusableTasks(NO_CONSENT)


def find_traffic_file(pool: str) -> Path:
    """The file of a pool's record, which may not exist yet."""
    return find_home().root / "tasks" / f"{pool}{SUFFIX}"


def read_traffic(pool: str) -> TrafficRecord:
    """Read the record of a pool. Raises UnusableTasks where its file is damaged."""
    return _read(find_traffic_file(pool))


def change_traffic(pool: str, change: Callable[[TrafficRecord], TrafficRecord]) -> TrafficRecord:
    """Change the record of a pool, one process at a time, and return what it is then."""
    return _change(find_traffic_file(pool), change)


def forget_questions(file: Path, queries: Iterable[str]) -> None:
    """Remember nothing about these questions in one pool's record."""
    gone = {digest_query(query) for query in queries}
    if file.is_file():
        _change(file, lambda old: old.model_copy(update={"struck": old.struck - gone, "accepted": old.accepted - gone}))


def _read(file: Path) -> TrafficRecord:
    try:
        return TrafficRecord.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return TrafficRecord()
    except ValidationError as error:
        raise UnusableTasks(
            f"{file} is damaged ({error.title}); remove it to go on: clients' runs stay out then"
        ) from error


def _change(file: Path, change: Callable[[TrafficRecord], TrafficRecord]) -> TrafficRecord:
    with lock_file(file.with_suffix(f"{SUFFIX}-lock")):
        changed = change(_read(file))
        write_atomically(file, changed.model_dump_json())
    return changed

"""The past that an evaluation may read: the track record of agents for a router, lessons for the condition `memory`.

Both are read once, before the job's first episode, and kept in its folder. The job's own episodes therefore change
none of its decisions, and a resumed job decides as before. Recorded episodes of the queries under evaluation are left
out: a measurement must not use earlier answers to the same question, and a second job must not have an advantage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.failure_memory.lessons import PoolMemory
from orchestrator.plan import Lesson
from orchestrator.traces.agent_track_record import SoloEpisode, read_solo_episodes
from orchestrator.traces.store import Store
from pool_registry.atomic_write import write_atomically
from trainer.errors import TrainingFailed


@dataclass(frozen=True, slots=True)
class FrozenPast:
    """One pool's past: its graded episodes of one agent alone, and its lessons, newest first."""

    record: tuple[SoloEpisode, ...]
    lessons: tuple[Lesson, ...]


_FILE = TypeAdapter(dict[str, FrozenPast])


def freeze_past(file: Path, store: Store, pools: Collection[str], queries: Collection[str]) -> Mapping[str, FrozenPast]:
    """Return the past of these pools by name, as it was at the first call: `file` keeps it.

    A pool that is not in the file yet is read now. Episodes of `queries` are left out. Blocks: call it in a thread.
    Raises TrainingFailed when the file is damaged, and StorageError.
    """
    past = _read_file(file)
    missing = [pool for pool in pools if pool not in past]
    if missing:
        past |= {pool: _read_past(store, pool, frozenset(queries)) for pool in missing}
        write_atomically(file, _FILE.dump_json(past))
    return past


def _read_past(store: Store, pool: str, queries: frozenset[str]) -> FrozenPast:
    record = (alone for alone in read_solo_episodes(store.engine, pool) if alone.query not in queries)
    lessons = (lesson for lesson in PoolMemory(store.lessons, pool).lessons() if lesson.query not in queries)
    return FrozenPast(tuple(record), tuple(lessons))


def _read_file(file: Path) -> dict[str, FrozenPast]:
    try:
        return _FILE.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        raise TrainingFailed(
            "known", f"{file} is damaged. Without it a resumed router may decide otherwise than before: start a new "
            "job, or delete the file and resume to read the past again"
        ) from error  # fmt: skip

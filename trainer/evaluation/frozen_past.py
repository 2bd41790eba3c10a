"""What an evaluation knows of the past: the record that a router decides by, and the lessons that the condition
`memory` shows.

Both are read once, before the job's first episode, and kept in its folder. So the job's own episodes change no
decision of it, and a job that was killed or stopped decides as it did before. Recorded episodes of the very queries
that are asked are left out: what is measured must not have been seen, and a second job must not know more.
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


def freeze_past(file: Path, store: Store, pools: Collection[str], asked: Collection[str]) -> Mapping[str, FrozenPast]:
    """What was known of these pools, by their names, when this was first asked: `file` remembers it. A pool that a
    recipe has got since then is looked up now. Blocks: use a thread.

    Raises TrainingFailed when the file is damaged, StorageError.
    """
    known = _read_file(file)
    missing = [pool for pool in pools if pool not in known]
    if missing:
        known |= {pool: _read_past(store, pool, frozenset(asked)) for pool in missing}
        write_atomically(file, _FILE.dump_json(known))
    return known


def _read_past(store: Store, pool: str, asked: frozenset[str]) -> FrozenPast:
    record = (alone for alone in read_solo_episodes(store.engine, pool) if alone.query not in asked)
    return FrozenPast(tuple(record), tuple(PoolMemory(store.lessons, pool).lessons()))


def _read_file(file: Path) -> dict[str, FrozenPast]:
    try:
        return _FILE.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        raise TrainingFailed(
            "known", f"{file} is damaged. Without it a resumed router may decide otherwise than before: start a new "
            "job, or delete the file and resume to go on with what is known now"
        ) from error  # fmt: skip

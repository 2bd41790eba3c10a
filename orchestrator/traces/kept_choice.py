"""A choice of workers as it was at some time: outcomes and the predictor, which `+who=predictor@KEY` goes by for ever.

What an improvement measures and a deployment serves must not change with the next graded run: `+who=predictor` reads
the traces of now, a kept choice reads its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.choice.own_predictors import OUTCOMES_FILE, find_kept_choice
from orchestrator.errors import UnknownOrchestrator
from orchestrator.traces.agent_track_record import SoloEpisode, TrackRecord
from pool_registry.atomic_write import draft_folder, write_atomically

_FILE = TypeAdapter(tuple[SoloEpisode, ...])


def keep_choice(
    pool: str, key: str, outcomes: Sequence[SoloEpisode], write_predictor: Callable[[Path], object]
) -> Path:
    """Keep outcomes and what `write_predictor` puts into the folder under this key, in place of what was kept there.
    Raises OSError."""
    folder = find_kept_choice(pool, key)
    with draft_folder(folder, replace=True) as draft:
        (draft / OUTCOMES_FILE).write_bytes(_FILE.dump_json(tuple(outcomes)))
        write_predictor(draft)
    return folder


def read_kept_outcomes(pool: str, key: str) -> tuple[SoloEpisode, ...]:
    """The outcomes of a kept choice, oldest first. Raises UnknownOrchestrator where there is none that can be read."""
    file = find_kept_choice(pool, key) / OUTCOMES_FILE
    try:
        return _read(file, file.stat().st_mtime_ns)
    except (OSError, ValidationError) as error:
        problem = "is damaged" if isinstance(error, ValidationError) else "is not there"
        raise UnknownOrchestrator(
            f"the choice of workers {key} of the pool {pool} {problem}; leave out @{key} to go by the traces of now"
        ) from error


def read_kept_record(pool: str, key: str) -> TrackRecord:
    """The track record of a kept choice. Raises UnknownOrchestrator."""
    return TrackRecord(read_kept_outcomes(pool, key))


def drop_outcomes(file: Path, holds: Callable[[bytes], bool]) -> int:
    """Write the outcomes of a kept choice anew without those whose JSON holds something; returns how many these were.
    Raises ValidationError where the file is damaged."""
    outcomes = _read(file, file.stat().st_mtime_ns)
    kept = tuple(outcome for outcome in outcomes if not holds(_FILE.dump_json((outcome,))))
    if len(kept) < len(outcomes):
        write_atomically(file, _FILE.dump_json(kept))
    return len(outcomes) - len(kept)


@lru_cache(maxsize=8)
def _read(file: Path, _changed: int) -> tuple[SoloEpisode, ...]:
    return _FILE.validate_json(file.read_bytes())

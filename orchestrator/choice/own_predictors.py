"""Success predictors that were trained on a pool's own log (trainer/choice/own.py), in the data folder.

PODIUM_HOME/success-predictors/POOL/NUMBER is a folder like the one that ships, with `figures.json`. Only a whole one
gets its name, and the newest counts, so that nothing is lost where a training or this process is killed.

Beside the numbers stand choices that were kept as they were at some time, POOL/kept-KEY: the outcomes of then, and the
predictor, where it was not the one that ships. `+who=predictor@KEY` goes by one and never changes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pool_registry.atomic_write import draft_folder
from pool_registry.storage.data_folder import find_home

FIGURES_FILE = "figures.json"
OUTCOMES_FILE = "outcomes.json"  # of a kept choice (traces/kept_choice.py)


def find_own_folder(pool: str, home: Path | None = None) -> Path:
    """The folder of what was trained for a pool, which may not exist, in a data folder or in this process's own."""
    return (home or find_home().root) / "success-predictors" / pool


def find_own_predictor(pool: str) -> Path | None:
    """The newest predictor that was trained on this pool's log; None where there is none, or no pool is named."""
    return next(reversed(_list_versions(find_own_folder(pool))), None) if pool else None


def keep_own_predictor(pool: str, write: Callable[[Path], object]) -> Path:
    """Have `write` fill a folder, which then takes the place of the pool's earlier one. Raises OSError."""
    folder = find_own_folder(pool)
    earlier = _list_versions(folder)
    newest = folder / str(time.time_ns())
    with draft_folder(newest) as draft:
        write(draft)
    for version in earlier:
        shutil.rmtree(version, ignore_errors=True)
    return newest


def remove_own_predictor(pool: str) -> bool:
    """Go back to the predictor that ships. Returns whether there was another."""
    versions = _list_versions(find_own_folder(pool))
    for version in versions:
        shutil.rmtree(version, ignore_errors=True)
    return bool(versions)


def find_kept_choice(pool: str, key: str) -> Path:
    """The folder of a kept choice, which may not exist."""
    return find_own_folder(pool) / f"kept-{key}"


def _list_versions(folder: Path) -> list[Path]:
    """Whole predictors, oldest first."""
    versions = [path for path in folder.glob("[0-9]*") if (path / FIGURES_FILE).is_file()]
    return sorted(versions, key=lambda path: path.name)

"""Where the files lie that workers took along to another place: a folder for each worker, beside the pool's file."""

from __future__ import annotations

from pathlib import Path

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

LUGGAGE = "workers"  # the folder that holds the files of workers


def place_of(worker: str) -> str:
    """The folder of a worker's files, relative to the pool's."""
    return f"{LUGGAGE}/{worker}"


def place_luggage(pool: Pool, folder: Path) -> Pool:
    """The pool with the paths of its workers' files below `folder`: they are read from there, wherever the program is
    started."""
    return pool.model_copy(update={"workers": tuple(_place_files(spec, folder) for spec in pool.workers)})


def _place_files(spec: WorkerSpec, folder: Path) -> WorkerSpec:
    place = place_of(spec.name)

    def settle(value: object) -> object:
        if not isinstance(value, str) or not f"{value}/".startswith(f"{place}/"):
            return value
        return str(folder / value)

    return spec.model_copy(update={"config": {name: settle(value) for name, value in spec.config.items()}})

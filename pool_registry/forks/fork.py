"""Forks a pool: its workers work on copies of the files, folders and databases that they may change.

Which of its workers can is up to each kind (`Worker.move_state`). The originals cannot be written: programs and
functions run behind Landlock, which lets them change the copies alone (processes/write_fence.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pool_registry.errors import CannotFork, WorkerFault
from pool_registry.forks.copies import Copies, MadeCopies
from pool_registry.forks.differences import MAX_CHANGES, Change, list_changes
from pool_registry.kinds import kind_of, load_config
from pool_registry.pool import Pool
from pool_registry.worker import Copier, WorkerSpec

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class Fork:
    """A pool that works on the copies below `folder`. `moved` are its workers that do."""

    pool: Pool
    moved: frozenset[str]
    folder: Path
    copies: Copies

    @property
    def places(self) -> list[str]:
        """The files and folders that were copied."""
        return [str(path) for path in self.copies.roots]

    def compare(self) -> list[Change]:
        """What is other on the copies than in the originals as they were copied, at most MAX_CHANGES. Blocks."""
        return list(islice(self._list_changes(), MAX_CHANGES))

    def _list_changes(self) -> Iterator[Change]:
        for path, copy in self.copies.roots.items():
            before = self.folder / BEFORE / path.relative_to(path.anchor)
            for change in list_changes(before, copy):
                yield replace(change, place=str(path) + change.place.removeprefix(str(before)))

    def delete(self) -> None:
        """Delete the copies."""
        shutil.rmtree(self.folder, ignore_errors=True)


def fork_pool(pool: Pool, folder: Path, needed: Iterable[str]) -> Fork:
    """Copy what the workers of a pool may change to `folder`, which must be empty, and point them at the copies.

    Raises CannotFork where one of `needed` cannot work on a copy, or where there is too much to copy. Blocks.
    """
    copies, specs = Copies(folder / AFTER), {spec.name: spec for spec in pool.workers if spec.enabled}
    try:
        copies.folder.mkdir(parents=True)
        copies.scratch.mkdir()
        moved = {name: _move_needed(specs[name], copies) for name in needed}
        moved |= {name: spec for name in specs.keys() - moved.keys() if (spec := _move_reader(specs[name], copies))}
        shutil.copytree(copies.folder, folder / BEFORE, symlinks=True)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotFork(f"the copies cannot be written below {folder}: {error.strerror or error}") from error
    except CannotFork:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    workers = tuple(moved.get(spec.name, spec) for spec in pool.workers)
    return Fork(pool.model_copy(update={"workers": workers}), frozenset(moved), folder, copies)


def _move_needed(spec: WorkerSpec, copies: Copies) -> WorkerSpec:
    moved = _move_worker(spec, copies)
    if moved is None:
        raise CannotFork(
            f"{spec.name} may change something that cannot be copied. What can: a SQLite file or a folder that a "
            "function's permissions let it change, without the network, or that an MCP server's command names"
        )
    return moved


def _move_reader(spec: WorkerSpec, copies: Copies) -> WorkerSpec | None:
    """A worker that reads what was copied for another one, on that copy; None where it reads something else."""
    try:
        return _move_worker(spec, MadeCopies(copies))
    except (CannotFork, WorkerFault):
        return None


def _move_worker(spec: WorkerSpec, copier: Copier) -> WorkerSpec | None:
    fields = kind_of(spec).load().move_state(load_config(spec), copier)
    return None if fields is None else spec.model_copy(update={"config": {**spec.config, **fields}})

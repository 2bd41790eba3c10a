"""A job on the rented machine: the same process as at home, in a data folder of its own, mirrored into the bucket.

The bucket is a mounted folder that takes whole files and little else, so nothing runs on it: the job's folder is on the
machine's disk, and what has changed in it is copied. A checkpoint's manifest goes last; `ended.json` is the last file
of all and says how the job ended.
"""

from __future__ import annotations

import logging
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.checkpoints import MANIFEST
from orchestrator.traces.store import Store
from pool_registry.atomic_write import draft_file
from pool_registry.pool import import_pool
from pool_registry.strict_model import StrictModel
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobRow
from trainer.rented.bundle import POOLS, TASKS

log = logging.getLogger(__name__)
ENDED, TRACES = "ended.json", "traces.db"
MIRROR_S = 10.0
SKIPPED = ("draft", "stop")  # of a job's folder


class JobEnd(StrictModel):
    """How a job ended on its rented machine, the `attempt`-th that it had."""

    attempt: int
    state: str
    code: str = ""
    message: str = ""


def unpack_job(sent: Path, written: Path, store: Store, job_folder: JobFolder) -> None:
    """Take in the pools and tasks that were sent, and what the job had written before on another machine."""
    for file in sorted((sent / POOLS).glob("*.json")):
        store.pools.save(import_pool(file.read_text(encoding="utf-8")))
    tasks = store.home.root / TASKS
    tasks.mkdir(exist_ok=True)
    for file in (sent / TASKS).glob("*.jsonl"):
        shutil.copyfile(file, tasks / file.name)
    job_folder.create()
    for file in sorted(written.rglob("*")):
        target = job_folder.path / file.relative_to(written)
        if file.is_file() and file.name not in (ENDED, TRACES):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


@dataclass(slots=True)
class Mirror:
    """Copies what changes in a job's folder to the bucket, every MIRROR_S seconds and at the end of the block."""

    job_folder: JobFolder
    written: Path
    _marks: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Mirror:
        self.written.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert self._thread is not None, "the block has begun"
        self._thread.join()
        self.copy_changes()

    def _work(self) -> None:
        while not self._over.wait(MIRROR_S):
            try:
                self.copy_changes()
            except OSError:
                log.warning("the bucket could not be written; trying again", exc_info=True)

    def copy_changes(self) -> None:
        """Copy files that have changed since they were copied, manifests last, and remove checkpoints that are gone."""
        root = self.job_folder.path
        files = [path for path in root.rglob("*") if path.relative_to(root).parts[0] not in SKIPPED]
        for path in sorted(files, key=lambda path: (path.name == MANIFEST, str(path))):
            with suppress(FileNotFoundError):  # pruned since it was listed
                state = path.stat()
                mark = (state.st_mtime_ns, state.st_size)
                if path.is_file() and self._marks.get(path) != mark:
                    target = self.written / path.relative_to(root)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
                    self._marks[path] = mark
        self._remove_pruned()

    def _remove_pruned(self) -> None:
        for folder in (self.written / "checkpoints").glob("*"):
            if not (self.job_folder.checkpoints / folder.name).exists():
                (folder / MANIFEST).unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)


def write_end(row: JobRow, attempt: int, store: Store, written: Path) -> None:
    """Write the traces and then, as the last file of all, how the job ended."""
    store.traces.flush()
    with draft_file(store.home.root / TRACES) as draft, store.engine.connect() as connection:
        connection.exec_driver_sql("VACUUM INTO ?", (str(draft),))
    shutil.copyfile(store.home.root / TRACES, written / TRACES)
    end = JobEnd(attempt=attempt, state=row.state, code=row.code, message=row.message)
    (written / ENDED).write_text(end.model_dump_json(), encoding="utf-8")

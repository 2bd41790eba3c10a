"""Jobs: training that outlives the page. One queue; each job is a detached process.

A machine with GPUs runs as many jobs at a time as it has GPUs for; each gets its own. Without GPUs it is one at a time.

A job is a row (state, owner, heartbeat) and a folder (job_folder.py). Its process is known by its start in kernel ticks
and by a lock that it holds, so that neither a reused pid nor a clock that is set is mistaken for its end. The studio
only reads. A job that begins or ends starts the next one in the queue where it may run; a job that may run when it is
submitted is started by the submitting process.

    queued -> running -> done | failed | stopped        running -> stopping -> stopped
    stopped, failed -> queued (resume)              proposed -> queued (a person starts it)

A job on a cluster runs beside the one that runs here: its process hands out episodes and keeps what comes back.
The process of a job that runs on a rented machine only follows it, beside the one that runs here. When it is killed the
job goes on there: it is queued, and another process follows it.
"""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Field, Session, SQLModel, col, select

from orchestrator.engine.process_identity import find_pid, hold_folder, is_alive, this_process
from pool_registry.atomic_write import write_atomically
from pool_registry.storage.data_folder import Home
from pool_registry.storage.database import writing
from pool_registry.storage.disk_space import describe_full, is_disk_full, is_full
from trainer.errors import JobNotFound, JobRefused
from trainer.job_place import HERE, JobPlace, parse_place
from trainer.jobs.end_record import explain_end, read_end
from trainer.jobs.gpus import choose_gpus, list_gpus
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import Recipe, dump_recipe, parse_recipe

log = logging.getLogger(__name__)
ACTIVE = ("running", "stopping")
RESUMABLE = ("stopped", "failed", "proposed")
KEPT = "Its complete checkpoints are kept"
GONE_S = 86_400.0  # a host that was not heard of for so long is not waited for
STALE_S = 60.0  # an older heartbeat is shown as a warning; no process is killed for it


class JobRow(SQLModel, table=True):
    """One job. `kind` names its stages; `code` is the machine-readable reason of a failure."""

    __tablename__ = "job"

    id: str = Field(primary_key=True)
    kind: str
    name: str
    state: str = Field(default="queued", index=True)
    owner: str = ""
    stage: str = ""
    step: int = 0
    steps: int = 0
    message: str = ""
    code: str = ""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    heartbeat: datetime | None = None
    where: str = str(HERE)
    processes: int = 1
    gpus: str = ""

    @property
    def place(self) -> JobPlace:
        return parse_place(self.where)

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def own_gpus(self) -> tuple[str, ...]:
        """The GPUs that no other job gets while this one runs."""
        return tuple(self.gpus.split(",")) if self.gpus else ()


class JobStore:
    """The queue. Methods may be called from any process of this data folder."""

    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine = engine
        self._home = home
        self._hold = hold_folder(home.root)  # shows other containers and hosts that this process's jobs run

    def submit(self, recipe: Recipe, here: bool = False, key: str = "", proposed_because: str = "") -> JobRow:
        """Put a job at the end of the queue. `start_next` starts it when it may run.

        With `here` this process will run it itself: no other process starts it while this one lives. `key` is the id
        that the job has elsewhere. One that is `proposed_because` of something waits until a person resumes it.
        """
        key = key or f"{recipe.name[:32].strip('-_').replace('_', '-')}-{secrets.token_hex(3)}"
        job_folder = self.folder(key).create()
        job_folder.recipe.write_text(dump_recipe(recipe), encoding="utf-8")
        row = JobRow(id=key, kind="+".join(recipe.stages), name=recipe.name, created_at=_now(), where=recipe.where)
        row.steps, row.processes = count_steps(recipe), recipe.processes
        row.owner = this_process() if here else ""
        if proposed_because:
            row.state, row.message = "proposed", proposed_because
        with self._lock_jobs() as session:
            session.add(row)
        return row

    def folder(self, job: str) -> JobFolder:
        return JobFolder(self._home.jobs / job)

    def recipe(self, job: str) -> Recipe:
        """Read the recipe of a job. Raises InvalidRecipe when its file is damaged."""
        return parse_recipe(self.folder(job).recipe.read_text(encoding="utf-8"))

    def get(self, job: str) -> JobRow:
        """Read the row of a job. Raises JobNotFound."""
        with Session(self._engine) as session:
            row = session.get(JobRow, job)
        if row is None:
            raise JobNotFound(f"there is no job {job!r}; `python -m trainer jobs list` shows those there are")
        return self._show_end(row)

    def all(self, limit: int = 200) -> list[JobRow]:
        """List the newest jobs first, after marking those whose process is gone."""
        self.mark_lost()
        with Session(self._engine) as session:
            rows = list(session.exec(select(JobRow).order_by(col(JobRow.created_at).desc()).limit(limit)))
        return [self._show_end(row) for row in rows]

    def _show_end(self, row: JobRow) -> JobRow:
        """A job as it is, also where its end could not be written down: the row itself is left alone."""
        if not row.active or row.place.is_rented:
            return row
        record = read_end(self.folder(row.id).end, row.owner)
        if (record is None or not record.state) and self._is_alive(row):
            return row
        state, code, message = self._explain_loss(row)
        return JobRow(**{**row.model_dump(), "state": state, "code": code, "message": message})

    def rename(self, job: str, name: str) -> None:
        """Give a job another name for people; its id stays. Raises JobNotFound."""
        with self._lock_jobs() as session:
            row = self._row(session, job)
            row.name = name
            session.add(row)
            write_atomically(self.folder(job).name, name)  # of two people who rename it, the last one is in both

    def find_running(self) -> JobRow | None:
        """Return a job that runs on this machine now, if any."""
        self.mark_lost()
        with Session(self._engine) as session:
            return next(iter(self._list_running(session)), None)

    def find_blocking(self, job: JobRow) -> JobRow | None:
        """Return a job of this machine that has to end before this one may start, if any."""
        gpus = list_gpus()
        self.mark_lost()
        with Session(self._engine) as session:
            running = self._list_running(session)
        waits = choose_gpus(job.processes, gpus, [other.own_gpus for other in running]) is None
        return running[0] if waits else None

    @staticmethod
    def _list_running(session: Session) -> list[JobRow]:
        here = select(JobRow).where(col(JobRow.state).in_(ACTIVE), JobRow.where == str(HERE))
        return list(session.exec(here.order_by(col(JobRow.started_at))).all())

    def stop(self, job: str) -> JobRow:
        """Ask a job to save a checkpoint and end; a queued one leaves the queue. Raises JobRefused."""
        self.mark_lost()
        with self._lock_jobs() as session:
            row = self._row(session, job)
            if row.state == "queued":
                row.state, row.ended_at = "stopped", _now()
            elif row.state in ACTIVE:
                self.folder(job).stop_file.touch()
                row.state = "stopping"
            else:
                raise JobRefused(f"job {job} is {row.state}: there is nothing to stop")
            session.add(row)
        return row

    def resume(self, job: str, max_cost: float | None = None) -> JobRow:
        """Put a stopped, failed or proposed job into the queue; it goes on from its last complete checkpoint.
        `max_cost` lets it spend so many US dollars in all.

        Raises JobRefused, and InvalidRecipe where it has no cap.
        """
        self.mark_lost()
        with self._lock_jobs() as session:
            row = self._row(session, job)
            if row.state not in RESUMABLE:
                raise JobRefused(f"job {job} is {row.state}: only stopped, failed and proposed jobs can be resumed")
            if max_cost is not None:
                write_atomically(self.folder(job).recipe, dump_recipe(self.recipe(job).with_max_cost(max_cost)))
            self.folder(job).stop_file.unlink(missing_ok=True)
            if row.place.is_rented:
                self.folder(job).begin_attempt()
            row.state, row.owner, row.message, row.code, row.ended_at = "queued", "", "", "", None
            row.created_at = _now()
            session.add(row)
        return row

    def claim(self, job: str) -> bool:
        """Make this process the owner of a queued job, with GPUs of its own where this machine has some.

        False when it is not queued, or has to wait for other jobs.
        """
        gpus = list_gpus()
        self.mark_lost()
        with self._lock_jobs() as session:
            row = self._row(session, job)
            taken = [other.own_gpus for other in self._list_running(session)]
            own = choose_gpus(row.processes, gpus, taken) if row.place.is_here else ()
            if own is None or row.state != "queued":
                return False
            row.state, row.owner, row.gpus = "running", this_process(), ",".join(own)
            row.heartbeat = _now()
            if not row.started_at or not row.place.is_rented:  # one that is followed again has run all the while
                row.started_at = row.heartbeat
            session.add(row)
        return True

    def beat(self, job: str, stage: str, step: int, steps: int | None = None) -> None:
        """Record that the job's process is alive and at which step; `steps` replaces the total where it is given."""
        with self._lock_jobs() as session:
            row = self._row(session, job)
            row.steps = row.steps if steps is None else steps
            row.heartbeat, row.stage, row.step = _now(), stage, step
            session.add(row)

    def finish(self, job: str, state: str, code: str = "", message: str = "") -> None:
        """Record how the job ended."""
        with self._lock_jobs() as session:
            row = self._row(session, job)
            row.state, row.code, row.message, row.ended_at = state, code, message, _now()
            session.add(row)

    def mark_lost(self) -> None:
        """Mark active jobs whose process is gone as failed (or stopped), so that they can be resumed.

        Those that run on rented machines are followed by another process.
        """
        with Session(self._engine) as session:
            rows = session.exec(select(JobRow).where(col(JobRow.state).in_(ACTIVE))).all()
        for row in rows:
            if not self._is_alive(row) and self._try_to_mark(row) and row.place.is_rented:
                self._start(row)

    def _try_to_mark(self, row: JobRow) -> bool:
        """Mark a lost job; False where that is done, or cannot be written now: it is lost on a disk with room, too."""
        try:
            return self._mark_one_lost(row.id, row.owner)
        except SQLAlchemyError as error:
            if not is_disk_full(error, self._home.root):
                raise
            log.warning("job %s has ended, which cannot be written: %s", row.id, describe_full(self._home.root))
            return False

    def _is_alive(self, row: JobRow) -> bool:
        """Whether a job's process still runs. On a host that cannot be asked, it does while it is heard of."""
        heard = row.heartbeat or row.created_at
        silent_s = (_now() - heard.replace(tzinfo=UTC)).total_seconds()
        if silent_s > GONE_S and find_pid(row.owner) is None:
            return False
        return is_alive(row.owner, self._home.root)

    def _mark_one_lost(self, job: str, owner: str) -> bool:
        """Mark a job; False when another process has done so, or has taken it over."""
        with self._lock_jobs() as session:
            row = self._row(session, job)
            if row.state not in ACTIVE or row.owner != owner:
                return False
            if row.place.is_rented:
                row.state, row.owner = "queued", ""
            else:
                row.state, row.code, row.message = self._explain_loss(row)
                row.ended_at = _now()
            session.add(row)
        return True

    def _explain_loss(self, row: JobRow) -> tuple[str, str, str]:
        """How a job ended whose process is gone: (state, code, message); by its own account if there is one."""
        record = read_end(self.folder(row.id).end, row.owner)
        if record is not None and record.state:
            return record.state, record.code, record.message
        if is_full(self._home.root):
            return "failed", "disk_full", f"{describe_full(self._home.root)}; then resume. {KEPT}"
        state, code = ("stopped", "") if row.state == "stopping" else ("failed", "killed")
        return state, code, explain_end(record, row.owner)

    def start_next(self) -> str | None:
        """Start the oldest queued job as a detached process when it may run now. Returns its id, or None."""
        with Session(self._engine) as session:
            waiting = select(JobRow).where(JobRow.state == "queued", JobRow.where == str(HERE))
            rows = session.exec(waiting.order_by(col(JobRow.created_at))).all()
        # On a database that several hosts share, a job is run where its folder is.
        row = next((row for row in rows if self.folder(row.id).recipe.is_file()), None)
        return self._start(row) if row and self.find_blocking(row) is None else None

    def start(self, job: str) -> bool:
        """Start a queued job that may start now: the oldest of this machine's, or any other one. Returns whether
        it starts."""
        row = self.get(job)
        return (self.start_next() if row.place.is_here else self._start(row)) == job

    def start_rented(self) -> None:
        """Start every queued job that runs elsewhere, such as one whose process ended before it had claimed it."""
        with Session(self._engine) as session:
            waiting = select(JobRow).where(JobRow.state == "queued", JobRow.where != str(HERE))
            rows = session.exec(waiting).all()
        for row in rows:
            self._start(row)

    def _start(self, row: JobRow) -> str | None:
        """Start the process of a queued job, unless another one waits with it, or its folder is on another host."""
        waits = row.state == "queued" and row.owner and is_alive(row.owner, self._home.root)
        if waits or not self.folder(row.id).recipe.is_file():
            return None
        command = [sys.executable, "-m", "trainer", "run", row.id, "--home", str(self._home.root)]
        _spawn(command, self.folder(row.id))
        return row.id

    @contextmanager
    def _lock_jobs(self) -> Iterator[Session]:
        """Open a write session that excludes writes of other processes."""
        with writing(self._engine, "job") as session:
            yield session

    @staticmethod
    def _row(session: Session, job: str) -> JobRow:
        row = session.get(JobRow, job)
        if row is None:
            raise JobNotFound(f"there is no job {job!r}; `python -m trainer jobs list` shows those there are")
        return row


def count_steps(recipe: Recipe) -> int:
    """The optimizer steps of a recipe; of one that only evaluates, its episodes."""
    steps = recipe.training_stages[-1].end if recipe.trains else 0
    return int(recipe.evaluate.episodes if recipe.evaluate is not None and not steps else steps)


def _spawn(command: Sequence[str], job_folder: JobFolder) -> None:
    """Start a process in a session of its own: it outlives the studio, the terminal and the browser."""
    with job_folder.log.open("ab") as log:
        subprocess.Popen(  # noqa: S603  our own interpreter and module, no shell
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=job_folder.path,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )


def _now() -> datetime:
    return datetime.now(UTC)

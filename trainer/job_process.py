"""The process of a job: claims it from the queue, runs its stages, keeps its row up to date, explains failures."""

from __future__ import annotations

import errno
import logging
import os
import signal
import threading
import time
from dataclasses import dataclass
from types import FrameType

from sqlalchemy.exc import SQLAlchemyError

from orchestrator.checkpoints import complete_steps
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.calls.patience import RATE_LIMITED
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.disk_space import describe_full, is_disk_full
from trainer.errors import InvalidRecipe, SpendCapReached, TrainerError, TrainingFailed
from trainer.jobs.end_record import reserve_end, write_end, write_signal
from trainer.jobs.gpus import see_only
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import KEPT, JobRow, JobStore
from trainer.jobs.thread_start_watch import ThreadStartWatch
from trainer.jobs.tracked import track_job
from trainer.learner.generator import is_out_of_memory
from trainer.learner.ranks import SPENT, RankEnd, join_ranks, leave_ranks
from trainer.memory_fit.advice import list_edits
from trainer.memory_fit.gpu_state import describe_other_programs
from trainer.notices.send import Notice, notify
from trainer.notices.settings import NoticeKind
from trainer.recipe import EVALUATE, WHO, Recipe

log = logging.getLogger(__name__)
PLAYS = (WHO, EVALUATE)  # the stages that play episodes and take no steps
BEAT_S = 5.0
FULL_S = 15.0  # for so long the disk may be full before the job ends: somebody may be clearing it
NO_THREAD = "can't start new thread"  # all that Python says of it


@dataclass(slots=True)
class _JobProgress:
    """How far the job is, shared with the heartbeat. `steps` is the total where it is only known while it runs."""

    stage: str = ""
    steps: int | None = None


def run_job(job: str, store: Store, jobs: JobStore) -> bool:
    """Run a queued job in this process.

    Returns True when it is done or was stopped on request, False when it failed or could not be claimed. Failures of
    training are never raised: the job's row describes them.
    """
    if not jobs.claim(job):
        log.info("job %s cannot start now: it waits for others, or it is not queued", job)
        return False
    job_folder = jobs.folder(job)
    try:
        reserve_end(job_folder.end)
    except OSError as error:
        state, code, message = "failed", *explain_job_failure(error, None, job_folder)
    else:
        jobs.start_next()  # where there are GPUs for it, too
        with _StopSignals(job_folder) as stop, _Heartbeat(jobs, job, job_folder) as progress:
            state, code, message = _run(job, store, jobs, job_folder, progress)
        if state == "stopped" and not code and stop.number:
            message = f"{_name_signal(stop.number)}; resume goes on from its checkpoint"
    _finish(job, jobs, state, code, message)
    return state != "failed"


def _name_signal(number: int) -> str:
    name = signal.Signals(number).name
    who = "Ctrl-C" if number == signal.SIGINT else "a person, a time limit, or the machine that was shut down"
    return f"asked to end by {name} ({who})"


def _finish(job: str, jobs: JobStore, state: str, code: str, message: str) -> None:
    """Write how a job ended, and start what waits for it. Where the database cannot be written the job's folder says
    it, and whoever looks at the job next writes it down."""
    log.info("job %s is %s%s", job, state, f": {message}" if message else "")
    write_end(jobs.folder(job).end, state, code, message)
    try:
        jobs.finish(job, state, code, message)
        jobs.start_next()
        jobs.start_rented()
    except SQLAlchemyError as error:
        log.error("the database cannot be written (%s); %s says how the job ended", error, jobs.folder(job).end)
    kind: NoticeKind = "cap_reached" if code == SPENT else "job_ended"
    notify(find_home(), Notice(kind=kind, title=f"Job {job} is {state}", text=message, job=job))


def _run(job: str, store: Store, jobs: JobStore, job_folder: JobFolder, progress: _JobProgress) -> tuple[str, str, str]:
    recipe: Recipe | None = None

    def on_stage(stage: str, steps: int) -> None:
        progress.stage = stage
        if recipe is not None and recipe.stages == (stage,) and stage in PLAYS:
            progress.steps = steps
        log.info("stage %s: %d %s", stage, steps, "episodes" if stage in PLAYS else "steps")

    try:
        recipe = jobs.recipe(job)
        if recipe.place.is_rented:
            from trainer.rented.follow import run_rented

            finished = run_rented(job, recipe, store, jobs, on_stage)
        else:
            from trainer.run_recipe import load_pool, run_recipe

            row = jobs.get(job)
            _refuse_too_few(row)
            with see_only(row.own_gpus), track_job(recipe.track, job, store, job_folder):
                finished = run_recipe(recipe, store, load_pool(store, recipe.pool), job_folder, on_stage)
    except Exception as error:
        code, message = explain_job_failure(error, recipe, job_folder)
        if code == SPENT or (code == RATE_LIMITED and job_folder.stop_requested):
            return "stopped", code, message
        log.exception("job %s failed (%s)", job, code)
        return "failed", code, message
    return ("done", "", "") if finished else ("stopped", "", "stopped on request; resume goes on from its checkpoint")


def _refuse_too_few(row: JobRow) -> None:
    """Raise TrainingFailed where a machine with GPUs has fewer than the job has processes."""
    if row.gpus and len(row.own_gpus) < row.processes:
        count = len(row.own_gpus)
        raise TrainingFailed(
            "gpus",
            f"processes: {row.processes} needs as many GPUs, and here are {count} for it: set processes: {count}",
        )


def train_as_rank(job: str, stage: str, part: int, parent: int, store: Store, jobs: JobStore) -> RankEnd:
    """Train a part of a stage of a job as one of several processes. Never raises.

    `parent` is the pid of the job's process, with which this one ends.
    """
    from trainer.run_recipe import load_pool, train_part

    recipe = jobs.recipe(job)
    try:
        join_ranks(parent)
        pool = load_pool(store, recipe.pool)
        finished = train_part(recipe, store, pool, jobs.folder(job), stage, part)
        leave_ranks()
        return RankEnd(finished=finished)
    except Exception as error:
        code, message = explain_job_failure(error, recipe, jobs.folder(job))
        log.exception("process %s failed (%s)", os.environ["RANK"], code)
        return RankEnd(code=code, message=message)


def explain_job_failure(
    error: BaseException, recipe: Recipe | None, job_folder: JobFolder | None = None
) -> tuple[str, str]:
    """Explain why a job failed: (machine-readable code, sentence with the next action)."""
    if isinstance(error, BaseExceptionGroup):
        return explain_job_failure(error.exceptions[0], recipe, job_folder)
    if isinstance(error, SpendCapReached):
        return SPENT, str(error)
    if isinstance(error, TrainingFailed):
        return error.code, str(error)
    if isinstance(error, InvalidRecipe):
        return "recipe", str(error)
    if isinstance(error, WorkerFault):
        return error.code, str(error)
    if is_out_of_memory(error):  # also where it is in the log of a vLLM server that did not start
        others = describe_other_programs()
        used = f"The GPU is also used by {others}; end that, or make the job smaller. " if others else ""
        return "out_of_memory", f"not enough memory. {used}{suggest_smaller(recipe)}. Its checkpoints are kept"
    if NO_THREAD in str(error):
        few = "not enough memory for another thread, or too few processes are allowed (ulimit -u)"
        return "out_of_memory", f"{few}. {suggest_smaller(recipe)}. Its checkpoints are kept"
    place = job_folder.path if job_folder is not None else find_home().root
    if is_disk_full(error, place):
        return "disk_full", f"{describe_full(place, measure_checkpoints(job_folder))}; then resume. {KEPT}"
    if isinstance(error, TrainerError | PoolError | OrchestratorError):
        return type(error).__name__, str(error)
    return "unexpected", f"{type(error).__name__}: {str(error)[:500]}; the log holds the details. Resume tries again"


def measure_checkpoints(job_folder: JobFolder | None) -> int:
    """The bytes that two checkpoints like the newest take: it is written before the oldest is removed."""
    steps = complete_steps(job_folder.checkpoints) if job_folder is not None else []
    files = steps[-1][1].rglob("*") if steps else ()
    return 2 * sum(file.stat().st_size for file in files if file.is_file())


def suggest_smaller(recipe: Recipe | None) -> str:
    """Name concrete edits that need less memory."""
    if recipe is None:
        return "Make the batch smaller"
    edits = [edit[0] for change in list_edits(recipe) if (edit := change(recipe)) is not None]
    return f"Change one of these and start again: {'; '.join(edits)}" if edits else "Choose a smaller base model"


class _Heartbeat:
    """Writes the job's row every BEAT_S seconds while the block runs, in a thread of its own.

    It also ends a job that waits for a thread which got no memory to start, and one whose disk stays full: nothing that
    it learns from then on could be kept.
    """

    def __init__(self, jobs: JobStore, job: str, job_folder: JobFolder) -> None:
        self._jobs, self._job, self._job_folder = jobs, job, job_folder
        self._progress = _JobProgress()
        self._over = threading.Event()
        self._starts = ThreadStartWatch()
        self._refused_since: float | None = None
        self._thread = threading.Thread(target=self._work, name="heartbeat", daemon=True)

    def __enter__(self) -> _JobProgress:
        self._thread.start()
        return self._progress

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._beat()

    def _work(self) -> None:
        while not self._over.wait(BEAT_S):
            self._beat()
            if self._starts.is_stuck():
                self._end_process(RuntimeError(NO_THREAD))
            if self._refused_since is not None and time.monotonic() - self._refused_since >= FULL_S:
                self._end_process(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def _end_process(self, error: Exception) -> None:
        """Say what keeps the job from going on, and end the process from this thread: the main thread may never end."""
        try:
            code, message = explain_job_failure(error, self._jobs.recipe(self._job), self._job_folder)
            _finish(self._job, self._jobs, "failed", code, message)
        finally:  # what the row does not say then, the queue finds: the process is gone
            os._exit(1)

    def _beat(self) -> None:
        rows = read_lines(self._job_folder.metrics)
        step = max((int(str(row.get("step", 0))) for row in rows), default=0)
        try:
            self._jobs.beat(self._job, self._progress.stage, step, self._progress.steps)
        except SQLAlchemyError as error:
            if self._refused_since is None:  # once: the log lies on the same disk
                log.warning("the heartbeat could not be written: %s", error)
            if is_disk_full(error, self._job_folder.path):
                self._refused_since = self._refused_since or time.monotonic()
            return
        except Exception:
            log.warning("the heartbeat could not be written", exc_info=True)
        self._refused_since = None


class _StopSignals:
    """While the block runs, SIGTERM and SIGINT stop the job with a checkpoint instead of killing it."""

    def __init__(self, job_folder: JobFolder) -> None:
        self._job_folder = job_folder
        self.number = 0  # of the signal that asked
        self._previous: dict[int, object] = {}

    def __enter__(self) -> _StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        log.info("asked to stop (signal %d): saving a checkpoint first", number)
        self.number = number
        write_signal(self._job_folder.end, number)
        self._job_folder.stop_file.touch()

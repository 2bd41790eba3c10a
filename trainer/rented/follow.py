"""Follows a job on a rented machine as if it ran here: its log, figures, checkpoints and end arrive in its folder.

The machine is found by the job's label and the number of the attempt, so that a process that takes over after a kill
rents no second one. A network that fails is waited for: the machine goes on by itself, and ends at its time limit.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.checkpoints import MANIFEST, read_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.traces.copy_episodes import copy_episodes
from orchestrator.traces.store import Store
from trainer.errors import SpendCapReached, TrainingFailed
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe
from trainer.rented.bundle import build_bundle, build_command
from trainer.rented.hub_jobs import HubJobs, WrittenFile, open_hub_jobs
from trainer.rented.inside import ENDED, TRACES, JobEnd
from trainer.rented.plan import RentalPlan, plan_rental, refuse_problems

if TYPE_CHECKING:
    from huggingface_hub import JobInfo

log = logging.getLogger(__name__)
POLL_S = 5.0
GIVE_UP_S = 6 * 3600.0  # without an answer of the Hub
SENDS = 5  # tries to rent a machine through a network that fails
LAST_LINES_S = 30.0  # for the end of the log
LAST_LOOKS = 3  # for files that the mount writes after the machine has ended
NOT_FETCHED = ("log.txt", "recipe.yaml", "name.txt", "attempt.json", ENDED)  # files of the folder here, or of the end
OVER = ("COMPLETED", "CANCELED", "ERROR", "DELETED")
OnStage = Callable[[str, int], None]


def run_rented(job: str, recipe: Recipe, store: Store, jobs: JobStore, on_stage: OnStage) -> bool:
    """Run a job on the machine that its recipe names, or follow the one that it has. Returns False when stopped.

    Raises TrainingFailed or SpendCapReached with what happened there.
    """
    hub = open_hub_jobs()
    follower = _Follower(job, recipe, store, jobs.folder(job), hub, on_stage)
    rented = follower.find_machine()
    if rented is None:
        plan = plan_rental(recipe, store, jobs, hub)
        refuse_problems(plan)
        rented = follower.rent(plan)
    return follower.follow(rented)


@dataclass(slots=True)
class _Follower:
    job: str
    recipe: Recipe
    store: Store
    job_folder: JobFolder
    hub: HubJobs
    on_stage: OnStage
    _fetched: dict[str, str] = field(default_factory=dict)  # path -> the mark of what was fetched
    _stage: str = ""
    _cancelled: bool = False

    def find_machine(self) -> JobInfo | None:
        """The machine that the job has: one that runs, or the one of this attempt, which may have ended."""
        rented = self.hub.find(self.job)
        running = [info for info in rented if info.status.stage not in OVER]
        this_attempt = [info for info in rented if (info.labels or {}).get("attempt") == str(self.job_folder.attempt)]
        return next(iter([*running, *this_attempt]), None)

    def rent(self, plan: RentalPlan) -> JobInfo:
        """Send the job and rent a machine for it. Where an answer is lost, the machine is looked for first."""
        attempt, seconds = self.job_folder.attempt, int(plan.max_hours * 3600)
        secrets = plan.resolve_secrets(str(self.hub.api.token))
        self.hub.ensure_bucket()
        bundle = build_bundle(self.job, self.recipe, plan.pools, plan.packages)
        revision = self.hub.send_files(bundle, f"Job {self.job}")
        command = build_command(self.job, attempt, plan.packages)
        for trial in range(SENDS):
            try:
                lost = self.find_machine() if trial else None
                flavor = plan.machine.flavor
                return lost or self.hub.rent(self.job, attempt, flavor, command, revision, secrets, seconds)
            except TrainingFailed as error:
                if error.code != "network" or trial == SENDS - 1:
                    raise
                log.warning("%s", error)
                time.sleep(POLL_S)
        raise AssertionError("the last try returns or raises")

    def follow(self, rented: JobInfo) -> bool:
        """Follow a machine to its end and say how the job ended."""
        log.info("job %s runs on %s: %s", self.job, self.recipe.where, rented.url)
        copying = threading.Thread(target=self._copy_log, args=(rented,), name="rented log", daemon=True)
        copying.start()
        last_answer = time.monotonic()
        while True:
            try:
                info = self._look(rented)
                last_answer = time.monotonic()
                if info.status.stage in OVER:
                    end = self._fetch_end()
                    break
            except TrainingFailed as error:
                self._bear(error, rented, time.monotonic() - last_answer)
            self._wait()
        copying.join(LAST_LINES_S)
        self._complete_log(rented)
        return self._conclude(info, end)

    def _look(self, rented: JobInfo) -> JobInfo:
        """Pass on a wish to stop, and fetch what is new. What the machine wrote before it ended is fetched after."""
        if self.job_folder.stop_requested and not self._cancelled:
            self.hub.cancel(rented)
            self._cancelled = True
        info = self.hub.inspect(rented)
        self.fetch_changes()
        return info

    def _bear(self, error: TrainingFailed, rented: JobInfo, silent_s: float) -> None:
        """Wait through a network that fails. Raises what waiting does not mend."""
        if error.code == "bucket":
            self.hub.cancel(rented)
            raise TrainingFailed(
                "bucket", f"the bucket {self.hub.repository} is gone, and what the job writes with it; its machine was "
                "given back. What came before is here; resume rents another one"
            ) from error  # fmt: skip
        if error.code != "network" or silent_s > GIVE_UP_S:
            raise TrainingFailed(
                error.code, f"{error}. The job goes on there until its time limit; resume follows it again"
            ) from error
        log.warning("%s", error)

    def _wait(self) -> None:
        """Wait for the next look; a wish to stop ends the wait."""
        until = time.monotonic() + POLL_S
        while time.monotonic() < until and (self._cancelled or not self.job_folder.stop_requested):
            time.sleep(min(0.2, POLL_S))

    def _copy_log(self, rented: JobInfo) -> None:
        """Write the machine's log into the job's, from its first line on: a process before may have got so far, too.
        Where the connection breaks, it begins again."""
        while True:
            self.job_folder.log.write_bytes(b"")
            try:
                with self.job_folder.log.open("a", encoding="utf-8") as file:
                    for line in self.hub.follow_log(rented):
                        file.write(line.rstrip("\n") + "\n")
                        file.flush()
                return
            except TrainingFailed as error:
                log.warning("%s", error)
                if error.code != "network":
                    return
                time.sleep(POLL_S)

    def _complete_log(self, rented: JobInfo) -> None:
        """Write the log of a machine that has ended as a whole: a stream that breaks off may lack its last lines."""
        try:
            lines = self.hub.read_log(rented)
        except TrainingFailed as error:
            log.warning("the end of the machine's log may be missing: %s", error)
            return
        if lines:
            self.job_folder.log.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")

    def fetch_changes(self) -> None:
        """Fetch the files that have changed since they were fetched, and the checkpoints that are complete there."""
        files = self.hub.list_written(self.job)
        for file in files:
            plain = "checkpoints/" not in file.path and file.path not in (*NOT_FETCHED, TRACES)
            new = plain and self._fetched.get(file.path) != file.mark
            if new and self.hub.fetch(self.job, file.path, self.job_folder.path / file.path):
                self._fetched[file.path] = file.mark
        for step in _list_complete(files):
            if not (self.job_folder.checkpoints / step).exists():
                self._fetch_checkpoint(step, files)
        self._tell_stage()

    def _fetch_checkpoint(self, step: str, files: list[WrittenFile]) -> None:
        """Fetch a checkpoint, all or nothing: it is moved to the others once its files match their hashes."""
        draft = self.job_folder.path / "fetched" / step
        shutil.rmtree(draft, ignore_errors=True)
        prefix = f"checkpoints/{step}/"
        for file in files:
            if file.path.startswith(prefix):
                self.hub.fetch(self.job, file.path, draft / file.path.removeprefix(prefix))
        try:
            read_checkpoint(draft, verify=True)
        except UnknownOrchestrator as error:  # pruned or written again while it was fetched
            log.info("checkpoint %s did not arrive whole: %s; trying again", step, error)
            return
        self.job_folder.create()
        draft.rename(self.job_folder.checkpoints / step)

    def _tell_stage(self) -> None:
        rows = read_lines(self.job_folder.metrics)
        stage = str(rows[-1].get("stage", "")) if rows else self._stage
        if stage in self.recipe.stages and stage != self._stage:
            self._stage = stage
            self.on_stage(stage, _count_stage_steps(self.recipe, stage))

    def _conclude(self, info: JobInfo, end: JobEnd | None) -> bool:
        """Say how the job ended: by its own account, or by what the Hub says of a machine that was cut off."""
        if end is None:
            raise_early_end(info, self.recipe, stopped=self.job_folder.stop_requested)
            return False
        if end.code == "max_cost":
            raise SpendCapReached(end.message)
        if end.state == "failed":
            raise TrainingFailed(end.code, end.message)
        return end.state == "done"

    def _fetch_end(self) -> JobEnd | None:
        """Fetch what was written last, and how this attempt ended by its own account; None where it was cut off."""
        file = self.job_folder.path / ENDED
        for look in range(LAST_LOOKS):
            time.sleep(POLL_S if look else 0)
            self.fetch_changes()
            end = read_end(file) if self.hub.fetch(self.job, ENDED, file) else None
            if end is not None and end.attempt == self.job_folder.attempt:
                self._fetch_traces()
                return end
        return None

    def _fetch_traces(self) -> None:
        """Put the episodes that were recorded there among those of this data folder."""
        file = self.job_folder.path / TRACES
        if not self.hub.fetch(self.job, TRACES, file):
            return
        log.info("%d episodes came back", copy_episodes(file, self.store.engine))
        file.unlink()


def raise_early_end(info: JobInfo, recipe: Recipe, stopped: bool) -> None:
    """Raise TrainingFailed saying why a machine ended before its job did; a stop that was asked for is no failure."""
    stage, message = str(getattr(info.status.stage, "value", info.status.stage)), info.status.message or ""
    seconds = (info.durations.running_secs if info.durations else None) or 0
    if stopped:
        return
    if "timeout" in message.lower() or seconds >= recipe.max_hours * 3600:
        raise TrainingFailed(
            "timeout", f"the machine was given back after {recipe.max_hours:g} hours, its time limit. Its checkpoints "
            "are here; resume rents another one and goes on from the last"
        )  # fmt: skip
    if stage == "CANCELED":
        raise TrainingFailed("cancelled", "the machine was given back at the Hub; resume rents another one")
    detail = f" ({message})" if message else ""
    raise TrainingFailed(
        "machine", f"the rented machine ended with {stage}{detail} before the job did. Its log says why; resume rents "
        "another one and goes on from the last checkpoint"
    )  # fmt: skip


def read_end(file: Path) -> JobEnd | None:
    """Read how a job ended; None for a file that is not whole yet."""
    try:
        return JobEnd.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, ValidationError):
        return None


def _list_complete(files: list[WrittenFile]) -> list[str]:
    """The steps of the checkpoints whose manifest is there, oldest first."""
    parts = [file.path.split("/") for file in files]
    steps = {part[1] for part in parts if len(part) == 3 and part[0] == "checkpoints" and part[2] == MANIFEST}
    return sorted((step for step in steps if step.isdigit()), key=int)


def _count_stage_steps(recipe: Recipe, stage: str) -> int:
    section = getattr(recipe, stage)
    return int(section.episodes if stage == "evaluate" else getattr(section, "all_steps", section.steps))

"""Where an improvement works: the data folder's store and its jobs, and who hears how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.traces.store import Store
from trainer.errors import TrainingFailed
from trainer.improve.record import Improvement
from trainer.job_process import run_job
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe

WAIT_S = 1.0  # between two looks at a job that waits, or runs in another process


@dataclass(frozen=True, slots=True)
class Site:
    """An open data folder. `tell` is given a line now and then."""

    store: Store
    jobs: JobStore
    tell: Callable[[str], None]

    def run_job(self, improvement: Improvement, part: str, recipe: Recipe) -> str:
        """Run the job of a part of an improvement, or go on with it where it stopped; returns its id. Raises
        TrainingFailed where it does not end well: calling this again goes on."""
        job = improvement.plan.jobs.get(part)
        if job is None:
            job = self.jobs.submit(recipe, here=True).id
            improvement.update(jobs={**improvement.plan.jobs, part: job})
        if self.jobs.get(job).state in ("stopped", "failed"):
            self.jobs.resume(job, improvement.plan.max_cost)
        self.tell(f"{part}: job {job}")
        self._wait_until_over(job)
        row = self.jobs.get(job)
        if row.state != "done":
            reason = row.message or f"the job is {row.state}"
            raise TrainingFailed(row.code or row.state, f"{reason} (job {job}). Improve again to go on from there")
        return job

    def _wait_until_over(self, job: str) -> None:
        while (row := self.jobs.get(job)).state == "queued" or row.active:
            if row.state == "queued":
                run_job(job, self.store, self.jobs)
            if self.jobs.get(job).state == "queued" or row.active:  # it waits for another job, or runs elsewhere
                time.sleep(WAIT_S)

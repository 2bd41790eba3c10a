"""The stage `who` of a job: every agent answers questions to learn from alone, and the success predictor of the pool is
trained on what was right.

Answers are ordinary recorded episodes of `direct:AGENT`, so that they count as outcomes everywhere, and a question that
was answered is not asked again: a job that was killed, was stopped or reached its cap goes on with the missing ones.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.traces.store import Store
from pool_registry.atomic_write import write_atomically
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from trainer.choice.own_log import read_own_log, read_record_to_learn_from
from trainer.errors import TrainingFailed
from trainer.evaluation.stage import EvaluationStage
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import WHO
from trainer.recipe_sections import EVERY_AGENT, EvaluateSettings, TaskSettings, WhoSettings

if TYPE_CHECKING:
    from trainer.choice.own import OwnFigures
    from trainer.choice.own_log import OwnLog

log = logging.getLogger(__name__)


class OutcomeFolder(JobFolder):
    """A job's folder in which the answers of single agents stand apart from what the job evaluates."""

    @property
    def results(self) -> Path:
        return self.outcomes

    @property
    def evaluations(self) -> Path:
        return self.path / "agents.jsonl"


@dataclass(frozen=True, slots=True)
class OutcomeStage:
    """The stage, for one pool and the tasks that its job learns from."""

    settings: WhoSettings
    tasks: TaskSettings
    pool: Pool
    store: Store
    job_folder: JobFolder

    def run(self, on_start: Callable[[int], None]) -> bool:
        """Collect the missing outcomes and train; `on_start` is given the number of questions put to agents. Returns
        False when stopped on request. Raises TrainingFailed where the pool has fewer than two agents, SpendCapReached,
        and what a source or a pool raises that cannot be used."""
        if len(self.pool.agents()) < 2:
            raise TrainingFailed(
                "agents", f"the pool {self.pool.name} has fewer than two agents to choose from: leave out `{WHO}`"
            )
        if self.job_folder.who.is_file():
            return True
        if not asyncio.run(self._collect(on_start)):
            return False
        self.store.traces.flush()
        sentence, figures = self._train()
        log.info("%s", sentence)
        document = {"sentence": sentence, "figures": None if figures is None else asdict(figures)}
        write_atomically(self.job_folder.who, json.dumps(document, indent=1))
        return True

    async def _collect(self, on_start: Callable[[int], None]) -> bool:
        """Have every agent answer. Returns whether all did."""
        settings = self.settings
        evaluation = EvaluateSettings(
            orchestrators=(EVERY_AGENT,),
            source=self.tasks.source,
            levels=self.tasks.levels,
            split="train",
            count=min(settings.questions, self.tasks.count),
            samples=settings.tries,
            seed=settings.seed,
            max_cost=settings.max_cost,
            concurrency=settings.concurrency,
        )
        names, folder = list(evaluation.orchestrators), OutcomeFolder(self.job_folder.path)
        return await EvaluationStage(evaluation, names, self.pool, self.store, folder, step=0, stage=WHO).run(on_start)

    def _train(self) -> tuple[str, OwnFigures | None]:
        """Train the predictor on the pool's whole log. Returns what came of it: a sentence, and figures if any."""
        from orchestrator.choice.predictor import check_installed
        from trainer.choice.own import train_own

        check_installed()
        try:
            outcomes = asyncio.run(self._read_log())
        except TrainingFailed as error:  # too few to learn from: the one that ships reads them all the same
            return f"The success predictor was not trained, the one that ships reads the outcomes: {error}.", None
        figures = train_own(self.pool.name, outcomes, self.settings.minutes, self.settings.seed, log.info)
        before, after = figures.before, figures.after
        kept = "is better on held-out questions and is used from now on" if figures.is_better else "was not kept"
        sentence = (
            f"The success predictor, trained on {figures.outcomes:,} outcomes of {figures.questions:,} questions, "
            f"{kept}: log loss {before.log_loss:.3f} before, {after.log_loss:.3f} after."
        )
        return sentence, figures

    async def _read_log(self) -> OwnLog:
        record = read_record_to_learn_from(self.store.engine, self.pool.name)
        async with live_pool(self.pool) as live:
            return await asyncio.to_thread(read_own_log, live, record)

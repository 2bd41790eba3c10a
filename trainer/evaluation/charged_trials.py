"""Trials on the account of a job: what a cap or a peer did not let come to an end is no result, and is run again."""

from __future__ import annotations

from dataclasses import dataclass

from pool_registry.calls.spending import Spending, charge_calls_to
from trainer.evaluation.trials import Trial, TrialRunner
from trainer.results.rows import ResultRow


@dataclass(frozen=True, slots=True)
class ChargedTrials:
    """Runs the trials of `runner`, each charged to an account of its own within that of the job."""

    runner: TrialRunner
    spending: Spending

    async def run(self, trial: Trial) -> ResultRow | None:
        own = Spending(parent=self.spending)
        with charge_calls_to(own):
            row = await self.runner.run(trial)
        return None if own.refused or own.lost else row

    async def close(self) -> None:
        await self.runner.close()

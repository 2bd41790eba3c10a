"""The phases of GRPO: the main run, then those of the recipe (`grpo.phases`), one trainer through all of them.

The weights, the optimizer's state and the backend go on from one phase to the next. Each phase has a schedule of the
learning rate of its own, with its own warm-up, because it is a fine-tune of what the one before has left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.methods.grpo.section import GrpoSettings, RecursionSettings
from trainer.recipe import Recipe
from trainer.recipe_sections import OptimizerSettings, TaskSettings
from trainer.tasks.pool_settings import PoolSettings


@dataclass(frozen=True, slots=True)
class Phase:
    """Consecutive steps of the stage with the same settings; `before` is how many steps come before the first of them.
    The main run has no name."""

    name: str
    before: int
    steps: int
    learning_rate: float
    tasks: TaskSettings
    pools: PoolSettings | None
    recursion: RecursionSettings | None = None

    @property
    def last(self) -> int:
        """The last step, counted from 1."""
        return self.before + self.steps


def list_phases(grpo: GrpoSettings, recipe: Recipe) -> list[Phase]:
    """The main run and the phases after it."""
    main_rate = grpo.optimizer.learning_rate
    phases = [Phase("", 0, grpo.steps, main_rate, recipe.tasks, recipe.pools)]
    for settings in grpo.phases:
        phases.append(
            Phase(
                settings.name,
                phases[-1].last,
                settings.steps,
                settings.learning_rate or main_rate,
                settings.tasks or recipe.tasks,
                settings.pools or recipe.pools,
                settings.recursion,
            )
        )
    return phases


def find_phase(phases: Sequence[Phase], step: int) -> Phase:
    """The phase of a step of the stage, counted from 1; the last one beyond its end."""
    return next((phase for phase in phases if step <= phase.last), phases[-1])


def make_rate_factor(settings: GrpoSettings, phases: Sequence[Phase]) -> Callable[[int], float]:
    """What the main run's learning rate is multiplied by after so many steps: each phase rises and falls anew."""
    optimizer = settings.optimizer
    factors = {phase.name: _load_schedule(optimizer, phase.steps) for phase in phases}

    def compute(steps_done: int) -> float:
        phase = find_phase(phases, steps_done + 1)
        factor = factors[phase.name](min(steps_done - phase.before, phase.steps))
        return factor * phase.learning_rate / optimizer.learning_rate

    return compute


def _load_schedule(optimizer: OptimizerSettings, steps: int) -> Callable[[int], float]:
    """The schedule that transformers knows by this name, as a factor by steps done."""
    import torch
    from transformers import get_scheduler

    stand_in = torch.optim.SGD([torch.zeros(1)], lr=1.0)  # a schedule needs an optimizer; only its factors are used
    warmup = int(optimizer.warmup * steps)
    schedule: Any = get_scheduler(optimizer.schedule, stand_in, num_warmup_steps=warmup, num_training_steps=steps)
    factor: Callable[[int], float] = schedule.lr_lambdas[0]
    return factor


def make_phased(trainer: type[Any], factor: Callable[[int], float]) -> type[Any]:
    """The trainer with this schedule in the place of the one that its arguments name."""

    class PhasedTrainer(trainer):  # type: ignore[misc]  # a class that is chosen at run time
        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:  # noqa: ARG002
            from torch.optim.lr_scheduler import LambdaLR

            if self.lr_scheduler is None:  # type: ignore[has-type]  # set by the trainer
                self.lr_scheduler = LambdaLR(optimizer or self.optimizer, factor)
            return self.lr_scheduler

    return PhasedTrainer

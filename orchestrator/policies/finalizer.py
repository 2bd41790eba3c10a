"""Who writes a run's final answer, by the pool's setting and the switch of the run: its finalizer, or templates."""

from __future__ import annotations

from orchestrator.engine.episode import Episode
from orchestrator.engine.final_answer import Finalizer, Presenter
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.fallback import read_fallback
from orchestrator.presentation.present_answer import present_answer
from orchestrator.reader.refusal import is_refusal
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool
from pool_registry.pool import NO_FINALIZER


def find_finalizer(
    orchestrator: str, pool: LivePool, *, default: bool = True, for_person: bool = False
) -> Finalizer | Presenter | None:
    """The finalizer of a run; None where its pool names none, or it is off. A run `for_person` has its answer put into
    words by templates where no finalizer is named.

    `default`: whether it is on where the orchestrator's name does not say (`+finalizer=on`, `+finalizer=off`). Runs and
    served requests have it on; training and evaluation do not, so that their figures stay comparable.
    """
    worker, chosen = pool.pool.limits.finalizer, OrchestratorName.parse(orchestrator).options.finalizer
    is_on = default if chosen is None else chosen
    if not is_on:
        return None
    if worker != NO_FINALIZER:
        return Finalizer(worker, keeps_answer)
    return Presenter(present_answer, keeps_answer) if for_person else None


def keeps_answer(episode: Episode, answer: JsonValue) -> bool:
    """Whether an answer stays as it is: a refusal, and what the pool's fallback wrote for a person already."""
    return is_refusal(answer) or bool(read_fallback(episode))

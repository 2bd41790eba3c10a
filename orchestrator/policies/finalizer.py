"""Whether a run's final answer is written by the pool's finalizer: by the pool's setting, and the switch of the run."""

from __future__ import annotations

from orchestrator.engine.episode import Episode
from orchestrator.engine.final_answer import Finalizer
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.fallback import read_fallback
from orchestrator.reader.refusal import is_refusal
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool
from pool_registry.pool import NO_FINALIZER


def find_finalizer(orchestrator: str, pool: LivePool, *, default: bool = True) -> Finalizer | None:
    """The finalizer of a run; None where its pool names none, or it is off.

    `default`: whether it is on where the orchestrator's name does not say (`+finalizer=on`, `+finalizer=off`). Runs and
    served requests have it on; training and evaluation do not, so that their figures stay comparable.
    """
    worker, chosen = pool.pool.limits.finalizer, OrchestratorName.parse(orchestrator).options.finalizer
    is_on = default if chosen is None else chosen
    return Finalizer(worker, keeps_answer) if is_on and worker != NO_FINALIZER else None


def keeps_answer(episode: Episode, answer: JsonValue) -> bool:
    """Whether an answer stays as it is: a refusal, and what the pool's fallback wrote for a person already."""
    return is_refusal(answer) or bool(read_fallback(episode))

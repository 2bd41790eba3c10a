"""The grammar of an episode's next turn, in the dialects that have one."""

from __future__ import annotations

from orchestrator.dialects.conductor_paper import MAX_STEPS as MAX_WORKFLOW
from orchestrator.engine.episode import Episode
from orchestrator.grammars.conductor_grammar import conductor_grammar
from orchestrator.grammars.plan_grammar import plan_grammar
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Grammar

MAX_STEPS = 24  # of one turn
MAX_BRANCHES = 1500  # workers times steps: a grammar of so many compiles in about 0.1 s


def turn_grammar(dialect: str, episode: Episode, pool: LivePool) -> Grammar | None:
    """The grammar of the episode's next turn on these workers; None for a dialect that has none (`tool_calls`)."""
    steps = min(_count_steps_left(episode, pool), MAX_STEPS, max(4, MAX_BRANCHES // max(1, len(pool.workers))))
    earlier = tuple(sorted(episode.steps))
    match dialect:
        case "plan":
            return plan_grammar(pool, episode.next_step_id, earlier, steps)
        case "conductor":
            return conductor_grammar(len(pool.workers), episode.next_step_id, earlier, steps)
        case "conductor_paper":
            return conductor_grammar(len(pool.workers), episode.next_step_id, earlier, min(steps, MAX_WORKFLOW))
        case _:
            return None


def _count_steps_left(episode: Episode, pool: LivePool) -> int:
    limits = episode.started.limits if episode.started else {}
    return int(str(limits.get("max_steps", pool.pool.limits.max_steps))) - len(episode.steps)

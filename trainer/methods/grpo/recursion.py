"""What GRPO makes of a forced recursive call: which groups get one, and what the first answer would have earned.

Conductor (arXiv 2512.04388) forces one recursive call in half of each batch, weighs the first round's reward with 0.25
and normalises rewards over the rounds. Here an episode is one sequence of tokens with one advantage: its reward is the
weighted mean of those of both answers.
"""

from __future__ import annotations

import math
from dataclasses import replace

from orchestrator.engine.episode import Episode, Round
from orchestrator.engine.events import EpisodeEnded, Graded
from orchestrator.policies.options.recursive import find_draft
from orchestrator.quotes import references, substitute
from pool_registry.actions import JsonValue


def is_recursive(number: int, share: float) -> bool:
    """Whether the group of this number (from 0) gets a recursive call: of any n in a row, the share of n, rounded."""
    return math.floor((number + 1) * share + 1e-9) > math.floor(number * share + 1e-9)


def resolve_draft(episode: Episode) -> JsonValue:
    """The answer that was held back, with the values that it quotes; None where there is none or a step failed."""
    number = find_draft(episode)
    if number is None:
        return None
    turn = episode.rounds[number - 1].turn
    assert turn is not None, "a round with a draft has a turn"
    seen = episode.observations()
    quoted = references(turn.draft)
    if not all(k in seen and seen[k].ok for k in quoted):
        return None
    return substitute(turn.draft, {k: seen[k].value for k in quoted})


def cut_at_draft(episode: Episode, answer: JsonValue, correct: bool, max_rounds: int) -> Episode:
    """The episode as it would have ended with its first answer, graded; without one, after `max_rounds` rounds."""
    number = find_draft(episode)
    rounds = [_answer_with_draft(done) for done in episode.rounds[: number or max_rounds]]
    steps = {run.step.id: run for done in rounds for run in done.steps}
    first = Episode(episode.id, episode.started, rounds, steps)
    at = max((run.ended_at or 0.0 for run in steps.values()), default=episode.last_at)
    none_yet = EpisodeEnded("max_rounds", at, None, "there was no answer yet")
    first.apply(none_yet if answer is None else EpisodeEnded("answered", at, answer))
    expected = episode.graded.expected if episode.graded else ""
    first.apply(Graded(correct, expected, at))
    return first


def _answer_with_draft(done: Round) -> Round:
    """The round with its draft as the answer, if it has one."""
    if done.turn is None or done.turn.draft is None:
        return done
    return replace(done, turn=replace(done.turn, answer=done.turn.draft, draft=None))

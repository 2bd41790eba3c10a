"""How likely a run's answer is right: on the page, in a shell, in a trace and in a served answer."""

from __future__ import annotations

from dataclasses import asdict

from orchestrator.answer_chance import AnswerChance, find_vote, judge_chance, read_evidence
from orchestrator.engine.episode import Episode
from orchestrator.policies.fallback import read_fallback
from orchestrator.reader.refusal import is_refusal
from studio.episode_documents.schema import ChanceView


def measure_chance(episode: Episode, orchestrator: str) -> AnswerChance | None:
    """The chance of an episode's answer; None where it has none, refuses, or another than its orchestrator answered."""
    if episode.answer is None or is_refusal(episode.answer) or read_fallback(episode):
        return None
    turns = [done.turn for done in episode.rounds if done.turn is not None]
    failed = sum(run.failed for run in episode.steps.values())
    return judge_chance(orchestrator, read_evidence(turns, failed, episode.out_of_depth), find_vote(turns))


def show_chance(episode: Episode, orchestrator: str) -> ChanceView | None:
    """The chance as the page shows it, with the round that says more."""
    chance = measure_chance(episode, orchestrator)
    if chance is None:
        return None
    number = episode.agreement.round if episode.agreement else episode.rounds[-1].number
    return ChanceView(round=number, **asdict(chance))

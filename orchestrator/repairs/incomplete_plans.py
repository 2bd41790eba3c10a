"""Tell plans that leave something of the query out, or do something for nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.engine.episode import Episode
from orchestrator.plan import Step, Turn, references
from orchestrator.reader.refusal import is_refusal
from orchestrator.repairs.idle_steps import has_idle_step
from orchestrator.repairs.joined_names import list_left_out_names
from orchestrator.repairs.unused_figures import list_unused_figures


def list_doubts(turn: Turn, query: str, card_words: Collection[str]) -> frozenset[str]:
    """The repairs (table.py) that doubt a plan: it leaves out a figure of the query, or a name that it joins with one
    of the plan's, or it has a step that does nothing."""
    if not turn.steps:
        return frozenset()
    idle = {"idle_steps"} if has_idle_step(turn) else set()
    return frozenset(idle | _list_left_out(query, turn.steps, card_words))


def list_missing(episode: Episode, turn: Turn, card_words: Collection[str]) -> frozenset[str]:
    """The repairs by which only a longer plan can be right: the first one leaves out a name, or mending a call has lost
    a name or a figure ("3 baguettes", of which "baguette" was accepted)."""
    if turn.error is not None or is_refusal(turn.answer):
        return frozenset()
    turns = [done.turn for done in episode.rounds if done.turn is not None]
    if not turns:
        return frozenset(_list_left_out(episode.query, turn.steps, card_words) - {"unused_figures"})
    if not turns[-1].trial:
        return frozenset()
    return frozenset(_list_left_out(episode.query, [*_list_sources(episode, turn), *turn.steps], card_words))


def _list_left_out(query: str, steps: Sequence[Step], card_words: Collection[str]) -> set[str]:
    figures = {"unused_figures"} if list_unused_figures(query, steps) else set()
    return figures | ({"joined_names"} if list_left_out_names(query, steps, card_words) else set())


def _list_sources(episode: Episode, turn: Turn) -> list[Step]:
    """The steps of earlier turns whose outputs a turn takes, at first hand or through others: of several calls that
    were tried in place of one only that which is kept."""
    sources: dict[int, Step] = {}
    ids = references(turn.answer).union(*(step.references for step in turn.steps))
    while new := ids & episode.steps.keys() - sources.keys():
        sources |= {step_id: episode.steps[step_id].step for step_id in new}
        ids = ids.union(*(sources[step_id].references for step_id in new))
    return [sources[step_id] for step_id in sorted(sources)]

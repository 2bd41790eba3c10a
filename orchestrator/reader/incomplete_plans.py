"""Tell plans that leave something of the query out, or do something for nothing."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.engine.episode import Episode
from orchestrator.plan import Step, Turn, references
from orchestrator.reader.idle_steps import has_idle_step
from orchestrator.reader.joined_names import list_left_out_names
from orchestrator.reader.refusal import is_refusal
from orchestrator.reader.unused_figures import list_unused_figures


def is_incomplete(turn: Turn, query: str, card_words: Collection[str]) -> bool:
    """Whether a plan leaves out a figure of the query, or a name that it joins with one of the plan's, or has a step
    that does nothing."""
    return bool(turn.steps) and (
        bool(list_unused_figures(query, turn.steps))
        or bool(list_left_out_names(query, turn.steps, card_words))
        or has_idle_step(turn)
    )


def lacks_step(episode: Episode, turn: Turn, card_words: Collection[str]) -> bool:
    """Whether only a longer plan can be right: the first one leaves out a name, or mending a call has lost a name or a
    figure ("3 baguettes", of which "baguette" was accepted)."""
    if turn.error is not None or is_refusal(turn.answer):
        return False
    turns = [done.turn for done in episode.rounds if done.turn is not None]
    if not turns:
        return bool(list_left_out_names(episode.query, turn.steps, card_words))
    if not turns[-1].trial:
        return False
    steps = [*_list_sources(episode, turn), *turn.steps]
    return bool(list_unused_figures(episode.query, steps) or list_left_out_names(episode.query, steps, card_words))


def _list_sources(episode: Episode, turn: Turn) -> list[Step]:
    """The steps of earlier turns whose outputs a turn takes, at first hand or through others: of several calls that
    were tried in place of one only that which is kept."""
    sources: dict[int, Step] = {}
    ids = references(turn.answer).union(*(step.references for step in turn.steps))
    while new := ids & episode.steps.keys() - sources.keys():
        sources |= {step_id: episode.steps[step_id].step for step_id in new}
        ids = ids.union(*(sources[step_id].references for step_id in new))
    return [sources[step_id] for step_id in sorted(sources)]

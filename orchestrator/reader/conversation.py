"""The conversation in which a reader plans: listing, query with its likeliest workers, needs, cards, arguments; and
where a call failed, what came of the plan, then needs, cards and arguments of the next one.

The lines of the workers that are most like the query may be repeated after it: a small model copies what it has read
last more surely than one line of many. Messages are only ever appended, so that a trainer can keep them as one token
sequence; pools that are shown alike open alike, so that their queries can share the listing's keys and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.reader.bind_needs import list_likely
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat, format_cards, format_listing
from orchestrator.reader.fill import format_fill
from orchestrator.reader.needs import Need, format_needs
from orchestrator.reader.states import TriedPlan, format_states
from pool_registry.calls.live_pool import LiveWorker
from pool_registry.language_models.completion import Message, strip_special

INTRODUCTION = "Workers:"
HINT = "Likely:"
STATES = "What came of it:"


def open_conversation(
    query: str, listed: Iterable[LiveWorker], listing_format: ListingFormat = PLAIN_LISTING
) -> list[Message]:
    """What the model sees before it writes the needs. Blocks: call it from a thread."""
    workers, hints = list(listed), listing_format.hints
    likely = list_likely(query, workers)[:hints] if hints else []
    question = f"{query}\n\n{HINT}\n{format_listing(likely, listing_format)}" if likely else query
    listing = f"{INTRODUCTION}\n{format_listing(workers, listing_format)}"
    return [Message("system", strip_special(listing)), Message("user", strip_special(question))]


def continue_conversation(
    opening: Sequence[Message], needs: str, workers: Sequence[LiveWorker], listing_format: ListingFormat = PLAIN_LISTING
) -> list[Message]:
    """What the model sees before it writes the arguments: its needs, and the card of the worker for each."""
    cards = format_cards(workers, listing_format.shows_outputs)
    return [*opening, Message("assistant", needs), Message("user", strip_special(cards))]


def reopen_conversation(
    opening: Sequence[Message],
    tried: TriedPlan,
    workers: Mapping[str, LiveWorker],
    listing_format: ListingFormat = PLAIN_LISTING,
) -> list[Message]:
    """What the model sees before it writes the needs of another plan: the last one, and what came of it. `workers` are
    those of the pool, by name."""
    needs = format_needs([Need(step.need, step.access) for step in tried.steps])
    called = [workers[step.worker] for step in tried.steps]
    fill = Message("assistant", format_fill(tried.steps, tried.answer))
    states = Message("user", f"{STATES}\n{format_states(tried)}")
    return [*continue_conversation(opening, needs, called, listing_format), fill, states]

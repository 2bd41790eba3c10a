"""The conversation in which a reader plans: listing and query, needs, cards, arguments.

Messages are only ever appended, so that a trainer can keep them as one token sequence; pools that are shown alike
open alike, so that their queries can share the listing's keys and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.reader.cards import format_cards, format_listing
from pool_registry.calls.live_pool import LiveWorker
from pool_registry.language_models.completion import Message, strip_special

INTRODUCTION = "Workers:"


def open_conversation(query: str, listed: Iterable[LiveWorker]) -> list[Message]:
    """What the model sees before it writes the needs."""
    listing = strip_special(format_listing(listed))
    return [Message("system", f"{INTRODUCTION}\n{listing}"), Message("user", strip_special(query))]


def continue_conversation(opening: Sequence[Message], needs: str, workers: Sequence[LiveWorker]) -> list[Message]:
    """What the model sees before it writes the arguments: its needs, and the card of the worker for each."""
    return [*opening, Message("assistant", needs), Message("user", strip_special(format_cards(workers)))]

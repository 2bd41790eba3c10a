"""Reads the last message of a conversation as a follow-up of what was asked before it, by the rules of the Run page
(studio/follow_ups.py): the run is of a question that stands alone, as small models were trained on.

A message that stands alone, or that no rule reads, stays as it is: with the conversation in front of it where the
orchestrator can read one, else without, for a small model answers the first question that it sees. No agent is asked to
rewrite it. Where it may mean several questions, or
holds a part of an answer and workers may have effects, the client is asked which.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import SERVED, EpisodeEnded, EpisodeStarted, FollowUp
from orchestrator.errors import DamagedTrace, EpisodeNotFound, InvalidQuery
from orchestrator.follow_up.readings import Understanding
from orchestrator.policies.fallback import is_greeting
from orchestrator.traces.store import TraceStore
from pool_registry.calls.live_pool import LivePool
from pool_registry.text import one_line, shorten
from studio.episode_documents.follow_up import describe_reader
from studio.follow_ups import MAX_TEXT_CHARS, NotContinued, ReadyFollowUp, read_follow_up
from studio.model_server.conversation import Exchange, write_asked_first
from studio.model_server.errors import FOLLOW_UP_HEADER
from studio.model_server.request import EpisodeRequest
from studio.model_server.which_question import choose, read_choices

MAX_HEADER_CHARS = 1000
SAME = 3
MAX_KEPT = 10_000  # answers whose runs are remembered, the latest


@dataclass(frozen=True, slots=True)
class _Message:
    """What a user wrote and was answered: in these `exchanges`, the last. `text` may have been asked about before, and
    `choice` been chosen of what it may mean."""

    exchanges: tuple[Exchange, ...]
    text: str
    choice: str = ""

    @property
    def answer(self) -> str:
        return self.exchanges[-1].answer


class AnsweredRuns:
    """Which run gave an answer in a conversation of a client; forgotten when the server stops. Its steps say what a
    follow-up may replace; without it the texts of the conversation alone are read. A conversation is known by its last
    SAME exchanges."""

    def __init__(self, traces: TraceStore) -> None:
        self._traces = traces
        self._runs: OrderedDict[bytes, str] = OrderedDict()

    def keep(self, user: str, request: EpisodeRequest, answer: str, episode_id: str) -> None:
        """Remember the run that answered a request."""
        self._runs[_hash(user, (*request.before, Exchange(request.question, answer)))] = episode_id
        if len(self._runs) > MAX_KEPT:
            self._runs.popitem(last=False)

    def find(self, user: str, exchanges: Sequence[Exchange]) -> Episode | None:
        """The run that gave the last answer of these; None where it is not known or gone. Blocks: call it from a
        thread."""
        key = self._runs.get(_hash(user, exchanges))
        if key is None:
            return None
        try:
            return self._traces.episode(key)
        except (EpisodeNotFound, DamagedTrace):
            return None


def _hash(user: str, exchanges: Sequence[Exchange]) -> bytes:
    texts = [text.strip() for exchange in exchanges[-SAME:] for text in (exchange.question, exchange.answer)]
    return sha256("\0".join((user, *texts)).encode("utf-8", "replace")).digest()


async def read_chat(
    request: EpisodeRequest, pool: LivePool, runs: AnsweredRuns, user: str, stands_alone: bool = False
) -> EpisodeRequest:
    """The request as it is run: of the question that its last message means, or asking which one that is. A message
    that is no follow-up is run without the conversation where it `stands_alone`."""
    if not request.follow_ups or not request.before or is_greeting(request.question):
        return request
    unread = replace(request, query=write_asked_first(request.question, request.rules)) if stands_alone else request
    *before, last = _settle([*request.before, Exchange(request.question)])
    if not before or any(len(message.text) > MAX_TEXT_CHARS for message in (*before, last)):
        return unread
    reader = _Reader(pool, runs, user)
    ready = await reader.follow(await reader.read_thread(before), last)
    if isinstance(ready, ReadyFollowUp):
        if ready.is_whole:
            return unread
        query = write_asked_first(ready.query, request.rules)
        follow_up = replace(ready.follow_up, question=ready.query)
        return replace(request, query=query, follow_up=follow_up)
    readings = tuple(reading.question for reading in ready.readings)
    return replace(request, readings=readings) if readings else unread


def _settle(exchanges: Sequence[Exchange]) -> list[_Message]:
    """The exchanges without those in which was asked which; a reply that chose stands in their place."""
    settled: list[_Message] = []
    for place, exchange in enumerate(exchanges, start=1):
        message = _Message(tuple(exchanges[max(0, place - SAME) : place]), exchange.question)
        if settled and (choices := read_choices(settled[-1].answer)):
            before = settled.pop()
            choice = choose(choices, exchange.question)
            message = replace(message, text=before.text, choice=choice) if choice else message
        settled.append(message)
    return settled


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the conversations of one client on one pool."""

    pool: LivePool
    runs: AnsweredRuns
    user: str

    async def read_thread(self, thread: Sequence[_Message]) -> Episode:
        """The last exchange of a thread as a run that can be continued: the recorded one, or what its texts say."""
        start, origin = 0, None
        for place in range(len(thread) - 1, -1, -1):
            run = await asyncio.to_thread(self.runs.find, self.user, thread[place].exchanges)
            if run is not None and run.started is not None:
                start, origin = place + 1, _ask_alone(run, run.started, thread[place].text)
                break
        for message in thread[start:]:
            origin = await self._rebuild(origin, message)
        assert origin is not None, "a thread has at least one exchange"
        return origin

    async def follow(self, origin: Episode, message: _Message) -> ReadyFollowUp | Understanding:
        """What a message means after a run; no reading where it cannot go on with that."""
        try:
            return await read_follow_up(origin, message.text, self.pool, question=message.choice)
        except (NotContinued, InvalidQuery):
            return Understanding()

    async def _rebuild(self, origin: Episode | None, message: _Message) -> Episode:
        """An exchange that no run is known of."""
        question, follow_up = one_line(message.text), None
        if origin is not None:
            ready = await self.follow(origin, message)
            if isinstance(ready, ReadyFollowUp) and not ready.is_whole:
                question, follow_up = ready.query, ready.follow_up
        started = EpisodeStarted(
            question, self.pool.pool.name, self.pool.pool.hash, "", {}, "", source=SERVED, follow_up=follow_up
        )
        return Episode("", started=started, ended=EpisodeEnded("answered", 0.0, message.answer))


def _ask_alone(run: Episode, started: EpisodeStarted, text: str) -> Episode:
    """A run as if its question had been asked without the conversation around it."""
    question = started.follow_up.question if started.follow_up else ""
    return replace(run, started=replace(started, query=question or one_line(text)))


def describe_for_client(request: EpisodeRequest) -> dict[str, Any]:
    """How the last message was read, for the field `podium.follow_up`; nothing where it was taken as it is."""
    if request.readings:
        return {"follow_up": {"text": request.question, "readings": list(request.readings)}}
    read = request.follow_up
    if read is None:
        return {}
    before = [run.episode for run in read.before if run.episode]
    about = {"text": read.text, "question": read.question, "how": describe_reader(read), "quotes": read.quotes}
    return {"follow_up": {**about, "before": before}}


def write_header(request: EpisodeRequest) -> dict[str, str]:
    """How the last message was read, in a header."""
    line = _write_line(request.follow_up, request.readings)
    return {FOLLOW_UP_HEADER: shorten(line, MAX_HEADER_CHARS).encode("ascii", "replace").decode()} if line else {}


def _write_line(follow_up: FollowUp | None, readings: Sequence[str]) -> str:
    if readings:
        return f"asks which: {' | '.join(readings)}"
    return f"{describe_reader(follow_up)}: {follow_up.question}" if follow_up else ""

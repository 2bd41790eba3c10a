"""One served episode: its events for the requests that it answers, and what each of them is answered with."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from orchestrator.agreement import Agreement
from orchestrator.answer_chance import AnswerChance
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, Event
from orchestrator.policies.fallback import read_fallback
from orchestrator.traces.store import Store
from pool_registry.actions import NO_USAGE, JsonValue, Usage, as_text
from pool_registry.errors import StorageError
from pool_registry.pool import Pool
from studio.approvals import describe_plan, read_waiting
from studio.episode_documents.chance import measure_chance
from studio.episode_documents.final_answer import build_final_view
from studio.episode_documents.schema import FinalAnswerView
from studio.episodes import RecordedRun
from studio.model_server.chat_follow_ups import describe_for_client, write_header
from studio.model_server.client_tools import ClientCall
from studio.model_server.errors import ApiError, ApprovalRequired, episode_error, refuse_unrecorded, unfit_answer
from studio.model_server.progress import EpisodeProgress
from studio.model_server.request import EpisodeRequest
from studio.model_server.setup import EpisodeSetup

CHARS_PER_TOKEN = 4  # of an answer, whose tokenizer is not known


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """What one request is answered with: text, or calls of the client's tools. `usage` is since the request before.

    `ignored` says what of the request had no effect, `fallback` why the pool's fallback answered ("" where it did
    not), `agreement` how many of its drawn plans came to the answer (None where one was written at a time), `final` who
    wrote the final answer, with the plan's own (None where none was on), `chance` how likely the answer is right,
    `value` the plan's own answer where `text` puts it into words, `follow_up` how the message was read as a follow-up.
    """

    text: str
    finish: Literal["stop", "length", "tool_calls"]
    usage: Usage
    calls: tuple[ClientCall, ...] = ()
    ignored: Mapping[str, str] | None = None
    fallback: str = ""
    agreement: Agreement | None = None
    final: FinalAnswerView | None = None
    chance: AnswerChance | None = None
    value: JsonValue = None
    follow_up: Mapping[str, Any] | None = None

    def report(self, trace: str | None) -> dict[str, Any]:
        """Our own field `podium` of the answer's document; `trace` is None where nothing was recorded."""
        fallback = {"fallback": self.fallback} if self.fallback else {}
        agreement = {"agreement": asdict(self.agreement)} if self.agreement else {}
        chance = {"chance": asdict(self.chance)} if self.chance else {}
        names = {"worker", "sentence", "plan_answer"}
        final = {"final": self.final.model_dump(include=names)} if self.final and self.final.worker else {}
        value = {"value": self.value} if self.final and not self.final.worker else {}
        ignored = dict(self.ignored or {})
        read = self.follow_up or {}
        return {"trace": trace, "ignored": ignored, **fallback, **agreement, **chance, **final, **value, **read}


class ServedEpisode:
    """One episode that answers a request, or several where it calls the client's tools, and the sink of its events.

    Iterate over `events`, then ask for the `answer`. `stop` ends it; `release` does, unless it waits for the client.
    Without `record` no event is stored. `headers` say which side of a deployment it is. `on_answer` hears the text of
    the answer.
    """

    def __init__(
        self,
        store: Store,
        setup: EpisodeSetup,
        user: str,
        record: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._store, self.setup, self.user, self.record = store, setup, user, record
        self.headers = {**(headers or {}), **write_header(setup.request)}
        self.on_answer: Callable[[str], None] = lambda _: None
        self.request = setup.request
        self.waits = False
        self.requests = 1
        self.progress = EpisodeProgress()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._run: RecordedRun | None = None
        self._task: asyncio.Task[Episode] | None = None
        self._live = Episode("")
        self._reported = NO_USAGE
        self._unrecorded: ApiError | None = None
        setup.on_idle = self._hand_over

    def start(self, run: RecordedRun, before: Episode | None = None) -> asyncio.Task[Episode]:
        """Start the run as a task of its own; `before` is what an episode that goes on has done so far."""
        self._run = run
        self._live = copy.deepcopy(before) if before is not None else self._live
        self._live.id = self.setup.calls.episode = run.id
        self._task = asyncio.create_task(self._run_and_record(run))
        self._task.add_done_callback(self._end)
        return self._task

    async def _run_and_record(self, run: RecordedRun) -> Episode:
        """Run the episode, and end when its trace is on disk: what a client has been told, a crash must not forget."""
        episode = await run.run()
        if not self.record:
            return episode
        try:
            await asyncio.to_thread(self._store.traces.flush)
        except StorageError as error:
            self._unrecorded = refuse_unrecorded(error)
        return episode

    def resume(self, request: EpisodeRequest) -> bool:
        """Go on with the outputs that a request brings; False where none of them is waited for."""
        if not self.setup.calls.answer(request.outputs):
            return False
        self.request, self.waits = request, False
        self.requests += 1
        return True

    @property
    def id(self) -> str:
        assert self._run is not None, "the service starts a run before it hands this out"
        return self._run.id

    @property
    def trace(self) -> str | None:
        """The id of its trace; None where nothing is recorded."""
        return self.id if self.record else None

    @property
    def pool(self) -> Pool:
        """The pool that it runs on."""
        assert self._run is not None, "the service starts a run before it hands this out"
        return self._run.pool

    @property
    def ignored(self) -> Mapping[str, str]:
        """What of the request has no effect, and why, as far as it is known by now."""
        return {**self.setup.ignored, **self.request.ignored}

    def append(self, episode_id: str, event: Event) -> None:
        """Record an event. Those of this episode, not of episodes inside it, also go to `events`."""
        if self.record:
            self._store.traces.append(episode_id, event)
        if episode_id == self.id:
            self._live.apply(event)
            self._events.put_nowait(event)

    def stop(self) -> None:
        """Stop the episode; does nothing when it has ended."""
        if self._run is not None:
            self._run.budget.stop()

    def release(self) -> None:
        """Stop the episode as its request is over, unless it waits for the next one."""
        if not self.waits:
            self.stop()

    async def events(self, silence_s: float) -> AsyncIterator[Event | None]:
        """Yield events until the episode has ended or hands calls over, and None whenever `silence_s` seconds passed
        without one."""
        while True:
            try:
                event = await asyncio.wait_for(self._events.get(), silence_s)
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event

    async def answer(self) -> ServedAnswer:
        """What the request is answered with, after its events. Raises ApiError where the episode has no answer."""
        if self.waits:
            count = None if self.request.tools.parallel else 1
            return ServedAnswer("", "tool_calls", self._take_usage(), self.setup.calls.take(count), self.ignored)
        episode, ended = await self.result()
        error = self._unrecorded or episode_error(ended, episode, self.pool)
        if error is not None:
            raise error
        text, finish = self._write_answer(episode.shown_answer)
        fallback = read_fallback(episode)
        agreement = None if fallback else episode.agreement  # what another answered was not voted on
        final = build_final_view(episode)
        chance = measure_chance(episode, self.setup.orchestrator)
        value, usage = episode.answer, self._take_usage()
        self.on_answer(text)
        read = describe_for_client(self.setup.request)
        return ServedAnswer(text, finish, usage, (), self.ignored, fallback, agreement, final, chance, value, read)

    async def result(self) -> tuple[Episode, EpisodeEnded]:
        """Wait for the finished episode and how it ended. Raises ApprovalRequired when its plan waits for a person."""
        assert self._task is not None, "the service starts the task before it hands this out"
        episode = await asyncio.shield(self._task)
        if episode.ended is None:
            raise ApprovalRequired(describe_plan(await asyncio.to_thread(read_waiting, self._store, episode.id)))
        return episode, episode.ended

    def _write_answer(self, answer: JsonValue) -> tuple[str, Literal["stop", "length"]]:
        """The text of the answer in the form that the request wants. Raises ApiError where it does not fit."""
        if answer is None:  # ran out of tokens
            return "", "length"
        form = self.request.form
        try:
            text = as_text(answer if form is None else form.fit(answer))
        except ValueError as error:
            raise unfit_answer(self.id, str(error), form.remark if form else "") from error
        return cut_answer(text, self.request)

    def _take_usage(self) -> Usage:
        """The usage since the last request was answered."""
        total, before = self._live.usage, self._reported
        self._reported = total
        return Usage(total.tokens_in - before.tokens_in, total.tokens_out - before.tokens_out, total.cost - before.cost)

    def _hand_over(self) -> None:
        if not self.waits:
            self.waits = True
            self._events.put_nowait(None)

    def _end(self, _: object) -> None:
        self.waits = False
        self._events.put_nowait(None)


def cut_answer(text: str, request: EpisodeRequest) -> tuple[str, Literal["stop", "length"]]:
    """The answer up to the first stop text, and within the tokens that it may have."""
    places = [place for stop in request.stop if (place := text.find(stop)) >= 0]
    text = text[: min(places)] if places else text
    most = request.max_answer_tokens
    if most is None or len(text) <= most * CHARS_PER_TOKEN:
        return text, "stop"
    return text[: most * CHARS_PER_TOKEN], "length"

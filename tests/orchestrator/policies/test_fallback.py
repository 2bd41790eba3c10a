"""The pool's fallback: who answers what the orchestrator cannot take, and how soon."""

from __future__ import annotations

import asyncio
import time

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.release import Orchestrator
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Step, Turn
from orchestrator.policies import fallback
from orchestrator.policies.fallback import FallbackPolicy, is_greeting, read_fallback
from orchestrator.reader.refusal import refuse
from pool_registry.actions import NO_USAGE
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.pool import Limits, Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string

ROUNDS = 3


class Talker(Worker[NoConfig]):
    """An agent that answers what it is told, or fails."""

    role = "agent"
    parameters = one_string("instruction", "What to do.")
    fails = False

    async def call(self, call: Call) -> Reply:
        if self.fails:
            raise RuntimeError("it is down")
        return Reply(f"agent: {call.text('instruction').splitlines()[-1]}", NO_USAGE)


def open_pool(fails: bool = False) -> LivePool:
    spec = WorkerSpec(name="talker", kind="calculator", description="Talks to people.")
    worker = Talker(spec, NoConfig())
    worker.fails = fails
    return LivePool(Pool(name="p", limits=Limits(deadline_s=20)), {"talker": LiveWorker(spec, worker)})


class Scripted(Orchestrator):
    """An orchestrator that plays its turns; `sleeps` seconds before each."""

    name = "scripted"

    def __init__(self, *turns: Turn | Exception, sleeps: float = 0.0) -> None:
        self.turns, self.sleeps, self.asked = list(turns), sleeps, 0

    async def turn(self, episode: Episode) -> Turn:
        self.asked += 1
        await asyncio.sleep(self.sleeps)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn


def run(inner: Scripted, choice: str = "auto", query: str = "do it", fails: bool = False, trained: bool = False):
    async def go() -> Episode:
        pool = open_pool(fails)
        policy = FallbackPolicy(inner, pool, choice, query, trained=trained, rounds=ROUNDS)
        limits = pool.pool.limits.model_copy(update={"max_rounds": ROUNDS + fallback.ROUNDS})
        return await run_episode(EpisodeSpec(query), policy, pool, limits=limits)

    return asyncio.run(go())


NONSENSE = Turn(error="no JSON")
UNKNOWN = Turn((Step(1, "nobody", {}),))


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ([Turn(error="it is down", failed=True)], "it is down"),
        ([UnknownOrchestrator("gone")], "gone"),
        ([Turn(answer=refuse("a train"))], "a train"),
        ([NONSENSE, NONSENSE], "could not be used"),
        ([UNKNOWN, NONSENSE], "could not be used"),
        ([NONSENSE, Turn((Step(1, "talker", {"instruction": "x"}),)), Turn((Step(2, "talker", {"instruction": "x"}),))],
         "after 3 rounds"),
    ],
)  # fmt: skip
def test_the_fallback_answers_what_the_orchestrator_cannot_take(turns, reason):
    episode = run(Scripted(*turns))
    assert episode.answer == "agent: do it"
    assert reason in read_fallback(episode)


def test_a_good_answer_is_left_alone():
    episode = run(Scripted(Turn(answer="42")))
    assert episode.answer == "42" and read_fallback(episode) == ""


def test_a_checkpoint_is_not_asked_what_only_greets():
    inner = Scripted(Turn(answer="42"))
    assert run(inner, query="Hello!", trained=True).answer == "agent: Hello!" and inner.asked == 0
    assert run(Scripted(Turn(answer="42")), query="Hello!").answer == "42", "a chat model answers a greeting itself"


def test_a_turn_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(fallback, "MAX_TURN_S", 0.2)
    began = time.monotonic()
    assert run(Scripted(Turn(answer="late"), sleeps=60)).answer == "agent: do it"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("choice", "fails"), [("sentence", False), ("auto", True), ("talker", True)])
def test_without_an_agent_a_sentence_says_what_the_pool_can_do(choice, fails):
    episode = run(Scripted(Turn(error="no idea", failed=True)), choice, fails=fails)
    assert episode.ended is not None and episode.ended.outcome == "answered"
    assert "talker: Talks to people." in str(episode.answer) and "no idea" in str(episode.answer)


@pytest.mark.parametrize(
    "text", ["Hello!", "hi there", "Thanks a lot!!", "Who are you?", "Guten Morgen", "what can you do"]
)
def test_greetings_are_known(text):
    assert is_greeting(text)


@pytest.mark.parametrize(
    "text", ["Hello, what is 17 * 23?", "Hi-Fi prices", "testament", "", "help me to book a flight"]
)
def test_other_texts_are_no_greetings(text):
    assert not is_greeting(text)


class SlowTalker(Talker):
    """An agent whose model is loaded after `loads` seconds."""

    loads = 0.0
    loaded = False

    def is_ready(self) -> bool:
        return self.loaded

    async def prepare(self) -> None:
        await asyncio.sleep(self.loads)
        self.loaded = True


@pytest.mark.parametrize(("loads", "trained"), [(60.0, True), (60.0, False), (0.05, True)])
def test_a_greeting_does_not_wait_for_a_model_that_is_being_loaded(monkeypatch, loads, trained):
    monkeypatch.setattr(fallback, "LOAD_S", 0.5)
    monkeypatch.setattr(SlowTalker, "loads", loads)
    monkeypatch.setitem(globals(), "Talker", SlowTalker)
    began = time.monotonic()
    inner = Scripted(Turn(answer="late"), sleeps=60)
    answer = str(run(inner, query="Hello!", trained=trained).answer)
    assert time.monotonic() - began < 10 and inner.asked == 0
    if loads < 1:
        assert answer == "agent: Hello!"
    else:
        assert "talker is still being loaded" in answer and "talker: Talks to people." in answer

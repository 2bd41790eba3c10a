"""Caps on tokens and cost: exceeded by less than one reservation, whatever runs in parallel or inside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.engine.events import TaskRef
from orchestrator.engine.release import Orchestrator
from orchestrator.failure_memory.write_lesson import write_lesson
from orchestrator.plan import Step, Turn
from pool_registry.actions import Action, Status, Usage
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.errors import WorkerFault
from pool_registry.kinds import KINDS, add_kind
from pool_registry.language_models.agent import Agent as AgentBase
from pool_registry.language_models.completion import DEFAULT_OPTIONS, Completion, CompletionOptions, Message
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec
from tests.orchestrator.support.engine import Scripted, a_pool
from tests.trust.trials import choose_trials, count_trials
from trainer.evaluation.trials import LocalTrials, grade_episode, plan_trials, run_trials
from trainer.tasks.task import Task
from trainer.tasks.verifier import JudgeCheck

TICK_S = 0.001


class SpenderConfig(StrictModel):
    role: str = ""
    max_visible_chars: int = 1000
    tools: tuple[str, ...] = ()
    max_tokens: int = 10
    tokens: int = 5  # that each reply takes
    failures: int = 0  # calls that fail before one goes well
    hangs: bool = False


class Spender(AgentBase[SpenderConfig]):
    """A language model that says what it has used."""

    Config = SpenderConfig
    remote = True

    def __init__(self, spec: WorkerSpec, config: SpenderConfig) -> None:
        super().__init__(spec, config)
        self.failures = config.failures
        self.calls = 0

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        self.calls += 1
        await asyncio.sleep(3600 if self.config.hangs else TICK_S)
        if self.failures:
            self.failures -= 1
            raise WorkerFault("unavailable", "try again", retryable=True, retry_after_s=0.0)
        return Completion("ok", Usage(0, self.config.tokens))


class Toll(Worker[SpenderConfig]):
    """A tool with a price per call."""

    Config = SpenderConfig
    parameters: Mapping[str, Any] = {"type": "object"}

    async def call(self, call: Call) -> Reply:
        await asyncio.sleep(TICK_S)
        return Reply("ok")


class Inside(Worker[SpenderConfig]):
    role = "recursion"
    Config = SpenderConfig
    parameters: Mapping[str, Any] = {"type": "object"}

    async def call(self, call: Call) -> Reply:
        assert call.scope is not None
        return await call.scope.descend("same", "inner", ())


@pytest.fixture(autouse=True, scope="module")
def spending_kinds() -> Iterator[None]:
    before = dict(KINDS.built_in)
    for name, cls in (("spender", Spender), ("toll", Toll), ("inside", Inside)):
        add_kind(name, cls)
    yield
    KINDS.built_in.clear()
    KINDS.built_in.update(before)


def spender(name: str = "spender", kind: str = "spender", **changes: Any) -> WorkerSpec:
    config = {key: changes.pop(key) for key in ("max_tokens", "tokens", "failures", "hangs") if key in changes}
    return WorkerSpec(**{"name": name, "kind": kind, "description": "spends", "config": config, **changes})


def wide(count: int, worker: str, first: int = 1) -> list[Step]:
    arguments = {} if worker in ("toll", "inside") else {"instruction": "go"}
    return [Step(first + k, worker, arguments) for k in range(count)]


def run_plan(turns: Any, workers: Sequence[WorkerSpec], **limits: Any) -> tuple[Episode, Budget]:
    async def once() -> tuple[Episode, Budget]:
        pool = a_pool(workers, **limits)
        budget = Budget(pool.pool.limits)
        orchestrator = turns if hasattr(turns, "turn") else Scripted(*turns)
        resolve = lambda *_: Scripted(Turn(tuple(wide(6, "toll")), "done"))  # noqa: E731
        return await run_episode(EpisodeSpec("q"), orchestrator, pool, budget=budget, resolve=resolve), budget

    return asyncio.run(once())


def codes(episode: Episode) -> list[str]:
    return sorted(seen.error.code if seen.error else "OK" for seen in episode.observations().values())


def test_twelve_parallel_steps_exceed_a_cap_on_cost_by_less_than_one_call():
    workers = [spender("toll", "toll", price_call=0.001, max_concurrency=12)]
    episode, budget = run_plan([Turn(tuple(wide(12, "toll")), "done")], workers, max_cost=0.0035)
    assert codes(episode) == ["OK"] * 4 + ["max_cost"] * 8
    assert budget.usage.cost == episode.usage.cost == pytest.approx(0.004)


def test_parallel_replies_are_held_to_a_cap_on_tokens_before_they_are_written():
    workers = [spender(tokens=15, max_tokens=15, max_concurrency=12)]
    _, budget = run_plan([Turn(tuple(wide(12, "spender")), "done")], workers, max_tokens=60)
    assert 60 <= budget.usage.tokens < 60 + 15


def test_steps_wait_for_room_and_all_run_where_they_fit():
    """A reservation is more than what is used in the end: what is left of it is for the others."""
    workers = [spender(tokens=1, max_tokens=40, max_concurrency=12)]
    episode, budget = run_plan([Turn(tuple(wide(12, "spender")), "done")], workers, max_tokens=100)
    assert codes(episode) == ["OK"] * 12 and budget.usage.tokens == 12


def test_episodes_inside_share_the_cap_and_none_waits_for_the_other():
    workers = [
        spender("toll", "toll", price_call=0.001),
        spender("inside", "inside", price_call=0.0005, max_concurrency=8),
    ]
    _, budget = run_plan([Turn(tuple(wide(4, "inside")), "done")], workers, max_cost=0.01, deadline_s=20)
    assert 0.01 <= budget.usage.cost < 0.011 + 1e-9


def test_every_attempt_of_a_call_counts():
    workers = [spender(failures=2, tokens=1, max_tokens=1, price_call=0.4, retries=5)]
    _, budget = run_plan([Turn(tuple(wide(1, "spender")), "done")], workers, max_cost=10.0)
    assert budget.usage.cost == pytest.approx(1.2)
    episode, budget = run_plan([Turn(tuple(wide(1, "spender")), "done")], workers, max_cost=0.7)
    assert codes(episode) == ["max_cost"] and budget.usage.cost == pytest.approx(0.8)


def test_a_call_that_is_cut_off_counts_as_all_that_it_was_to_use():
    workers = [spender(hangs=True, max_tokens=500, timeout_s=0.05)]
    episode, budget = run_plan([Turn(tuple(wide(1, "spender")), "done")], workers)
    assert codes(episode) == ["timeout"] and budget.usage.tokens >= 500


def test_a_model_elsewhere_without_a_price_is_not_called_under_a_cap_on_cost():
    chat = WorkerSpec(name="far", kind="chat", description="d", retries=0, timeout_s=0.2, config={
        "base_url": "https://models.invalid/v1", "model": "m"})  # fmt: skip
    near = chat.model_copy(update={"name": "near", "config": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}})
    free = chat.model_copy(update={"name": "free", "free": True})
    priced = chat.model_copy(update={"name": "priced", "price_out": 1.0})
    keyed = WorkerSpec(name="keyed", kind="http", description="d", retries=0, config={
        "url": "https://models.invalid/x", "method": "GET",
        "headers": {"Authorization": "Bearer env:NO_KEY"}})  # fmt: skip

    async def ask(name: str, spending: Spending) -> str:
        pool = a_pool([chat, near, free, priced, keyed])
        arguments = {} if name == "keyed" else {"instruction": "hi"}
        with charge_calls_to(spending):
            observation = await pool.call(Action(name, arguments))
        assert observation.status is not Status.OK and observation.error is not None
        return observation.error.code

    outcomes = {name: asyncio.run(ask(name, Spending(max_cost=1.0))) for name in ("far", "near", "free", "keyed")}
    assert {name for name, code in outcomes.items() if code == "no_price"} == {"far", "keyed"}, outcomes
    assert asyncio.run(ask("priced", Spending(max_cost=1.0))) != "no_price"
    assert asyncio.run(ask("far", Spending(max_tokens=10**6))) != "no_price"


def test_an_orchestrator_that_meets_the_cap_in_its_turn_ends_the_run_by_the_cap():
    class Asks(Orchestrator):
        name = "asks"

        def __init__(self) -> None:
            self.pool: LivePool = a_pool([spender(tokens=30, max_tokens=30)])

        async def turn(self, episode: Episode) -> Turn:
            replies = [self.pool.workers["spender"].complete([Message("user", "?")]) for _ in range(10)]
            await asyncio.gather(*replies)
            return Turn((), "done")

    episode, budget = run_plan(Asks(), [spender()], max_tokens=100)
    assert episode.ended is not None and episode.ended.outcome == "max_tokens"
    assert 100 <= budget.usage.tokens < 130


def test_judges_and_reflections_count_in_the_run_that_they_judge():
    workers = [spender("judge", tokens=7, max_tokens=7)]
    task = Task(TaskRef("f", 1, "test", 1), "q", JudgeCheck("judge", "x"))

    async def once() -> int:
        pool = a_pool(workers, memory="judge")
        budget = Budget(pool.pool.limits)
        episode = await run_episode(EpisodeSpec("q"), Scripted(Turn((), "wrong")), pool, budget=budget)
        with charge_calls_to(budget.spending):
            await grade_episode(episode, task, NoSink(), pool)
            await write_lesson(episode, pool)
        return budget.usage.tokens

    assert asyncio.run(once()) == 14


def test_an_answer_whose_judge_a_cap_refuses_has_no_verdict():
    task = Task(TaskRef("f", 1, "test", 1), "q", JudgeCheck("judge", "x"))

    async def once() -> Episode:
        pool = a_pool([spender("judge", tokens=7, max_tokens=7)])
        episode = await run_episode(EpisodeSpec("q"), Scripted(Turn((), "right")), pool)
        reached = Spending(max_tokens=5)
        reached.charge(Usage(tokens_in=5))
        with charge_calls_to(reached):
            assert await grade_episode(episode, task, NoSink(), pool) is None
        return episode

    episode = asyncio.run(once())
    assert episode.graded is None and episode.not_judged is not None
    assert "5 tokens is reached" in episode.not_judged.reason


def test_an_answer_that_nobody_judged_is_no_result():
    task = Task(TaskRef("f", 1, "test", 1), "q", JudgeCheck("judge", "x"))
    rows: list[object] = []

    judge = WorkerSpec(name="judge", kind="chat", description="d", retries=0, config={
        "base_url": "https://models.invalid/v1", "model": "m"})  # fmt: skip

    async def once() -> None:
        pool = a_pool([judge])
        with charge_calls_to(Spending(max_cost=1.0)):  # it has no price
            await run_trials(
                plan_trials("direct", [task]), LocalTrials(pool, lambda *_: Scripted(Turn((), "right"))), rows.append
            )

    asyncio.run(once())
    assert rows == []


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[Step], list[WorkerSpec]]:
    """A plan of up to 20 steps over workers that use, in every call, at most what they declare."""
    workers = []
    for number in range(draw(st.integers(1, 3))):
        limit = draw(st.integers(1, 60))
        workers.append(
            spender(
                f"w{number}",
                max_tokens=limit,
                tokens=draw(st.integers(0, limit)),
                max_concurrency=draw(st.integers(1, 20)),
                price_out=draw(st.sampled_from([0.0, 1e3, 2e4])),
                price_call=draw(st.sampled_from([0.0, 0.001, 0.5])),
                failures=draw(st.integers(0, 2)),
                free=True,
            )
        )
    steps: list[Step] = []
    for number in range(1, draw(st.integers(1, 20)) + 1):
        access = draw(st.sets(st.integers(1, number - 1), max_size=3)) if number > 1 else set()
        steps.append(Step(number, draw(st.sampled_from(workers)).name, {"instruction": "go"}, tuple(sorted(access))))
    return steps, workers


@pytest.mark.medium
@settings(max_examples=choose_trials(150))
@given(plan=plans(), max_tokens=st.integers(1, 400), max_cost=st.none() | st.floats(0.0005, 2.0))
def test_no_plan_exceeds_a_cap_by_more_than_one_reservation(plan, max_tokens, max_cost):
    count_trials()
    steps, workers = plan
    limits = {} if max_cost is None else {"max_cost": max_cost}
    episode, budget = run_plan([Turn(tuple(steps), "done")], workers, max_tokens=max_tokens, **limits)
    used, slack = budget.usage, largest_reservation(workers)
    assert len(codes(episode)) == len(steps)
    assert min(used.tokens_in, used.tokens_out, used.cost) >= 0
    assert used.tokens < max_tokens + slack.tokens
    if max_cost is not None:
        assert used.cost <= max_cost + slack.cost + 1e-9


def largest_reservation(workers: Sequence[WorkerSpec]) -> Usage:
    pool = a_pool(workers)
    call = Call({"instruction": "go"})
    estimates = [live.add_price(live.worker.estimate_usage(call)) for live in pool.workers.values()]
    return Usage(0, max(usage.tokens for usage in estimates), max(usage.cost for usage in estimates))

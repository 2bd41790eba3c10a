"""What an agent is sent fits its context: shares, refusals before payment, and outputs that another agent shortens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from pool_registry.actions import Action, Observation, Status, Usage
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.kinds import KINDS, add_kind
from pool_registry.language_models.agent import Agent, AgentConfig
from pool_registry.language_models.completion import DEFAULT_OPTIONS, Completion, CompletionOptions, Message
from pool_registry.pool import Pool, check_pool
from pool_registry.text import divide_room
from pool_registry.worker import Visible, WorkerSpec

PROMPTS: list[str] = []


class EchoConfig(AgentConfig):
    role: str = "You answer."
    max_visible_chars: int = 20_000
    max_tokens: int = 50
    says: str = "done"
    tools: tuple[str, ...] = ()


class Echo(Agent[EchoConfig]):
    """Says what it is configured to say."""

    Config = EchoConfig

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        PROMPTS.append(messages[-1].content)
        return Completion(self.config.says, Usage(10, 5), messages[-1].content)


@pytest.fixture(autouse=True)
def echo() -> Iterator[None]:
    before = dict(KINDS.built_in)
    PROMPTS.clear()
    add_kind("echo", Echo)
    yield
    KINDS.built_in.clear()
    KINDS.built_in.update(before)


def agent(name: str = "writer", config: dict | None = None, **more) -> WorkerSpec:
    return WorkerSpec(name=name, kind="echo", description="for tests", config=config or {}, **more)


def call(*workers: WorkerSpec, seen: Sequence[str] = (), instruction: str = "sum it up") -> Observation:
    visible = tuple(Visible(k, "sql", Observation(Status.OK, text)) for k, text in enumerate(seen, 1))

    async def once() -> Observation:
        pool = open_live_pool(Pool(name="p", workers=workers))
        return await pool.call(Action(workers[0].name, {"instruction": instruction}), visible)

    return asyncio.run(once())


def test_short_outputs_leave_their_room_to_long_ones():
    assert divide_room([10, 1000, 50], 200) == [10, 140, 50]
    assert divide_room([500, 500], 100, least=80) == [80, 80]
    assert divide_room([5, 5], 100) == [5, 5] and divide_room([], 100) == []


def test_outputs_are_cut_to_the_context_and_the_use_says_what_was_cut():
    seen = call(agent(context_tokens=400), seen=["short", "x" * 9000])
    assert seen.ok and "short" in PROMPTS[0] and "9,000 characters in all" in PROMPTS[0]
    assert len(PROMPTS[0]) < 400 * 3
    parts = [(part.origin, part.step, part.cut) for part in seen.context.parts]
    assert parts == [("role", 0, ""), ("instruction", 0, ""), ("output", 1, ""), ("output", 2, "excerpt")]
    assert seen.context.limit == 400 and seen.context.reply == 50
    assert sum(part.tokens for part in seen.context.parts) + 50 <= 400 < seen.context.parts[-1].whole


def test_without_a_known_context_the_room_for_outputs_alone_counts():
    seen = call(agent(config={"max_visible_chars": 500}), seen=["x" * 9000])
    assert seen.context.limit is None and seen.context.parts[-1].cut == "excerpt"
    assert 500 < len(PROMPTS[0]) < 1000


def test_a_call_that_cannot_fit_is_refused_and_the_model_is_not_asked():
    seen = call(agent(context_tokens=100, price_call=1.0), instruction="word " * 100)
    assert seen.error.code == "context_too_long" and seen.status is Status.EXEC_ERR
    assert "Shorten the instruction" in seen.error.message and "takes 100 tokens" in seen.error.message
    assert PROMPTS == [] and seen.usage.cost == 0.0


def test_an_orchestrators_prompt_that_cannot_fit_is_refused_too():
    async def once() -> None:
        pool = open_live_pool(Pool(name="p", workers=(agent(context_tokens=100),)))
        await pool.workers["writer"].complete([Message("user", "word " * 200)])

    with pytest.raises(WorkerFault, match="max_shown"):
        asyncio.run(once())
    assert PROMPTS == []


def test_a_summarizer_shortens_what_is_too_long_and_nothing_else():
    workers = (agent(context_tokens=400, summarizer="shortener"), agent("shortener", {"says": "only 42 matters"}))
    seen = call(*workers, seen=["short", "x" * 9000])
    assert len(PROMPTS) == 2 and "sum it up" in PROMPTS[0] and "only 42 matters" in PROMPTS[1]
    assert "xxx" not in PROMPTS[1] and "short" in PROMPTS[1]
    last = seen.context.parts[-1]
    assert (last.cut, last.whole) == ("summary", 3000) and last.tokens < 10
    assert seen.usage == Usage(20, 10), "both are paid"
    PROMPTS.clear()
    assert call(*workers, seen=["short"]).ok and len(PROMPTS) == 1


def test_where_the_summarizer_fails_the_beginning_is_taken():
    workers = (agent(context_tokens=400, summarizer="shortener"), agent("shortener", context_tokens=64))
    seen = call(*workers, seen=["x" * 9000])
    assert seen.ok and seen.context.parts[-1].cut == "excerpt" and "xxx" in PROMPTS[-1]


def test_a_summarizer_is_another_agent_of_the_pool():
    for name in ("nobody", "writer"):
        with pytest.raises(InvalidPool, match="choose"):
            check_pool(Pool(name="p", workers=(agent(summarizer=name),)))

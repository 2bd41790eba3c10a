"""A reader that learns: it plans as the one that serves, and its tokens are those of the conversation that went on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.policies.plan_writer import PlanWriter
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.cards import make_listing_format
from orchestrator.reader.conversation import continue_conversation, open_conversation, reopen_conversation
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need
from orchestrator.reader.refusal import refuse
from orchestrator.reader.states import join_last_plan
from orchestrator.repairs.name_operations import OPERATIONS, SUMS
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.kinds import KINDS, add_kind
from pool_registry.language_models.completion import Completion, Grammar, Message
from pool_registry.pool import Limits, Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string
from trainer.errors import TrainingFailed
from trainer.learner.generator import GeneratedTokens
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.grpo.rewards import REWARDS, load_rewards
from trainer.methods.grpo.rollout_metrics import compute_rollout_metrics
from trainer.methods.grpo.rollouts import (
    EpisodeFormat,
    Rollout,
    RolloutEngine,
    select_fitting_tasks,
)
from trainer.methods.grpo.section import RewardSettings
from trainer.tasks.task import Task
from trainer.tasks.task_pools import TaskPools
from trainer.tasks.verifier import ExactText, RefusalVerifier

pytestmark = pytest.mark.medium
NEEDS = "1. length of a river"
FILL = '1. {"text": "Rhine"}\n= $1'
TERMS = ("accuracy", "format", "binding")
PLAN = Turn((Step(1, "rivers", {"text": "Rhine"}, need="length of a river"),), "$1")


class Echoes(Worker[NoConfig]):
    """Returns its text, or fails where it is told to."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "a name")

    async def call(self, call: Call) -> Reply:
        return Reply(call.text("text"))


class Broken(Echoes):
    """Never answers."""

    async def call(self, call: Call) -> Reply:
        raise WorkerFault("broken", "out of order")


class Picky(Echoes):
    """Knows the Rhine alone."""

    async def call(self, call: Call) -> Reply:
        if call.text("text") != "Rhine":
            raise BadCall(f"there is no river {call.text('text')!r}")
        return Reply("Rhine")


@pytest.fixture(autouse=True, scope="module")
def kinds():
    own = {"echoes": Echoes, "broken": Broken, "picky": Picky}
    for name, kind in own.items():
        add_kind(name, kind)
    yield
    for name in own:
        del KINDS.built_in[name]


@pytest.fixture(autouse=True)
def shared_words(monkeypatch):
    """Needs are bound by the words that they share with descriptions."""
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)


@pytest.fixture(scope="module")
def chat(tiny_base):
    from transformers import AutoTokenizer

    return ChatTokens(AutoTokenizer.from_pretrained(tiny_base, padding_side="left"))


class Script:
    """A generator that writes these texts, one a call, and a model that does; keeps the prompts that it was shown."""

    busy_s = 0.0
    tokens = 0

    def __init__(self, chat: ChatTokens, texts: Sequence[str], cut: bool = False) -> None:
        self._chat, self._texts, self._cut = chat, list(texts), cut
        self.prompts: list[list[int]] = []
        self.messages: list[list[Message]] = []
        self.grammars: list[Grammar | None] = []
        self.seeds: list[int | None] = []

    async def generate(
        self, ids: Sequence[int], limit: int, grammar: Grammar | None = None, seed: int | None = None
    ) -> GeneratedTokens:
        self.seeds.append(seed)
        self.prompts.append(list(ids))
        self.grammars.append(grammar)
        made = self._chat.encode_turn(self._texts[len(self.prompts) - 1])[: -1 if self._cut else None]
        return GeneratedTokens(made, [-float(len(self.prompts))] * len(made))

    async def write(self, messages: list[Message], grammar: Grammar | None, _draw: object) -> Completion:
        self.messages.append(messages)
        self.grammars.append(grammar)
        return Completion(self._texts[len(self.messages) - 1])


def a_pool(rivers: str = "echoes") -> LivePool:
    workers = (
        WorkerSpec(name="rivers", kind=rivers, description="Looks up the length of a river."),
        WorkerSpec(name="streams", kind="echoes", description="Knows the length of streams."),
        WorkerSpec(name="peaks", kind="echoes", description="Looks up the height of a mountain."),
    )
    return open_live_pool(Pool(name="p", workers=workers, limits=Limits(max_rounds=2)))


def a_task(plan: Turn | None = PLAN, answer: str = "Rhine") -> Task:
    return Task(TaskRef("own", 1, "train", 0), "How long is the Rhine?", ExactText(answer), plan)


def an_engine(chat: ChatTokens, pool: LivePool, terms: Sequence[str] = TERMS, **limits: int) -> RolloutEngine:
    settings = {"turn_tokens": 200, "max_length": 4000, "max_rounds": 2, **limits}
    rewards = load_rewards([RewardSettings(term=name) for name in terms])
    return RolloutEngine(
        "learner", pool, chat, EpisodeFormat(find_dialect("plan"), "reader", **settings), rewards, NoSink()
    )


def roll(chat: ChatTokens, texts: Sequence[str], pool: LivePool | None = None, cut: bool = False, **limits: int):
    """The rollout of these texts, and the generator that wrote them."""
    script = Script(chat, texts, cut)

    async def run() -> Rollout:
        group = await an_engine(chat, pool or a_pool(), **limits).run_group(a_task(), script, 1)
        return group.rollouts[0]

    return asyncio.run(run()), script


def tokens_of(chat: ChatTokens, messages: Sequence[Message]) -> list[int]:
    rendered = [{"role": message.role, "content": message.content} for message in messages]
    return chat.tokenizer.apply_chat_template(rendered, return_dict=False)


def list_learnt(chat: ChatTokens, rollout: Rollout) -> str:
    transcript = rollout.transcript
    return chat.tokenizer.decode([t for t, mine in zip(transcript.completion, transcript.mask, strict=True) if mine])


def converse(pool: LivePool, needs: str, worker: str, fill: str) -> list[Message]:
    opening = open_conversation("How long is the Rhine?", pool.workers.values())
    return [*continue_conversation(opening, needs, [pool.workers[worker]]), Message("assistant", fill)]


def test_every_episode_is_a_draw_of_its_own_and_the_same_one_again(chat):
    async def run(before: int) -> list[int]:
        engine, script = an_engine(chat, a_pool()), Script(chat, [NEEDS, NEEDS, FILL, FILL])
        engine.begin_step(before, engine.terms, engine.pools.vary, None)
        await engine.run_group(a_task(), script, 2)
        return sorted(seed for seed in script.seeds if seed is not None)  # which episode asks first is chance

    first, again, later = (asyncio.run(run(before)) for before in (0, 0, 8))
    assert first == again
    assert len(set(first)) == 4, "numbers that two texts share would make the second depend on the first"
    assert not set(first) & set(later)


def test_an_episode_is_the_conversation_of_which_needs_and_arguments_are_learnt(chat):
    rollout, _ = roll(chat, [NEEDS, FILL])
    assert rollout.transcript.ids == tokens_of(chat, converse(a_pool(), NEEDS, "rivers", FILL))
    assert list_learnt(chat, rollout) == f"{NEEDS}<|end|>{FILL}<|end|>"
    assert rollout.sample.correct and rollout.terms == {"accuracy": 1, "format": 1, "binding": 1}
    written = [p for p, mine in zip(rollout.logprobs, rollout.transcript.mask, strict=True) if mine]
    assert written == [-1.0] * len(chat.encode_turn(NEEDS)) + [-2.0] * len(chat.encode_turn(FILL))
    turn = rollout.sample.episode.rounds[0].turn
    assert turn.steps[0].need == "length of a river" and turn.usage.tokens_out == sum(rollout.transcript.mask)


def test_it_plans_as_the_reader_that_serves(chat):
    pool, script = a_pool(), Script(chat, [NEEDS, FILL])

    async def serve():
        return await run_episode(EpisodeSpec("How long is the Rhine?"), ReaderPolicy("r", pool, script.write), pool)

    served, (rollout, learner) = asyncio.run(serve()), roll(chat, [NEEDS, FILL])
    learnt = rollout.sample.episode
    assert (served.rounds[0].turn.steps, served.ended.answer) == (learnt.rounds[0].turn.steps, learnt.ended.answer)
    assert learner.prompts == [chat.encode_prompt(messages) for messages in script.messages]
    assert learner.grammars == script.grammars and None not in script.grammars
    first = len(chat.encode_turn(NEEDS))
    cards = rollout.transcript.mask.index(0, first)
    filled = rollout.transcript.mask.index(1, cards)
    spans = [(part.turn, part.first, part.end) for part in rollout.transcript.held]
    assert spans == [(0, 0, first), (filled, filled, len(rollout.transcript.mask))], "all that is learnt was held"


def test_which_operation_a_sum_is_is_asked_and_learnt_as_in_use(chat, monkeypatch):
    monkeypatch.setattr(PlanWriter, "_has_operation_nearest", lambda *_: True)
    monkeypatch.setattr("orchestrator.policies.plan_writer.list_servers", lambda need, workers: rank(need, workers))
    sum_first = f"1. {SUMS[0]}\n2. length of a river (1)"
    chosen = f"1. {OPERATIONS[0]}"
    fill = '1. {"text": "Rhine"}\n2. {"text": "Rhine"}\n= $2'
    rollout, script = roll(chat, [sum_first, chosen, fill])
    assert script.prompts[0] == script.prompts[1]
    needs = f"{chosen}\n2. length of a river (1)"
    assert chat.decode(rollout.transcript.completion).startswith(needs)
    assert list_learnt(chat, rollout).startswith(f"{chosen}{fill}"), "the line behind it was drawn in another context"
    shared, second, _ = rollout.transcript.held
    assert shared.grammar == script.grammars[0] and second.grammar == script.grammars[1]
    assert (second.turn, second.first) == (0, shared.end) and shared.end > 0
    assert len(rollout.logprobs) == len(rollout.transcript.mask)


def rank(need: Need, workers: Mapping[str, Any]) -> list[BoundNeed]:
    return [BoundNeed(need, name, 0.9) for name in workers]


def test_of_a_card_that_was_refused_no_token_is_kept(chat):
    texts = [NEEDS, refuse("length of a river"), FILL]
    rollout, script = roll(chat, texts)
    episode = rollout.sample.episode
    second = episode.rounds[0].turn.steps[0].worker
    assert second != "rivers" and episode.ended.outcome == "answered"
    assert rollout.transcript.ids == tokens_of(chat, converse(a_pool(), NEEDS, second, FILL))
    assert rollout.transcript.ids[: len(script.prompts[-1])] == script.prompts[-1]
    assert list_learnt(chat, rollout) == f"{NEEDS}<|end|>{FILL}<|end|>"
    assert set(rollout.logprobs) == {-1.0, 0.0, -3.0} and len(rollout.logprobs) == len(rollout.transcript.mask)
    assert rollout.terms["binding"] == 0 and rollout.sample.correct


def test_needs_that_were_cut_off_get_an_end_that_is_not_learnt(chat):
    rollout, _ = roll(chat, [NEEDS, FILL], cut=True)
    assert rollout.transcript.ids == tokens_of(chat, converse(a_pool(), NEEDS, "rivers", FILL))[:-1]
    assert list_learnt(chat, rollout) == NEEDS + FILL


def test_another_worker_for_a_failed_step_adds_no_tokens_and_is_not_judged(chat):
    rollout, script = roll(chat, [NEEDS, FILL], a_pool(rivers="broken"))
    episode = rollout.sample.episode
    assert len(episode.rounds) == 2 and len(script.prompts) == 2 and rollout.sample.correct
    assert list_learnt(chat, rollout) == f"{NEEDS}<|end|>{FILL}<|end|>"
    assert rollout.terms["format"] == 1 and len(rollout.sample.written_rounds) == 1


SLIP = '1. {"text": "river Rhine"}\n= $1'


def plan_twice(chat: ChatTokens, texts: Sequence[str]) -> tuple[Rollout, Script]:
    """A rollout of a model that has learnt second turns, on a pool whose worker knows the Rhine alone."""
    pool, script = a_pool(rivers="picky"), Script(chat, texts)
    shown = EpisodeFormat(
        find_dialect("plan"), "reader-turns", 200, 4000, 2, listing=make_listing_format("reader-turns")
    )
    engine = RolloutEngine(
        "learner", pool, chat, shown, load_rewards([RewardSettings(term=name) for name in TERMS]), NoSink()
    )

    async def run() -> Rollout:
        return (await engine.run_group(a_task(), script, 1)).rollouts[0]

    return asyncio.run(run()), script


def test_a_second_turn_is_learnt_behind_what_came_of_the_first(chat):
    rollout, script = plan_twice(chat, [NEEDS, SLIP, NEEDS, FILL])
    episode, pool = rollout.sample.episode, a_pool(rivers="picky")
    assert rollout.sample.correct and len(episode.rounds) == 2
    listing = make_listing_format("reader-turns")
    opening = open_conversation("How long is the Rhine?", pool.workers.values(), listing)
    tried = join_last_plan(replace(episode, rounds=episode.rounds[:1]))
    reopened = reopen_conversation(opening, tried, pool.workers, listing)
    whole = continue_conversation(reopened, NEEDS, [pool.workers["rivers"]], listing)
    assert rollout.transcript.ids == tokens_of(chat, [*whole, Message("assistant", FILL)])
    assert list_learnt(chat, rollout) == f"{NEEDS}<|end|>{SLIP}<|end|>{NEEDS}<|end|>{FILL}<|end|>"
    assert script.prompts[2] == chat.encode_prompt(reopened)
    assert "there is no river" in chat.decode(script.prompts[2])
    assert len(rollout.logprobs) == len(rollout.transcript.mask) and len(rollout.transcript.held) == 4
    assert len(rollout.sample.written_rounds) == 2 and rollout.terms["accuracy"] == 1


def test_a_card_that_was_refused_in_a_second_turn_leaves_the_first_as_it_was(chat):
    rollout, _ = plan_twice(chat, [NEEDS, SLIP, NEEDS, refuse("length of a river"), FILL])
    assert rollout.sample.correct and rollout.sample.episode.steps[2].step.worker != "rivers"
    assert list_learnt(chat, rollout) == f"{NEEDS}<|end|>{SLIP}<|end|>{NEEDS}<|end|>{FILL}<|end|>"
    assert len(rollout.logprobs) == len(rollout.transcript.mask)


def test_an_operation_that_is_asked_for_in_a_second_turn_leaves_the_first_as_it_was(chat, monkeypatch):
    sum_first = f"1. {SUMS[0]}"
    chosen = f"1. {OPERATIONS[0]}"
    asked = iter([True])
    monkeypatch.setattr(PlanWriter, "_has_operation_nearest", lambda *_: next(asked))
    monkeypatch.setattr("orchestrator.policies.plan_writer.list_servers", lambda need, workers: rank(need, workers))
    rollout, _ = plan_twice(chat, [NEEDS, SLIP, sum_first, chosen, FILL])
    text = chat.decode(rollout.transcript.completion)
    assert text.startswith(NEEDS) and chosen in text and sum_first not in text
    assert list_learnt(chat, rollout) == f"{NEEDS}<|end|>{SLIP}<|end|>{chosen}<|end|>{FILL}<|end|>"
    assert len(rollout.logprobs) == len(rollout.transcript.mask)
    starts = [(part.turn, part.first) for part in rollout.transcript.held]
    assert starts == sorted(starts) and len(starts) == 5


@pytest.mark.parametrize(
    ("texts", "share"), [(["12"], 0), ([NEEDS, "12"], 0), ([NEEDS, '1. {"text": \n= $1'], 0), ([NEEDS, FILL], 1)]
)
def test_the_format_is_right_where_needs_and_arguments_can_be_read(chat, texts, share):
    rollout, _ = roll(chat, texts, max_rounds=1)
    assert rollout.terms["format"] == share


def test_binding_is_paid_for_right_answers_only(chat):
    rollout, _ = roll(chat, [NEEDS, '1. {"text": "Elbe"}\n= $1'])
    assert rollout.terms == {"accuracy": 0, "format": 1, "binding": 0}
    reward = REWARDS["binding"].function
    right, _ = roll(chat, [NEEDS, FILL])
    assert reward(replace(right.sample, task=a_task(None)), []) is None
    twice = replace(PLAN, steps=(*PLAN.steps, replace(PLAN.steps[0], id=2)))
    assert reward(replace(right.sample, task=a_task(twice)), []) == 0


def test_a_refusal_at_once_is_one_text(chat):
    task = Task(TaskRef("own", 1, "train", 0), "Sing!", RefusalVerifier(refuse()), Turn(answer=refuse()))
    script = Script(chat, [refuse()])

    async def run():
        return await an_engine(chat, a_pool()).run_group(task, script, 1)

    rollout = asyncio.run(run()).rollouts[0]
    assert rollout.terms == {"accuracy": 1, "format": 1, "binding": 1}
    assert list_learnt(chat, rollout) == f"{refuse()}<|end|>"


def test_cards_without_room_for_arguments_end_the_episode(chat):
    opening = open_conversation("How long is the Rhine?", a_pool().workers.values())
    room = len(chat.encode_prompt(opening)) + len(chat.encode_turn(NEEDS)) + 4
    rollout, script = roll(chat, [NEEDS, FILL], max_length=room)
    assert rollout.sample.episode.ended.outcome == "orchestrator_failed" and len(script.prompts) == 1
    assert len(rollout.logprobs) == len(rollout.transcript.completion) == len(rollout.transcript.mask)
    assert rollout.terms["format"] == 0


def test_tasks_are_left_out_whose_listing_leaves_no_room(chat):
    shown = EpisodeFormat(find_dialect("plan"), "reader", 50, 4000, 1)
    pools = TaskPools(a_pool())
    assert asyncio.run(select_fitting_tasks([a_task()], pools, chat, shown)) == [a_task()]
    with pytest.raises(TrainingFailed, match="max_length"):
        asyncio.run(select_fitting_tasks([a_task()], pools, chat, replace(shown, max_length=100)))


def test_the_share_of_turns_that_can_be_read_counts_what_the_model_wrote(chat):
    async def run(texts: list[str]):
        return await an_engine(chat, a_pool(rivers="broken")).run_group(a_task(), Script(chat, texts), 1)

    groups = [asyncio.run(run(texts)) for texts in ([NEEDS, FILL], ["12"])]
    assert compute_rollout_metrics(groups, [], [])["rollout/valid_turns"] == 0.5


def test_a_step_that_the_answer_does_not_need_earns_no_credit(chat):
    async def measure(*texts: str) -> float:
        engine = an_engine(chat, a_pool(), ("accuracy", "credit"))
        return (await engine.run_group(a_task(), Script(chat, texts), 1)).rollouts[0].terms["credit"]

    needless = (f"{NEEDS}\n2. height of a mountain", '1. {"text": "Rhine"}\n2. {"text": "Zugspitze"}\n= $1')
    assert asyncio.run(measure(NEEDS, FILL)) == 1
    assert asyncio.run(measure(*needless)) == 0.5
    assert asyncio.run(measure(NEEDS, '1. {"text": "Elbe"}\n= $1')) == 0, "a wrong answer earns none"

"""What a reader learns of an episode: the one plan that led to the answer, whoever wrote it."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from orchestrator.engine.events import TaskRef
from orchestrator.grammars.reader_grammars import fill_grammar, needs_grammar
from orchestrator.plan import Step, Turn
from orchestrator.policies.registry import POLICIES, Policy
from orchestrator.reader.needs import MAX_NEEDS, parse_needs
from orchestrator.reader.refusal import REFUSAL, is_refusal, refuse
from pool_registry.actions import Status
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.completion import Draw
from pool_registry.starter import starter_pool
from tests.orchestrator.support.engine import (  # noqa: F401
    STAGE,
    Events,
    Scripted,
    a_pool,
    engine_kinds,
    worker,
)
from tests.orchestrator.support.grammar_walk import accepts
from trainer.demonstrations.collect import DemonstrationCollector
from trainer.demonstrations.fault_injection import Fault, FaultyPool
from trainer.demonstrations.transcripts import ReaderLesson, find_plan, make_demonstration, write_reader_conversation
from trainer.errors import TrainingFailed
from trainer.evaluation.trials import run_task
from trainer.recipe_sections import DemonstrationSettings, ModelSettings
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText, RefusalVerifier

READER = ModelSettings(prompt="reader")
OWN_WORDS = ReaderLesson(listed_needs=0)


@pytest.fixture(autouse=True)
def no_sentence_vectors(monkeypatch):
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)


def two_workers() -> LivePool:
    STAGE.clear()
    return a_pool((worker("left", "actor"), worker("right", "actor")), max_rounds=4)


def need(number: int, name: str, text: str = "#0", access: tuple[int, ...] = ()) -> Step:
    return Step(number, name, {"text": text}, access, need=f"need {name}")


def run_turns(*turns: Turn, fault: Fault | None = None):
    """The episode of these turns."""

    async def run():
        pool = two_workers()
        task = Task(TaskRef("own", 1, "train", 0), "a query", ExactText("canary<0>"))
        return await run_task(task, Scripted(*turns), FaultyPool(pool, fault) if fault else pool, Events())

    return asyncio.run(run())


def test_the_worker_that_could_do_it_takes_the_place_of_the_one_that_failed():
    turns = (
        Turn((need(1, "left"), need(2, "right")), "$1 and $2"),
        Turn((need(3, "right"),), "$3 and $2"),
    )
    episode = run_turns(*turns, fault=Fault("left", Status.EXEC_ERR))
    plan = find_plan(episode, two_workers())
    assert [(step.id, step.worker, step.need) for step in plan.steps] == [
        (1, "right", "need right"),
        (2, "right", "need right"),
    ]
    assert plan.answer == "$2 and $1"
    row = make_demonstration(episode, two_workers(), "plan", "reader", 4, "teacher", OWN_WORDS)
    assert [message.learn for message in row.messages] == [False, False, True, False, True]
    assert row.messages[2].content == "1. need right\n2. need right"


@pytest.mark.parametrize(("share", "needs"), [(0.0, "1. need left"), (1.0, "1. for tests")])
def test_a_need_is_in_words_of_its_own_or_the_line_that_lists_its_worker(share, needs):
    episode, lesson = run_turns(Turn((need(1, "left"),), "$1")), ReaderLesson(listed_needs=share)
    row = make_demonstration(episode, two_workers(), "plan", "reader", 4, "teacher", lesson)
    assert "- for tests" in row.messages[0].content.splitlines()
    assert row.messages[2].content == needs


def test_steps_that_the_answer_goes_back_to_are_kept_with_what_they_see():
    turns = (
        Turn((need(1, "left"), need(2, "left", "#1"))),
        Turn((need(3, "right", "$1", (1,)),), "$3"),
    )
    plan = find_plan(run_turns(*turns), two_workers())
    assert [(step.id, dict(step.arguments), step.access) for step in plan.steps] == [
        (1, {"text": "#0"}, ()),
        (2, {"text": "$1"}, (1,)),
    ]
    assert plan.answer == "$2"


@pytest.mark.parametrize(
    "turns",
    [
        (Turn(error="nonsense"), Turn(error="nonsense")),
        (Turn((need(1, "left"),)), Turn(answer="what I read")),
        (Turn((need(1, "left"), Step(2, "nobody", {}, need="x")), "$1"),),
        (Turn((need(1, "left"), Step(2, "right", {"wrong": 1}, need="x")), "$1"),),
    ],
)
def test_what_is_no_plan_is_not_learnt(turns):
    episode = run_turns(*turns)
    assert find_plan(episode, two_workers()) is None
    with pytest.raises(TrainingFailed, match="no plan"):
        make_demonstration(episode, two_workers(), "plan", "reader", 4, "teacher")


def test_a_turn_that_could_not_be_read_is_not_the_plan():
    plan = find_plan(run_turns(Turn(error="nonsense"), Turn((need(1, "left"),), "$1")), two_workers())
    assert [step.worker for step in plan.steps] == ["left"]


def test_a_refusal_is_a_plan_without_steps():
    plan = find_plan(run_turns(Turn(answer=refuse("a song"))), two_workers())
    assert (plan.steps, plan.answer) == ((), refuse("a song"))


def collect(tasks, make, **settings):
    """What a collector keeps of the teacher that `make` makes, and the draws that the teacher was given."""
    draws: list[Draw | None] = []

    def open_teacher(request):
        draws.append(request.draw)
        return make(request)

    async def run(monkeypatch):
        with monkeypatch.context() as patch:
            patch.setitem(POLICIES.built_in, "learner", Policy("learner", "", "", open_teacher))
            options = DemonstrationSettings(teacher="learner", faults=0, concurrency=1, listed_needs=0, **settings)
            collector = DemonstrationCollector(options, READER, two_workers(), Events(), seed=1)
            return await collector.collect(tasks), collector

    rows, collector = asyncio.run(run(pytest.MonkeyPatch()))
    return rows, collector, draws


def own_task(index: int) -> Task:
    return Task(TaskRef("own", 1, "train", index), f"query {index}", ExactText("canary<0>"))


def test_of_a_models_samples_a_right_one_is_learnt_with_the_needs_that_it_wrote():
    plans = [
        Turn((need(1, "left", "#1"),), "$1"),
        Turn((need(1, "right"),), "$1"),
        Turn((need(1, "left", "#2"),), "$1"),
    ]
    numbers = count()
    rows, collector, draws = collect(
        [own_task(0), own_task(1)], lambda _: Scripted(plans[next(numbers) % 3]), samples=3
    )
    assert (collector.tried, collector.correct, len(rows)) == (6, 2, 2)
    assert {row.messages[2].content for row in rows} == {"1. need right"}
    assert [draw.temperature for draw in draws] == [1.0] * 6 and len({draw.seed for draw in draws}) == 6


def test_a_right_answer_without_a_plan_is_not_learnt():
    turns = (Turn((need(1, "left"),)), Turn(answer="canary<0>"))
    rows, collector, draws = collect([own_task(0)], lambda _: Scripted(*turns))
    assert (rows, collector.correct, draws) == ([], 1, [None])


def test_for_a_reader_a_trajectory_that_needed_no_repair_goes_first():
    repaired = (Turn((Step(1, "left", {"text": "#0", "wrong": 1}, need="x"),), "$1"), Turn((need(2, "left"),), "$2"))
    scripts = [repaired, (Turn((need(1, "right"),), "$1"),)]
    numbers = count()
    rows, _, _ = collect([own_task(0)], lambda _: Scripted(*scripts[next(numbers) % 2]), samples=2)
    assert rows[0].messages[2].content == "1. need right"


def test_a_share_of_the_demonstrations_ends_with_the_needs():
    rows, _, _ = collect(
        [own_task(k) for k in range(60)], lambda _: Scripted(Turn((need(1, "right"),), "$1")), needs_alone=0.5
    )
    alone = [row for row in rows if [message.learn for message in row.messages] == [False, False, True]]
    assert all(row.messages[-1].content == "1. need right" for row in alone)
    assert 18 <= len(alone) <= 42 and {len(row.messages) for row in rows} == {3, 5}


def test_a_refusal_that_is_right_is_learnt():
    task = Task(TaskRef("own", 1, "train", 0), "sing a song", RefusalVerifier())
    rows, _, _ = collect([task], lambda _: Scripted(Turn(answer=refuse("a song"))))
    assert rows[0].messages[-1].content == refuse("a song") and rows[0].messages[2].content == "1. a song"


@pytest.mark.medium
@pytest.mark.parametrize("source", ["worlds", "everyday", "casual"])
def test_what_a_reader_learns_to_write_its_grammars_accept(source):
    refusals = 0
    for task in open_source(source).tasks("train", 80):
        pool = open_live_pool(task.pool or starter_pool())
        messages = write_reader_conversation(task.query, task.oracle_turn, pool, OWN_WORDS)
        first, *rest = (message.content for message in messages if message.role == "assistant")
        assert accepts(needs_grammar(MAX_NEEDS, REFUSAL), first)
        for fill in rest:
            schemas = [pool.workers[step.worker].parameters for step in task.oracle_turn.steps]
            assert accepts(fill_grammar(schemas, [refuse(item.text) for item in parse_needs(first)]), fill)
            refusals += is_refusal(fill)
    assert refusals >= 5

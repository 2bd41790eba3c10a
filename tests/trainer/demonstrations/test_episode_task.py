"""A recorded run as a task of its pool: its query, its answer and the plan that led to it."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Graded, TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.shop import build_shop
from trainer.demonstrations.episode_task import Judgement, judge_run, keep_run
from trainer.demonstrations.transcripts import load_starred_demonstrations
from trainer.errors import UnusableTasks
from trainer.evaluation.judging import list_recorded_verdicts
from trainer.evaluation.trials import run_task
from trainer.recipe_sections import ModelSettings
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.task import Task
from trainer.tasks.verifier import NumberWithin

QUERY = "What is 6 * 7 + 1?"
RIGHT = Turn((Step(1, "calc", {"expression": "6 * 7"}), Step(2, "calc", {"expression": "$1 + 1"}, (1,))), "$2")
WRONG = Turn((Step(1, "calc", {"expression": "6 * 7"}),), "$1")
YES = Judgement(is_right=True)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A data folder with the shop in it."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(find_home())
    store.pools.save(build_shop(tmp_path))
    yield store
    store.close()


@pytest.fixture
def record(store):
    """Runs a plan on the shop and returns the trace's id."""

    async def run(turn: Turn, task: Task | None) -> str:
        async with live_pool(store.pools.latest("shop").pool) as live:
            if task is not None:
                return (await run_task(task, OraclePolicy(turn), live, store.traces)).id
            return (await run_episode(EpisodeSpec(QUERY), OraclePolicy(turn), live, sink=store.traces)).id

    def record_turn(turn: Turn, task: Task | None = None) -> str:
        episode = asyncio.run(run(turn, task))
        store.traces.flush()
        return episode

    return record_turn


def list_kept(pool: str = "shop") -> list[Task]:
    return [row.task for row in open_task_book(pool).read() if row.task is not None]


def test_a_run_that_a_person_finds_right_becomes_a_task_with_its_plan(store, record):
    keep_run(store, record(RIGHT), "shop", YES)
    (task,) = list_kept()
    assert (task.query, task.ref.split, task.workers) == (QUERY, "train", ("calc",))
    assert task.verifier.accepts("43") and not task.verifier.accepts("42")
    assert task.oracle_turn is not None and len(task.oracle_turn.steps) == 2


def test_a_run_that_nobody_vouches_for_is_not_kept(store, record):
    with pytest.raises(UnusableTasks, match="is 42 right\\? nothing has verified it"):
        keep_run(store, record(WRONG), "shop")
    assert list_kept() == []


def test_a_wrong_run_is_kept_with_the_persons_answer_and_without_its_plan(store, record):
    episode = record(WRONG)
    store.traces.star(episode, True)
    kept = keep_run(store, episode, "shop", Judgement(answer=" 43 "))
    (task,) = list_kept()
    assert not kept.is_right and task.oracle_turn is None and task.verifier.accepts("43")
    graded = store.traces.episode(episode).graded
    assert graded is not None and (graded.correct, graded.expected) == (False, "43"), "the run counts as wrong now"
    assert store.traces.list_starred() == [], "what is starred is imitated"


def test_a_typed_answer_that_the_run_has_too_keeps_its_plan(store, record):
    assert keep_run(store, record(RIGHT), "shop", Judgement(answer="43.0")).is_right
    assert list_kept()[0].oracle_turn is not None


def test_a_verified_run_is_kept_without_a_question_and_a_refuted_one_is_not(store, record):
    task = Task(TaskRef("own", 0, "test", 0), QUERY, NumberWithin(43, 0.1))
    with pytest.raises(UnusableTasks, match="its task expects 43"):
        keep_run(store, record(WRONG, task), "shop")
    keep_run(store, record(RIGHT, task), "shop")
    assert list_kept()[0].oracle_turn is not None


@pytest.mark.parametrize(
    ("typed", "right", "wrong"),
    [
        ("1,234", "1234", "1,235"),
        ("Oslo", "oslo", "Bergen"),
        ('["Oslo", "Bergen"]', "Bergen, Oslo", "Oslo"),
        ('{"days": 4}', '{"days": 4}', '{"days": 5}'),
    ],
)
def test_an_answer_is_compared_as_what_was_typed(store, record, typed, right, wrong):
    keep_run(store, record(WRONG), "shop", Judgement(answer=typed))
    verifier = list_kept()[0].verifier
    assert verifier.accepts(right) and not verifier.accepts(wrong)


@pytest.mark.parametrize("typed", ["[1, 2", "{", "[]"])
def test_an_answer_that_cannot_be_one_is_refused_in_a_sentence(store, record, typed):
    episode = record(WRONG)
    with pytest.raises(UnusableTasks, match="answer: "):
        keep_run(store, episode, "shop", Judgement(answer=typed))
    assert list_kept() == [] and store.traces.episode(episode).graded is None


def test_a_run_without_a_plan_that_led_to_its_answer_is_no_task(store, record):
    with pytest.raises(UnusableTasks, match="no plan on the pool shop"):
        keep_run(store, record(Turn((Step(1, "abacus", {"expression": "6 * 7"}),), "43")), "shop", YES)


def test_what_a_person_said_of_runs_is_what_judges_are_measured_against(store, record):
    task = Task(TaskRef("f", 1, "test", 1), QUERY, NumberWithin(43, 0))
    record(RIGHT, task)
    record(RIGHT)
    assert list_recorded_verdicts(store.traces, "shop") == [], (
        "a verifier is no person, and nobody judged the other one"
    )
    keep_run(store, record(WRONG), "shop", Judgement(answer="43"))
    right = record(RIGHT)
    ended = store.traces.episode(right).ended
    assert ended is not None
    store.traces.append(right, Graded(True, "43", ended.at))
    store.traces.flush()
    mine, corrected = list_recorded_verdicts(store.traces, "shop")
    assert (mine.answer, mine.right, mine.expected) == (43, True, None), "its own answer would give the verdict away"
    assert (corrected.answer, corrected.right, corrected.expected) == (42, False, "43")


def test_a_verdict_is_recorded_can_be_changed_and_takes_a_wrong_runs_star(store, record):
    episode = record(WRONG)
    store.traces.star(episode, True)
    assert judge_run(store, episode, YES).expected == "42" and store.traces.row(episode).correct
    assert store.traces.list_starred() == [episode]
    corrected = judge_run(store, episode, Judgement(answer="43"))
    assert (corrected.correct, corrected.expected) == (False, "43") and store.traces.row(episode).correct is False
    assert store.traces.list_starred() == []
    assert list_recorded_verdicts(store.traces, "shop")[0].expected == "43"
    judge_run(store, episode, Judgement())
    assert store.traces.episode(episode).graded.expected == ""
    (verdict,) = list_recorded_verdicts(store.traces, "shop")
    assert (verdict.right, verdict.expected) == (False, None), "nobody says which answer is right"
    with pytest.raises(UnusableTasks, match="is 42 right\\? it was judged wrong"):
        keep_run(store, episode, "shop")
    assert keep_run(store, episode, "shop", Judgement(answer="43")).line.answer == 43
    assert store.traces.episode(episode).graded.expected == "43"


def test_a_typed_answer_that_the_run_has_is_right(store, record):
    assert judge_run(store, record(RIGHT), Judgement(answer="43.0")).correct


def test_the_verifier_of_a_task_is_not_overruled(store, record):
    task = Task(TaskRef("own", 0, "test", 0), QUERY, NumberWithin(43, 0.1))
    with pytest.raises(UnusableTasks, match="whose verifier judges it"):
        judge_run(store, record(WRONG, task), YES)


def test_a_wrong_run_teaches_nothing_even_where_it_is_starred_again(store, record):
    right, wrong = record(RIGHT), record(WRONG)
    judge_run(store, wrong, Judgement())
    for episode in (right, wrong):
        store.traces.star(episode, True)

    async def load() -> list[str]:
        async with live_pool(store.pools.latest("shop").pool) as live:
            return [row.episode for row in load_starred_demonstrations(store.traces, live, ModelSettings(), 4)]

    assert asyncio.run(load()) == [right]

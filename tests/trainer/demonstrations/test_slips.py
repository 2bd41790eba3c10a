"""Plans that a pool rejects for real, and the lessons that begin with one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from orchestrator.grammars.reader_grammars import fill_grammar, needs_grammar
from orchestrator.plan import Step, Turn
from orchestrator.prompt_styles import PROMPTS
from orchestrator.reader.conversation import STATES
from orchestrator.reader.needs import MAX_NEEDS, parse_needs
from orchestrator.reader.refusal import REFUSAL, refuse
from orchestrator.reader.states import TriedPlan, format_states
from orchestrator.repairs.mend_calls import may_be_tried
from pool_registry.calls.live_pool import LivePool, open_live_pool
from tests.orchestrator.support.engine import Scripted
from tests.orchestrator.support.grammar_walk import accepts
from trainer.demonstrations.slips import (
    REFUSED_SLIPS,
    SLIPS,
    draw_second_turn,
    draw_tried_plan,
    try_first_plan,
    try_plan,
    was_rejected,
)
from trainer.demonstrations.transcripts import ReaderLesson, write_reader_lesson
from trainer.recipe_sections import ModelSettings
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task

TURNS = ReaderLesson(ModelSettings(prompt="reader-turns").choose_listing(), listed_needs=0.0, unfit_cards=0.0)


@pytest.fixture(autouse=True)
def no_sentence_vectors(monkeypatch):
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)


def list_tasks(count: int, source: str = "composed") -> list[Task]:
    return [task for task in open_source(source).tasks("train", count, seed=4) if task.oracle_turn is not None]


def open_pool(task: Task) -> LivePool:
    assert task.pool is not None
    return open_live_pool(task.pool)


def draw(task: Task, seed: int = 0) -> TriedPlan | None:
    assert task.oracle_turn is not None
    return asyncio.run(draw_tried_plan(task.query, task.oracle_turn, open_pool(task), Random(seed)))


def list_errors(tried: TriedPlan) -> Sequence[str]:
    errors = [seen.error.message for seen in tried.observations.values() if seen.error is not None]
    return [*errors, *([tried.missing_part] if tried.missing_part else [])]


def test_the_right_plans_of_tasks_are_rejected_by_nobody():
    for task in list_tasks(40):
        assert task.oracle_turn is not None
        tried = asyncio.run(try_plan(task.oracle_turn, open_pool(task)))
        assert tried is not None and not was_rejected(tried), task.query


def test_most_tasks_get_a_plan_that_their_pool_rejects_with_an_error():
    tasks = list_tasks(40)
    tried = [draw(task) for task in tasks]
    assert sum(plan is not None for plan in tried) > 0.9 * len(tasks)
    for task, plan in zip(tasks, tried, strict=True):
        if plan is not None:
            assert list_errors(plan)
            assert task.oracle_turn is not None and (plan.steps, plan.answer) != (
                task.oracle_turn.steps,
                task.oracle_turn.answer,
            )


def test_each_slip_makes_plans_that_are_rejected():
    rejected = dict.fromkeys((*SLIPS, *REFUSED_SLIPS), 0)
    for task in list_tasks(60):
        assert task.oracle_turn is not None
        slips = list(SLIPS) if task.oracle_turn.steps else list(REFUSED_SLIPS)
        for slip in slips:
            pool = open_pool(task)
            turn = slip(task.query, task.oracle_turn, pool, Random(1))
            tried = turn and asyncio.run(try_plan(turn, pool))
            rejected[slip] += bool(tried and was_rejected(tried))
    assert min(rejected.values()) >= 3, {slip.__name__: count for slip, count in rejected.items()}


def test_the_same_seed_draws_the_same_plan():
    task = list_tasks(8)[3]
    first, second = draw(task, 5), draw(task, 5)
    assert first is not None and second is not None
    assert (first.steps, format_states(first)) == (second.steps, format_states(second))


def test_a_share_of_the_tasks_gets_one():
    tasks = list_tasks(40)
    drawn = [asyncio.run(draw_second_turn(task, open_pool(task), 0.5, 7)) for task in tasks]
    assert 0.25 * len(tasks) < sum(plan is not None for plan in drawn) < 0.75 * len(tasks)
    assert not any(asyncio.run(draw_second_turn(task, open_pool(task), 0.0, 7)) for task in tasks)


def test_of_a_reader_its_own_first_plan_is_what_went_wrong():
    task = next(task for task in list_tasks(20) if task.oracle_turn and len(task.oracle_turn.steps) > 1)
    right, tried = task.oracle_turn, draw(task)
    assert right is not None and tried is not None
    wrong = Turn(tried.steps, tried.answer)

    def draw_own(*turns: Turn) -> TriedPlan | None:
        return asyncio.run(draw_second_turn(task, open_pool(task), 1.0, 0, Scripted(*turns)))

    own = draw_own(wrong, right)
    assert own is not None and (own.steps, format_states(own)) == (tried.steps, format_states(tried))
    assert draw_own(right) is None, "a plan that works teaches no second turn"
    assert draw_own(Turn(error="nonsense")) is None


def test_nothing_is_called_that_may_have_effects(monkeypatch):
    called = []
    monkeypatch.setattr(LivePool, "call", lambda *arguments, **_: called.append(arguments))
    task = next(task for task in list_tasks(20) if task.oracle_turn and task.oracle_turn.steps)
    assert task.pool is not None
    workers = tuple(spec.model_copy(update={"effects": "some"}) for spec in task.pool.workers)
    pool = open_live_pool(task.pool.model_copy(update={"workers": workers}))
    assert not any(map(may_be_tried, pool.workers.values()))
    assert asyncio.run(draw_tried_plan(task.query, task.oracle_turn, pool, Random(0))) is None and not called
    assert asyncio.run(try_first_plan(task.query, pool, Scripted(task.oracle_turn))) is None and not called


def test_a_lesson_begins_with_the_plan_that_failed_and_learns_the_next_one():
    checked = 0
    for task in list_tasks(30):
        tried, pool = draw(task), open_pool(task)
        if tried is None or task.oracle_turn is None or not task.oracle_turn.steps:
            continue
        row = write_reader_lesson(task.query, task.oracle_turn, pool, TURNS, 1.0, 0, tried)
        texts = [message.content for message in row.messages]
        assert [message.learn for message in row.messages] == [False] * 6 + [True, False, True]
        assert texts[5].startswith(STATES) and any(error[:40] in texts[5] for error in list_errors(tried))
        assert accepts(needs_grammar(MAX_NEEDS, REFUSAL), texts[6])
        steps = task.oracle_turn.steps
        assert [need.text for need in parse_needs(texts[6])] == [step.need for step in steps]
        assert accepts(fill_grammar([pool.workers[step.worker].parameters for step in steps]), texts[8])
        checked += 1
    assert checked > 10


def test_what_no_worker_does_is_given_up_once_it_was_tried():
    refused = [task for task in list_tasks(80) if task.oracle_turn and not task.oracle_turn.steps]
    plans = [(task, draw(task)) for task in refused]
    task, tried = next((task, tried) for task, tried in plans if tried is not None)
    assert task.oracle_turn is not None
    row = write_reader_lesson(task.query, task.oracle_turn, open_pool(task), TURNS, 0.0, 0, tried)
    assert row.messages[-1].content == refuse() and len(row.messages) == 7


def test_only_one_style_shows_states():
    assert [name for name, facts in PROMPTS.items() if facts.reads_states] == ["reader-turns"]


def test_a_step_left_out_hands_over_what_it_should_have_looked_up():
    leave_out = next(slip for slip in SLIPS if slip.__name__ == "_leave_out_step")
    steps = (
        Step(1, "a", {"card": "C-7"}, need="holder"),
        Step(2, "b", {"member": "$1.name"}, (1,), need="fee"),
        Step(3, "c", {"amount": "$2"}, (2,), need="in euros"),
    )
    task = list_tasks(4)[0]
    turn = leave_out("What does the holder of C-7 pay?", Turn(steps, "$3"), open_pool(task), Random(1))
    assert turn is not None
    written = [(step.id, dict(step.arguments), step.access) for step in turn.steps]
    assert written in (
        [(1, {"member": "C-7"}, ()), (2, {"amount": "$1"}, (1,))],
        [(1, {"card": "C-7"}, ()), (2, {"amount": "$1.name"}, (1,))],
    )
    assert turn.answer == "$2"

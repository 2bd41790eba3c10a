"""Access lists against the reference plan: which steps count as the same, what was shared too much or too little."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.episode_loop import NoSink
from orchestrator.engine.events import EpisodeStarted, StepEnded, StepStarted, TurnStarted, TurnTaken
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.actions import Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluation.access_score import identify_work, match_steps, score_access
from trainer.evaluation.trials import run_task
from trainer.tasks import SUITES
from trainer.tasks.pool_conditions import CONDITIONS, apply_condition
from trainer.tasks.task_conditions import rename_in_task


def call(k: int, worker: str, text: str, *access: int) -> Step:
    return Step(k, worker, {"text": text}, access)


PLAN = Turn(
    (
        call(1, "search", "Peru area"),
        call(2, "search", "Chile area"),
        call(3, "reader", "the number", 1),
        call(4, "reader", "the number", 2),
        call(5, "calculator", "$3 / $4", 3, 4),
    ),
    "$5",
)


def same_name(name: str) -> str:
    return name


def ran(*rounds: list[Step], failed: tuple[int, ...] = ()) -> Episode:
    """An episode that made these steps; each says "value K", or fails."""
    events: list = [EpisodeStarted("q", "p", "h", "o", {}, "")]
    for number, steps in enumerate(rounds, start=1):
        events += [TurnStarted(number, 0.0), TurnTaken(number, Turn(tuple(steps)), 0.0)]
        for step in steps:
            events.append(StepStarted(step.id, 0.0))
            bad = Observation.failure(Status.EXEC_ERR, "broken", "no") if step.id in failed else None
            events.append(StepEnded(step.id, bad or Observation(Status.OK, f"value {step.id}"), 0.0))
    return replay("e", events)


def test_the_reference_plan_itself_shares_exactly_what_it_must():
    found = score_access(ran(list(PLAN.steps)), PLAN, same_name)
    assert (found.access_precision, found.access_recall, found.overshared_chars) == (1.0, 1.0, 0)
    assert (found.matched_steps, found.oracle_steps, found.oracle_depth) == (5, 5, 3)


def test_sharing_everything_before_costs_precision_and_missing_entries_cost_recall():
    generous = [Step(step.id, step.worker, step.arguments, tuple(range(1, step.id))) for step in PLAN.steps]
    found = score_access(ran(generous), PLAN, same_name)
    assert found.access_recall == 1.0 and found.access_precision == pytest.approx(4 / 10)
    assert found.overshared_chars == 6 * len("value 1")
    mean = [*PLAN.steps[:2], call(3, "reader", "the number", 1), call(4, "reader", "the number")]
    found = score_access(ran(mean), PLAN, same_name)
    assert (found.access_precision, found.access_recall, found.matched_steps) == (1.0, 0.5, 4)


def test_steps_are_known_in_any_order_and_under_any_number():
    other_way = [
        call(1, "search", "Chile area"),
        call(2, "reader", "The  Number", 1),
        call(3, "search", "peru area"),
        call(4, "reader", "the number", 3),
        call(5, "calculator", "$4 / $2", 2, 4),
    ]
    assert match_steps(ran(other_way), PLAN, same_name) == {1: 2, 2: 4, 3: 1, 4: 3, 5: 5}
    swapped = [*other_way[:4], call(5, "calculator", "$2 / $4", 2, 4)]
    assert 5 not in match_steps(ran(swapped), PLAN, same_name), "Chile by Peru is another question"


def test_a_call_that_is_made_again_after_a_failure_is_the_same_step():
    first = list(PLAN.steps[:3])
    again = [call(4, "search", "Peru area"), call(5, "reader", "the number", 4)]
    episode = ran(first, again, failed=(1, 3))
    assert match_steps(episode, PLAN, same_name) == {1: 1, 2: 2, 3: 3, 4: 1, 5: 3}
    assert score_access(episode, PLAN, same_name).matched_steps == 3


def test_a_step_of_another_way_to_the_answer_is_not_judged_but_an_entry_for_it_is_extra():
    own = [*PLAN.steps[:2], call(3, "python", "print(1)", 1, 2), call(4, "reader", "the number", 1, 3)]
    found = score_access(ran(own), PLAN, same_name)
    assert (found.access_precision, found.access_recall, found.matched_steps) == (0.5, 1.0, 3)


def test_nothing_to_share_is_none_and_so_is_a_task_without_a_plan():
    found = score_access(ran([PLAN.steps[0]]), PLAN, same_name)
    assert (found.access_precision, found.access_recall, found.matched_steps) == (None, None, 1)
    assert score_access(ran([]), PLAN, same_name).matched_steps == 0
    assert score_access(ran([PLAN.steps[0]]), None, same_name) is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["search", "reader", "calculator"]),
                          st.sampled_from(["Peru area", "the number", "$1 / $2", "$$3"]),
                          st.sets(st.integers(1, 8), max_size=4)), max_size=8))  # fmt: skip
def test_any_episode_can_be_judged(drawn):
    steps = [
        call(k, name, text, *sorted(a for a in access if a < k)) for k, (name, text, access) in enumerate(drawn, 1)
    ]
    found = score_access(ran(steps), PLAN, same_name)
    for share in (found.access_precision, found.access_recall):
        assert share is None or 0 <= share <= 1
    assert 0 <= found.matched_steps <= min(5, len(steps))


def test_workers_that_do_the_same_work_are_the_same_in_every_condition():
    starter = starter_pool()
    for condition in CONDITIONS:
        pool, renaming = apply_condition(condition, starter, 3)
        same = identify_work(pool)
        for old, new in renaming.items():
            assert identify_work(starter)(old) == same(new)
    same = identify_work(starter)
    assert len({same(spec.name) for spec in starter.workers}) == len(starter.workers)
    assert same("nobody") != same("no one")


@pytest.mark.medium
@pytest.mark.parametrize("condition", sorted(set(CONDITIONS) - {"flaky"}))
def test_the_oracle_is_perfect_on_real_tasks_whatever_the_workers_are_called(condition):
    pool, renaming = apply_condition(condition, starter_pool(), 1)
    tasks = [rename_in_task(renaming, suite.task(2, "test", 1)) for suite in SUITES.values()]

    async def scored():
        async with live_pool(pool) as live:
            return [await run_task(task, OraclePolicy(task.oracle_turn), live, NoSink()) for task in tasks]

    for task, episode in zip(tasks, asyncio.run(scored()), strict=True):
        found = score_access(episode, task.oracle_turn, identify_work(pool))
        assert (found.access_precision, found.access_recall, found.overshared_chars) == (1.0, 1.0, 0)
        assert found.matched_steps == found.oracle_steps == len(episode.steps)

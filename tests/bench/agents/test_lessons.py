"""The rows on test tasks with agents: who is refused, and who should be."""

from __future__ import annotations

import asyncio

from bench.agents.lessons import Outcome, describe, play_tasks
from podium_lessons.agents.source import open_agents


def test_refusals_are_counted_apart_by_whether_an_agent_knows_the_answer():
    outcomes = [Outcome(True, True, False), Outcome(True, False, True), Outcome(False, True, True)]
    row = describe("p", 1, outcomes)
    assert (row["tasks"], row["answerable"], row["refused"], row["right_refusals"]) == (3, 2, 1, 1)
    assert row["right"] == round(2 / 3, 4)


def test_the_random_floor_is_played_on_the_tasks_own_pools():
    tasks = open_agents().tasks("test", 4, levels=(1,))
    outcomes = asyncio.run(play_tasks("random_plan", tasks))
    assert [outcome.answerable for outcome in outcomes] == [bool(task.oracle_turn.steps) for task in tasks]

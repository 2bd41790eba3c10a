"""Whom reference plans can teach: tasks that have one; a file of lessons stands beside tasks that have none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.plan import Turn
from trainer.methods.sft.method import Sft
from trainer.methods.sft.section import SftSettings
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.teachers import list_shown

BARE = make_task(TaskLine(query="What is 1 + 1?", answer=2), "own", 0)
PLANNED = replace(BARE, oracle_turn=Turn(answer=2))


@pytest.mark.parametrize(
    ("teacher", "tasks"), [("oracle", [PLANNED]), ("smollm2-reader", [PLANNED, BARE]), ("model:ada", [PLANNED, BARE])]
)
def test_the_oracle_shows_the_tasks_that_have_a_plan_and_others_show_all(teacher, tasks):
    assert list_shown(teacher, [PLANNED, BARE]) == tasks


@pytest.mark.parametrize(
    ("shown", "tasks", "is_gap"),
    [
        ({}, [BARE], True),
        ({}, [BARE, PLANNED], False),
        ({"file": "alpaca.jsonl"}, [BARE], False),
        ({"teacher": "smollm2-reader"}, [BARE], False),
    ],
)
def test_tasks_without_plans_are_a_gap_unless_something_else_teaches(shown, tasks, is_gap):
    settings = SftSettings.model_validate({"demonstrations": shown})
    gaps = [gap.key for gap in Sft().find_task_gaps(settings, tasks)]
    assert gaps == (["sft.demonstrations.teacher"] if is_gap else [])

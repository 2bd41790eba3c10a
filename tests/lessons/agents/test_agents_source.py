"""The source `agents`: its plans are right, and what a plan leaves out costs the answer."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from orchestrator.plan import Turn
from orchestrator.reader.needs import format_needs, parse_needs
from podium_lessons.agents.source import make_tasks, open_agents
from pool_registry.calls.live_pool import live_pool
from tests.lessons.plans import answer_by
from trainer.demonstrations.transcripts import ReaderLesson, write_reader_conversation
from trainer.errors import UnknownTask
from trainer.tasks.task import Task

OWN_WORDS = ReaderLesson(listed_needs=0, unfit_cards=1)


def draw(split: str, count: int, level: int | None = None) -> list[Task]:
    return open_agents().tasks(split, count, levels=(level,) if level else None)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_reference_plan_is_right(split):
    for task in draw(split, 40):
        assert task.oracle_turn is not None and answer_by(task, task.oracle_turn), task.query


def test_without_its_access_lists_a_plan_is_wrong_where_a_specialist_must_see_what_another_one_said():
    tasks = [task for task in draw("train", 160, 2) if task.oracle_turn and len(set(task.workers)) > 1]
    blind = [Turn(tuple(replace(step, access=()) for step in task.oracle_turn.steps), "$2") for task in tasks]
    chains = [(task, turn) for task, turn in zip(tasks, blind, strict=True) if len(turn.steps) == 2]
    assert len(chains) > 10 and not any(answer_by(task, turn) for task, turn in chains)


def test_an_instruction_that_leaves_the_question_out_is_wrong():
    for task in draw("train", 12, 1):
        if task.oracle_turn and task.oracle_turn.steps:
            (step,) = task.oracle_turn.steps
            assert not answer_by(task, Turn((replace(step, arguments={"instruction": "Answer it."}),), "$1"))


def test_splits_share_no_question_and_levels_are_numbers_of_steps():
    queries = {split: {task.query for task in draw(split, 200)} for split in ("train", "validation", "test")}
    assert not queries["train"] & queries["validation"] and not queries["train"] & queries["test"]
    for level, steps in ((1, {0, 1}), (2, {2, 3}), (3, {3, 4})):
        assert {len(task.oracle_turn.steps) for task in draw("train", 60, level)} <= steps


def test_a_generalist_is_never_refused_and_an_unknown_topic_is():
    refused = [task for task in draw("train", 600, 1) if not task.oracle_turn.steps]
    assert 0.05 < len(refused) / 600 < 0.3
    for task in refused:
        cards = [spec.description for spec in task.pool.workers if spec.kind == "lesson_agent"]
        assert len(set(cards)) == len(cards), "specialists all have cards of their own"


def test_needs_are_read_again_and_no_other_agent_is_shown_as_unfit():
    for task in (task for task in draw("train", 40) if task.oracle_turn.steps):

        async def write(task: Task = task) -> list[str]:
            async with live_pool(task.pool) as live:
                return [
                    message.content
                    for message in write_reader_conversation(task.query, task.oracle_turn, live, OWN_WORDS)
                ]

        *_, needs, cards, fill = asyncio.run(write())
        assert format_needs(parse_needs(needs)) == needs
        assert [need.access for need in parse_needs(needs)] == [step.access for step in task.oracle_turn.steps]
        foreign = [
            line
            for line in cards.splitlines()
            if "instruction:" not in line and not re.fullmatch(r"\d+\. as \d+", line)
        ]
        assert fill.startswith("No worker") == (len(foreign) == 1), "a tool is shown as unfit, and no agent"


def test_a_lesson_is_the_same_when_it_is_drawn_again_and_takes_no_argument():
    assert make_tasks("train", 7, (1, 2, 3)) == make_tasks("train", 7, (1, 2, 3))
    with pytest.raises(UnknownTask, match="use agents"):
        open_agents("law")

"""A task that leaves as a line of a file comes back as the same task."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.starter import starter_pool
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.sources.task_line import write_task_line
from trainer.tasks.starter_examples import open_examples

WORDS = st.text("abc éß", min_size=1, max_size=12).filter(str.strip)
LINES = [
    {"query": "q", "answer": 42},
    {"query": "q", "answer": "4.5", "verifier": {"kind": "number", "tolerance": 0.5}},
    {"query": "q", "answer": ["a", 2], "verifier": "set"},
    {"query": "q", "answer": ["a", "b"], "verifier": "one_of"},
    {"query": "q", "answer": ["a", 2.5], "verifier": "states_all"},
    {"query": "q", "answer": "[0-9]+", "verifier": "regex"},
    {"query": "q", "answer": "right", "verifier": {"kind": "judge", "worker": "boss"}},
    {"query": "q", "verifier": "refusal"},
    {"query": "q", "answer": 1, "workers": ["a", "b"]},
    {"query": "q", "verifier": {"kind": "python", "code": "def check(answer, query):\n    return True"}},
]


class OddVerifier:
    """A grader of another package."""

    kind = "odd"
    expected = None

    def accepts(self, answer: object) -> bool:
        return answer is None


@pytest.mark.parametrize("line", LINES)
def test_every_grader_of_a_file_comes_back(line):
    task = make_task(TaskLine.model_validate(line), "own", 0)
    assert make_task(write_task_line(task), "own", 0) == task


@given(WORDS, WORDS)
def test_any_words_come_back(query, answer):
    task = make_task(TaskLine(query=query, answer=answer), "own", 0)
    assert make_task(write_task_line(task), "own", 0) == task


def test_reference_plans_go_along():
    tasks = open_examples("").tasks("test", 3)
    for task in tasks:
        back = make_task(write_task_line(task), task.ref.family, task.ref.index)
        assert back.workers == task.workers and back.oracle_turn is not None


def test_what_a_line_cannot_say_is_refused():
    task = make_task(TaskLine(query="q", answer=1), "own", 0)
    with pytest.raises(ValueError, match="odd"):
        write_task_line(replace(task, verifier=OddVerifier()))
    with pytest.raises(ValueError, match="a pool of its own"):
        write_task_line(replace(task, pool=starter_pool()))

"""A person's own tasks from a file: good lines load, every bad one is told, and the rest of Podium takes them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from trainer.errors import UnusableTasks
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks.registry import open_source
from trainer.tasks.sources.jsonl import MAX_LINE_BYTES, load_tasks

pytestmark = pytest.mark.medium

PLAN = {"steps": [{"worker": "calculator", "instruction": "6*7", "access": []}], "answer": "$1"}


@pytest.fixture
def written(tmp_path):
    def write(*lines: object):
        path = tmp_path / "mine.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("line", "kind", "right", "wrong"),
    [
        ({"answer": 42}, "number", "it is 42", 43),
        ({"answer": -0.5}, "number", -0.5, 0.5),
        ({"answer": "42"}, "exact", "42", "42.0"),
        ({"answer": True}, "exact", True, False),
        ({"answer": "1,000", "verifier": "number"}, "number", 1000, 1001),
        ({"answer": 3.14, "verifier": {"kind": "number", "tolerance": 0.01}}, "number", 3.149, 3.2),
        ({"answer": [2, "b"], "verifier": "set"}, "set", "B, 2", "B"),
        ({"answer": ["a", "b"], "verifier": "one_of"}, "one_of", "b", "a, b"),
        ({"answer": "[A-C]", "verifier": "regex"}, "regex", "B", "D"),
    ],
)
def test_the_verifier_is_the_one_asked_for_or_fits_the_answer(written, line, kind, right, wrong):
    read = load_tasks(written({"query": "q", **line}))
    assert not read.problems
    verifier = read.tasks[0].verifier
    assert verifier.kind == kind and verifier.accepts(right) and not verifier.accepts(wrong)


def test_judges_and_snippets_load_without_being_run(written):
    code = "def check(answer, query):\n    return True"
    read = load_tasks(
        written(
            {"query": "a", "verifier": {"kind": "python", "code": code}},
            {"query": "b", "answer": "x", "verifier": {"kind": "judge", "worker": "solver"}},
        )
    )
    assert [task.verifier.kind for task in read.tasks] == ["python", "judge"] and not read.problems


def test_good_lines_load_and_every_bad_one_is_told(written):
    path = written(
        {"query": "What is 6 * 7?", "answer": 42},
        "",
        "nonsense",
        "[]",
        {"answer": 1},
        {"query": "   ", "answer": 1},
        {"query": "a", "anwser": 1, "split": "holdout"},
        {"query": "b"},
        {"query": " what"},
        {"query": "What is  6 * 7", "answer": 42},
        {"query": "c", "answer": [1]},
        {"query": "d", "answer": "x", "verifier": "number"},
        {"query": "e", "answer": "(", "verifier": "regex"},
        {"query": "f", "answer": 1, "verifier": "best"},
        {"query": "g", "verifier": {"kind": "python", "code": "def check(:"}},
        {"query": "h", "verifier": {"kind": "python", "code": "def chekc(a, q): pass"}},
        {"query": "i", "answer": 1, "plan": {"steps": []}},
        {"query": "j", "answer": 1, "plan": {"steps": [{"worker": "w", "instruction": "$1", "access": [1]}]}},
        {"query": "k", "answer": 1, "plan": {"steps": [], "answer": "$1"}},
        '{"query": "' + "x" * MAX_LINE_BYTES + '", "answer": 1}',
        {"query": "last", "answer": 1},
    )
    read = load_tasks(path)
    assert [(task.query, task.ref.index) for task in read.tasks] == [("What is 6 * 7?", 0), ("last", 20)]
    told = dict(read.problems)
    assert sorted(told) == list(range(3, 21))
    said = {4: "object", 5: "query: this is missing", 8: "answer: this is missing", 10: "line 1", 11: "set",
            12: "no number", 13: "regular expression", 15: "not Python", 16: "define check", 18: "step 1",
            19: "answer", 20: "bytes"}  # fmt: skip
    assert {line: what for line, what in told.items() if line in said and said[line] not in what} == {}
    assert [line for line, _ in read.problems].count(7) == 2  # both problems of one line


def test_splits_are_as_written_or_follow_from_the_query(written):
    lines = [{"query": f"question {n}", "answer": n} for n in range(300)]
    read = load_tasks(written(*lines, {"query": "mine", "answer": 1, "split": "test", "family": "special"}))
    splits = [task.ref.split for task in read.tasks]
    assert 0.5 < splits.count("train") / 300 < 0.7 and splits.count("validation") > 20
    assert (read.tasks[-1].ref.split, read.tasks[-1].ref.family) == ("test", "special")
    moved = load_tasks(written(*reversed(lines)))
    assert {task.query: task.ref.split for task in moved.tasks}.items() <= {
        task.query: task.ref.split for task in read.tasks
    }.items()


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_tasks_or_problems(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("own") / "any.jsonl"
    path.write_bytes(content)
    read = load_tasks(path)
    assert len(read.tasks) + len({line for line, _ in read.problems}) <= content.count(b"\n") + 1


@given(st.dictionaries(st.sampled_from(["query", "answer", "verifier", "split", "plan", "family"]),
                       st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
                                    lambda inner: st.lists(inner, max_size=3)
                                    | st.dictionaries(st.sampled_from(["kind", "steps", "answer", "worker"]), inner),
                                    max_leaves=6)))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_object_is_a_task_or_has_a_problem(tmp_path_factory, line):
    path = tmp_path_factory.mktemp("own") / "any.jsonl"
    path.write_text(json.dumps(line))
    read = load_tasks(path)
    assert bool(read.tasks) != bool(read.problems)


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UnusableTasks, match="cannot be read"):
            load_tasks(path)


def test_own_tasks_are_evaluated_with_their_plan_as_the_oracles(written):
    path = written({"query": "What is 6 * 7?", "answer": 42, "split": "test", "plan": PLAN})

    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", open_source(f"file:{path}").tasks("test", 5), pool)

    result = asyncio.run(scored())
    assert (result.mean, result.family, result.level, result.tasks) == (1.0, "mine", 0, 1)


def trainer(*arguments: str, home: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", **({"PODIUM_HOME": home} if home else {})}
    return subprocess.run(
        [sys.executable, "-m", "trainer", *arguments], capture_output=True, text=True, env=environment, timeout=300
    )


def test_the_command_checks_a_file(written):
    path = written({"query": "What is 6 * 7?", "answer": 42}, "nonsense", {"query": "[b]x[/b]", "answer": "Paris"})
    done = trainer("tasks", "check", str(path))
    assert done.returncode == 0 and "2 tasks" in done.stdout and "line 2: " in done.stdout
    assert "What is 6 * 7?" in done.stdout and "[b]x[/b]" in done.stdout
    bad = trainer("tasks", "check", str(written("nonsense")))
    assert bad.returncode == 2 and "line 1: " in bad.stdout
    none = trainer("tasks", "check", f"{path}.nowhere")
    assert none.returncode == 2 and none.stderr.count("\n") == 1


def test_the_commands_take_a_source(written, tmp_path):
    path = written({"query": "What is 6 * 7?", "answer": 42, "split": "test", "plan": PLAN})
    shown = trainer("tasks", "show", "--source", f"file:{path}", "--json")
    assert json.loads(shown.stdout)["plan"]["steps"][0]["worker"] == "calculator"
    arguments = ("evaluate", "--orchestrator", "oracle", "--source", f"file:{path}", "--json")
    done = trainer(*arguments, home=str(tmp_path / "home"))
    assert done.returncode == 0 and json.loads(done.stdout)["mean"] == 1.0
    for wrong in (("tasks", "show"), ("tasks", "show", "--family", "forge", "--source", "forge")):
        done = trainer(*wrong)
        assert done.returncode == 2 and "either --family or --source" in done.stderr

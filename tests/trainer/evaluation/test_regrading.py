"""Stored answers are graded again by tasks that have changed: no worker is called, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pool_registry.calls.live_worker import LiveWorker
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.trainer.support.results import row as make_row
from trainer.__main__ import app
from trainer.evaluation.regrading import Regrading
from trainer.job_process import run_job
from trainer.jobs.job_folder import read_lines
from trainer.recipe import parse_recipe
from trainer.results.rows import read_results

pytestmark = pytest.mark.medium

CALCULATOR = WorkerSpec(name="calculator", kind="calculator", description="arithmetic")
COUNT = 6


def write_tasks(path: Path, **changes: dict[str, object]) -> None:
    """Sums with their plans; `changes` are other fields of the task of a number, such as n3={"answer": 9}."""
    lines = []
    for number in range(COUNT):
        plan = {"steps": [{"worker": "calculator", "instruction": f"{number} + 1"}], "answer": "$1"}
        task = {"query": f"What is {number} plus 1?", "answer": number + 1, "plan": plan, "split": "test"}
        lines.append(json.dumps(task | changes.get(f"n{number}", {})))
    path.write_text("\n".join(lines))


@pytest.fixture
def evaluated(store, jobs, tmp_path, monkeypatch):
    """A finished evaluation of the oracle and of random plans, and the file of its tasks."""
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))
    file = tmp_path / "sums.jsonl"
    write_tasks(file)
    store.pools.save(Pool(name="sums", workers=(CALCULATOR,)))
    section = {"orchestrators": ["oracle", "random_plan"], "source": f"file:{file}", "count": COUNT}
    key = jobs.submit(parse_recipe(json.dumps({"name": "m", "pool": "sums", "evaluate": section})), here=True).id
    run_job(key, store, jobs)
    return key, file


def regrade(key: str, *options: str) -> dict:
    result = CliRunner().invoke(app, ["regrade", key, "--json", *options])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_without_a_change_nothing_changes_sides(evaluated):
    key, _ = evaluated
    document = regrade(key)
    assert document["changed"] == [] and document["left"] == {} and document["episodes"] == 2 * COUNT
    best = document["ranking"][0]
    assert (best["orchestrator"], best["before"], best["after"]) == ("oracle", 1, 1)


def test_another_verifier_turns_the_answers_that_it_judges_otherwise_and_calls_nobody(evaluated, monkeypatch):
    async def refuse(*_, **__):
        raise AssertionError("a worker was called")

    monkeypatch.setattr(LiveWorker, "call", refuse)
    key, file = evaluated
    check = {"kind": "python", "code": "def check(answer, query):\n    return answer == 99 or answer == 1"}
    near = {"kind": "number", "tolerance": 5}
    write_tasks(file, n0={"verifier": check}, n2={"answer": 77}, n3={"answer": 9, "verifier": near})
    document = regrade(key)
    mine = [line for line in document["changed"] if line["orchestrator"] == "oracle"]
    assert [(line["query"], line["correct"]) for line in mine] == [("What is 2 plus 1?", False)]
    ranking = {line["orchestrator"]: line for line in document["ranking"]}
    assert ranking["oracle"]["after"] == pytest.approx(1 - 1 / COUNT)
    assert ranking["oracle"]["difference"]["mean"] == pytest.approx(-1 / COUNT)


def test_nothing_is_stored_until_it_is_to_be_kept(evaluated, store, jobs):
    key, file = evaluated
    folder = jobs.folder(key)
    before = folder.results.read_bytes()
    write_tasks(file, n2={"answer": 77})
    regrade(key)
    assert folder.results.read_bytes() == before

    regrade(key, "--keep")
    assert (folder.path / "before-1.jsonl").read_bytes() == before
    rows = [row for row in read_results(folder.results) if row.orchestrator == "oracle"]
    (wrong,) = [row for row in rows if not row.correct]
    assert wrong.query == "What is 2 plus 1?"
    trace = store.traces.row(wrong.episode)
    assert trace.correct is False and store.traces.episode(wrong.episode).graded.expected == "77"
    summary = read_lines(folder.evaluations)[0]
    assert (summary["orchestrator"], summary["mean"]) == ("oracle", pytest.approx(1 - 1 / COUNT))
    assert regrade(key)["changed"] == []


def test_what_cannot_be_graded_again_stays_and_is_counted(evaluated, store):
    key, file = evaluated
    write_tasks(file, n1={"query": "Another question?"}, n2={"verifier": {"kind": "judge", "worker": "nobody"}})
    document = regrade(key)
    assert document["left"] == {"no task has this query": 2, "a judge would have to be asked": 2}
    assert document["changed"] == []


def test_generated_tasks_and_jobs_without_results_are_refused_with_what_to_do(evaluated, jobs):
    key, _ = evaluated
    generated = CliRunner().invoke(app, ["regrade", key, "--tasks", "ledger"])
    assert generated.exit_code and "--tasks" in f"{generated.output}{generated.exception}"
    empty = jobs.submit(jobs.recipe(key)).id
    waiting = CliRunner().invoke(app, ["regrade", empty])
    assert waiting.exit_code and "has evaluated nothing" in f"{waiting.output}{waiting.exception}"


def test_the_ranking_is_by_what_is_right_now():
    before = [make_row(task, correct=name == "a", orchestrator=name) for name in "ab" for task in range(4)]
    after = [row.model_copy(update={"correct": not row.correct}) for row in before]
    changes = Regrading(before, after).rank()
    assert [(change.orchestrator, change.before, change.after) for change in changes] == [("b", 0, 1), ("a", 1, 0)]

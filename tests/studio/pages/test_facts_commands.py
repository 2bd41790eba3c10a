"""A worker's facts: computed from every stored run, and fed by an evaluation of it alone."""

from __future__ import annotations

import pytest

from orchestrator.traces import agent_track_record
from studio.pages.pool import documents
from studio.pages.pool.commands import PoolCommands
from tests.studio.support.making import wait_for_making
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script
from trainer.job_process import run_job
from trainer.tasks.practice.stored import find_practice_file, list_own_tasks
from trainer.tasks.practice.task_book import TaskBook

PRICED = {"price_in": 10.0, "price_out": 1000.0}  # 100 tokens in and 10 out are 0.011 dollars


@pytest.fixture
def send(runtime, monkeypatch):
    """Commands about a pool of agents that has no task yet."""
    with serve_script(Script()) as url:
        pool = build_experts(url)
        workers = tuple(spec.model_copy(update=PRICED) for spec in pool.workers)
        runtime.store.pools.save(pool.model_copy(update={"workers": workers}))
        monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
        monkeypatch.setattr(runtime.jobs, "start", lambda _job: True)
        for place in TaskBook(find_practice_file("experts")).files:
            place.unlink(missing_ok=True)
        page = PoolCommands(runtime)
        yield lambda action, **fields: page.run(action, {"pool": "experts", **fields})


def read_card(send, name: str) -> dict:
    workers = send("show")["state"]["pool"]["workers"]
    return next(worker for worker in workers if worker["name"] == name)


@pytest.mark.medium
def test_the_outcomes_of_an_evaluation_alone_enter_the_facts(send, runtime, monkeypatch):
    assert read_card(send, "law1")["facts"] is None and send("refresh_facts", name="law1")["facts"] is None
    send("make_practice", author=AUTHOR, count=20)
    wait_for_making("experts")
    tested = [task for task in list_own_tasks("experts") if task.ref.split == "test"]
    law = sum("law" in task.query for task in tested)
    reply = send("evaluate_alone", name="law1", max_cost="5")
    assert reply["ok"], reply
    recipe = runtime.jobs.recipe(reply["job"])
    assert recipe.evaluate.orchestrators == ("direct:law1",) and recipe.evaluate.max_cost == 5.0
    assert run_job(reply["job"], runtime.store, runtime.jobs)
    runtime.store.traces.flush()

    facts = read_card(send, "law1")["facts"]
    assert (facts["graded"], facts["right"], facts["read"]) == (len(tested), law, 500) and 0 < law < len(tested)
    assert facts["cost"] == pytest.approx(0.011) and facts["median_s"] > 0 and facts["newest"] and facts["computed_at"]
    assert read_card(send, "med1")["facts"] is None

    monkeypatch.setattr(documents, "SHOWN_EPISODES", 1)
    assert read_card(send, "law1")["facts"]["graded"] == 1
    everything = send("refresh_facts", name="law1")["facts"]
    assert (everything["graded"], everything["read"]) == (len(tested), None)
    monkeypatch.setattr(agent_track_record, "NEWEST", 1)
    assert send("refresh_facts", name="law1")["facts"]["graded"] == len(tested)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "law1"}, "no tasks to measure with yet"),
        ({"name": "nobody"}, "only an agent that is switched on"),
        ({"name": "law1", "max_cost": "much"}, "no tasks to measure with yet"),
    ],
)
def test_an_evaluation_that_cannot_start_says_why(send, fields, sentence):
    reply = send("evaluate_alone", **fields)
    assert not reply["ok"] and sentence in reply["problems"][0][1]

"""The commands of the Tasks page: what waits is listed, accepted and struck, and what is stored of traffic is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Graded
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.access.permissions import find_need
from studio.housekeeping.retention import read_retention
from studio.pages.tasks.commands import CandidateCommands
from studio.runtime import Runtime
from tests.studio.support.reports import OWN, make_report
from trainer.improve.choose_tasks import digest_line
from trainer.improve.record import Improvement, ImprovementPlan, make_folder
from trainer.results.improvement import write_report
from trainer.tasks.practice.stored import list_own_tasks, open_task_book
from trainer.tasks.practice.traffic_record import read_traffic
from trainer.tasks.sources.jsonl import TaskLine

pytestmark = pytest.mark.medium
CALC = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")


@pytest.fixture
def pool(runtime: Runtime) -> str:
    """A pool with two judged questions, one of them a client's."""
    name, store = f"pool-{uuid4().hex[:8]}", runtime.store
    store.pools.save(Pool(name=name, workers=(CALC,)))
    for place, (query, source) in enumerate((("What is one?", "mine"), ("Mail a@b.de what two is", "served"))):
        start = EpisodeStarted(query, name, "", "oracle", {}, f"2026-11-29T10:0{place}:00", user="app", source=source)
        for event in (start, EpisodeEnded("answered", 1.0, "1"), Graded(True, "1", 1.0, "ann", "page")):
            store.traces.append(f"{name}-{place}", event)
    store.traces.flush()
    return name


@pytest.fixture
def run(runtime: Runtime, pool: str) -> Callable[..., dict[str, Any]]:
    """Runs a command about the pool."""
    return lambda name, **fields: CandidateCommands(runtime).run(name, {"pool": pool, **fields})


def test_candidates_are_listed_accepted_struck_and_put_back(run, pool):
    (row,) = run("candidates")["candidates"]["rows"]
    assert row["evidence"][0]["words"].startswith("judged right by ann, page")
    struck = run("strike", ids=[row["id"]])
    assert struck["message"] == "1 question struck." and struck["candidates"]["rows"] == []
    assert len(run("restore", struck=struck["struck"])["candidates"]["rows"]) == 1
    accepted = run("accept", choices=[{"id": row["id"], "split": "test"}])
    assert accepted["message"] == "1 task added." and accepted["refused"] == {}
    assert [(task.query, task.ref.split) for task in list_own_tasks(pool)] == [("What is one?", "test")]


def test_tasks_that_are_set_aside_are_listed_and_put_back(run, pool, runtime):
    book = open_task_book(pool)
    book.add([TaskLine(query="What is three?", answer=4)])
    plan = ImprovementPlan(
        id=f"{pool}-abcdef", key="abcdef", pool=pool, pool_version=1, serving="router", measured="router", stage="who",
        taken=(digest_line(book.read()[0].line),), own=(), learnt=1, replayed=0, held_out=0, started=0.0,
    )  # fmt: skip
    improvement = Improvement(make_folder(runtime.store.home, plan.id), plan)
    improvement.update()
    write_report(improvement.folder, make_report(suites=(OWN.model_copy(update={"low": -0.9, "high": -0.1}),)))
    document = run("candidates")["candidates"]
    assert document["aside"] == [{"query": "What is three?", "answer": "4"}] and document["total_aside"] == 1
    reply = run("put_back", queries=["What is three?"])
    assert reply["message"] == "1 task put back." and reply["candidates"]["aside"] == []
    assert not run("put_back", queries=["What is three?"])["ok"]


def test_clients_are_listed_once_that_is_allowed_and_what_needs_a_look_stays(run, pool):
    assert run("allow_clients", clients=True)["ok"] and read_traffic(pool).clients
    rows = run("candidates")["candidates"]["rows"]
    client = next(row for row in rows if row["evidence"][0]["client"] == "app")
    assert client["marks"][0]["kind"] == "an e-mail address"
    reply = run("accept", choices=[{"id": row["id"]} for row in rows])
    assert reply["message"] == "1 task added; 1 needs a look." and list(reply["refused"]) == [client["id"]]


def test_the_days_that_served_traces_stay_can_be_set_and_are_checked(run, runtime):
    assert run("keep_served", days="30")["candidates"]["settings"]["served_days"] == 30
    assert run("keep_served", days="")["ok"] and read_retention(runtime.store.home).served_days is None
    for wrong in ("0", "-1", "nan", "1e9", "soon"):
        assert run("keep_served", days=wrong)["problems"][0][0] == "days"


def test_owners_alone_say_what_is_stored_of_clients(runtime):
    roles = {name: find_need(command).role.value for name, command in CandidateCommands(runtime).commands.items()}
    assert roles == {
        "candidates": "viewer", "accept": "editor", "strike": "editor", "restore": "editor", "put_back": "editor",
        "allow_clients": "owner", "keep_served": "owner",
    }  # fmt: skip


def test_a_pool_that_is_not_there_is_said_so(run):
    assert "nobody" in run("candidates", pool="nobody")["problems"][0][1]

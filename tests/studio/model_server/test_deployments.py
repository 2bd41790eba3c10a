"""A served deployment: changes hold from the next request on, each answer says which side gave it, and a candidate runs
in the shadow or on a share."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError
from sqlmodel import Session, select

from orchestrator.engine.events import ServedAs
from orchestrator.traces.store import EpisodeRow, open_store
from pool_registry.pool import rename_pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from studio.deployments.check import check_candidate
from studio.deployments.states import Candidate, DeploymentOptions, DeploymentRefused, ServingSide
from studio.deployments.store import Deployments
from studio.deployments.trial import measure_trial, sum_shadow_cost
from studio.model_server import shadows
from studio.model_server.app import create_model_app
from studio.model_server.sides import Sides, build_served_model
from tests.studio.support.edge_home import home, model

__all__ = ["home", "model"]

pytestmark = pytest.mark.medium
WAIT_S = 30
LOCKED = OperationalError("SELECT", None, sqlite3.OperationalError("database is locked"))


@pytest.fixture(scope="module")
def store(home):
    """Two agents and a tool that may have effects, at two versions."""
    store = open_store(find_home(str(home)))
    pool = rename_pool(store.pools.latest("edge").pool, "two")
    agent = pool.workers[0].model_copy(update={"price_call": 0.0})
    other = agent.model_copy(update={"name": "other"})
    writer = WorkerSpec(name="writer", kind="calculator", description="Counts, and notes it.", effects="some")
    pool = pool.without_worker("agent").with_worker(agent).with_worker(other).with_worker(writer)
    store.pools.save(pool)
    store.pools.save(pool.model_copy(update={"limits": pool.limits.model_copy(update={"max_steps": 7})}))
    yield store
    store.close()


@pytest.fixture
def name(request) -> str:
    return request.node.name[:60].replace("[", "-").replace("]", "")


@contextmanager
def serve(store, name: str, candidate: Candidate | None = None, **options):
    """A server of a new deployment with `direct:agent`, and the record that it follows."""
    deployments = Deployments(store.engine)
    side = ServingSide(pool="two", pool_version=1, orchestrator="direct:agent", options=DeploymentOptions(**options))
    deployments.deploy(name, side, "ada")
    if candidate is not None:
        deployments.set_candidate(name, candidate, "ada")
    app = create_model_app(open_store(store.home), build_served_model(name, side), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client, deployments


def ask(client: TestClient, name: str, text: str = "say hello", **more):
    return client.post(
        "/v1/chat/completions", json={"model": name, "messages": [{"role": "user", "content": text}], **more}
    )


def side_of(reply) -> tuple[str, str]:
    return reply.headers["x-podium-orchestrator"], reply.headers["x-podium-deployment"].partition("side=")[2]


def list_shadows(store, name: str) -> list[EpisodeRow]:
    query = select(EpisodeRow).where(EpisodeRow.deployment == name, EpisodeRow.side == "shadow")
    with Session(store.engine) as session:
        return list(session.exec(query))


def wait_for_trial(store, name: str, ready):
    """The figures of the trial, once they are `ready`."""
    deadline = time.monotonic() + WAIT_S
    while True:
        store.traces.flush()
        trial = measure_trial(store, Deployments(store.engine).history(name))
        if trial is not None and ready(trial):
            return trial
        assert time.monotonic() < deadline, trial
        time.sleep(0.05)


def test_the_name_is_the_model_and_a_promotion_holds_from_the_next_request_on(store, name):
    with serve(store, name) as (client, deployments):
        assert [row["id"] for row in client.get("/v1/models").json()["data"]] == [name]
        reply = ask(client, name)
        assert side_of(reply) == ("direct:agent", "serving") and reply.json()["model"] == name
        row = store.traces.episode(reply.headers["x-podium-trace"])
        assert row.started.served_as == ServedAs(name, "serving", change=1)
        deployments.set_candidate(name, Candidate(orchestrator="direct:other"), "ada")
        deployments.promote(name, None, "ada", "a trial")
        promoted = ask(client, name)
        assert side_of(promoted) == ("direct:other", "serving")
        served = store.traces.episode(promoted.headers["x-podium-trace"]).started.served_as
        assert served == ServedAs(name, "serving", change=3)
        streamed = ask(client, name, stream=True)
        assert side_of(streamed) == ("direct:other", "serving") and "hello" in streamed.text
        deployments.roll_back(name, "ada")
        for path, body in (("responses", {"input": "say hello"}), ("completions", {"prompt": "say hello"})):
            assert side_of(client.post(f"/v1/{path}", json={"model": name, **body}))[0] == "direct:agent"


def test_a_request_in_flight_is_answered_by_the_side_that_it_came_to(store, name, model):
    with serve(store, name) as (client, deployments):
        replies = []
        slow = threading.Thread(target=lambda: replies.append(ask(client, name, "wait 2")))
        before = len(model.started)
        slow.start()
        while len(model.started) == before:
            time.sleep(0.01)
        changed = deployments.latest(name).state.serving.model_copy(update={"pool_version": 2})
        deployments.deploy(name, changed, "ada")  # its pool is closed once nobody uses it
        deployments.set_candidate(name, Candidate(orchestrator="direct:other"), "ada")
        deployments.promote(name, None, "ada", "a trial")
        assert side_of(ask(client, name)) == ("direct:other", "serving")
        slow.join()
        assert side_of(replies[0]) == ("direct:agent", "serving") and replies[0].status_code == 200, replies[0].text


def test_a_conversation_stays_on_one_side_of_a_share(store, name):
    with serve(store, name, Candidate(orchestrator="direct:other", share=0.5)) as (client, _):
        firsts = [f"say number {index}" for index in range(24)]
        sides = {first: side_of(ask(client, name, first)) for first in firsts}
        assert set(sides.values()) == {("direct:agent", "serving"), ("direct:other", "candidate")}
        for first in firsts[:6]:
            turns = [
                {"role": "user", "content": first}, {"role": "assistant", "content": "hm"},
                {"role": "user", "content": "say it again"},
            ]  # fmt: skip
            later = client.post("/v1/chat/completions", json={"model": name, "messages": turns})
            assert side_of(later) == sides[first]
        trial = wait_for_trial(store, name, lambda trial: sum(side.runs for side in trial.sides) == 30)
        counts = {side.side: side.runs for side in trial.sides}
        assert counts["candidate"] >= 4 and counts["serving"] >= 4 and trial.pairs == 0


def test_a_shadow_answers_the_same_request_and_nobody_gets_its_answer(store, name):
    with serve(store, name, Candidate(orchestrator="direct:other")) as (client, _):
        reply = ask(client, name)
        assert side_of(reply) == ("direct:agent", "serving")
        trial = wait_for_trial(store, name, lambda trial: trial.pairs == 1)
        assert trial.agreed == 1 and any("1 of 1 requests" in line for line in trial.describe())
        (row,) = list_shadows(store, name)
        assert (row.shadow_of, row.orchestrator) == (reply.headers["x-podium-trace"], "direct:other")


def test_a_shadow_calls_no_worker_that_may_have_effects(store, name, model):
    with serve(store, name, Candidate(orchestrator="react")) as (client, _):
        ask(client, name, 'call writer {"expression": "2 + 2"}')
        trial = wait_for_trial(store, name, lambda trial: trial.withheld == 1)
        (row,) = list_shadows(store, name)
        (call,) = [run for run in store.traces.episode(row.id).steps.values() if run.step.worker == "writer"]
        assert trial.pairs == 0 and call.observation.error.code == "may_have_effects"


def test_a_shadow_makes_way_for_a_request_and_is_tried_again(store, name, model):
    with serve(store, name, Candidate(orchestrator="direct:other")) as (client, _):
        before = len(model.started)
        ask(client, name, "wait 2")
        while len(model.started) < before + 2:  # its shadow waits now, too
            time.sleep(0.01)
        started = time.monotonic()
        ask(client, name, "say quick")
        assert time.monotonic() - started < 1.8, "the answer did not wait for the shadow"
        trial = wait_for_trial(store, name, lambda trial: trial.pairs == 2)
        assert trial.agreed == 2


def test_a_database_that_is_locked_or_full_ends_one_shadow_and_not_those_that_wait(store, name, monkeypatch):
    measured, both_wait = [], threading.Event()

    def fail_once(*arguments) -> float:
        measured.append(arguments)
        if len(measured) == 1:
            both_wait.wait(WAIT_S)
            raise LOCKED
        return sum_shadow_cost(*arguments)

    monkeypatch.setattr(shadows, "sum_shadow_cost", fail_once)
    with serve(store, name, Candidate(orchestrator="direct:other")) as (client, _):
        ask(client, name)
        ask(client, name)
        both_wait.set()
        wait_for_trial(store, name, lambda trial: trial.pairs == 1)


@pytest.mark.parametrize("fault", [LOCKED, KeyError("a fault")], ids=["locked", "fault"])
def test_pools_are_closed_however_shadows_ended(store, name, monkeypatch, fault):
    def fail(*_) -> float:
        raise fault

    monkeypatch.setattr(shadows, "sum_shadow_cost", fail)
    closed = watch_close(monkeypatch)
    with serve(store, name, Candidate(orchestrator="direct:other")) as (client, _):
        ask(client, name)
        time.sleep(0.3)
    assert closed


def watch_close(monkeypatch) -> list[str]:
    """Gets an entry when the server closes its pools."""
    closed: list[str] = []
    close = Sides.close

    async def note(self) -> None:
        closed.append("pools")
        await close(self)

    monkeypatch.setattr(Sides, "close", note)
    return closed


def test_nothing_runs_in_the_shadow_of_what_is_not_stored_or_once_its_money_is_spent(store, name):
    candidate = Candidate(orchestrator="direct:other", max_cost=1e-9)
    priced = store.pools.get("two", 2).pool
    agents = [spec.model_copy(update={"price_call": 0.25}) for spec in priced.workers]
    version = store.pools.save(priced.model_copy(update={"workers": tuple(agents)})).version
    with serve(store, name) as (client, deployments):
        changed = deployments.latest(name).state.serving.model_copy(update={"pool_version": version})
        deployments.deploy(name, changed, "ada")
        deployments.set_candidate(name, candidate, "ada")
        ask(client, name)
        trial = wait_for_trial(store, name, lambda trial: trial.withheld == 1)
        assert (trial.shadow_cost, trial.pairs) == (0, 0)
        deployments.set_candidate(name, Candidate(orchestrator="direct:other"), "ada")
        ask(client, name, store=False)
        ask(client, name, "say last")
        trial = wait_for_trial(store, name, lambda trial: trial.pairs == 1)
        assert trial.shadow_cost == 0.25 and len(list_shadows(store, name)) == 2


def test_what_cannot_be_opened_is_not_served_and_the_server_goes_on(store, name, caplog):
    with serve(store, name) as (client, deployments):
        deployments.set_candidate(name, Candidate(orchestrator="direct:nobody", share=0.99), "ada")
        assert [side_of(ask(client, name)) for _ in range(2)] == [("direct:agent", "serving")] * 2
        assert [record.levelname for record in caplog.records if "cannot be served" in record.message] == ["ERROR"]
        deployments.set_candidate(name, Candidate(orchestrator="direct:other"), "ada")
        deployments.promote(name, None, "ada", "a trial")
        assert side_of(ask(client, name)) == ("direct:other", "serving")


def test_only_the_name_is_served(store, name):
    with serve(store, name) as (client, _):
        assert ask(client, "podium-two").status_code == 404
        assert client.get(f"/v1/models/{name}").json()["id"] == name


def test_a_shadow_is_refused_where_its_plans_would_wait_or_be_stored(store):
    side = ServingSide(pool="two", pool_version=1, orchestrator="direct:agent")
    for options in (DeploymentOptions(mode="review"), DeploymentOptions(record=False)):
        with pytest.raises(DeploymentRefused, match="--share"):
            check_candidate(store, side.model_copy(update={"options": options}), Candidate(orchestrator="react"))

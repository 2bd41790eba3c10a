"""Links to one run each: they open that run without a login and nothing else, for a time, until they are taken back or
the run is gone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select
from typer.testing import CliRunner

from orchestrator.traces.tables import EpisodeRow
from pool_registry.storage.database import writing
from studio.__main__ import app as program
from studio.access.accounts import Accounts
from studio.access.login import COOKIE, LoginWall
from studio.access.permissions import list_endpoints
from studio.access.roles import UserRole
from studio.access.shared_runs import ADDRESS, SharedRunRow, SharedRuns, ShareRefused
from studio.housekeeping.forgetting import Sender, forget
from studio.housekeeping.things import Things
from tests.studio.support.recorded import record_run

pytestmark = pytest.mark.medium

PASSWORD = "correct horse battery"
PEOPLE = {"olga": UserRole.OWNER, "eddy": UserRole.EDITOR, "ella": UserRole.EDITOR, "vera": UserRole.VIEWER}


@pytest.fixture(scope="module")
def app(runtime):
    from studio.app import create_app

    for name, role in PEOPLE.items():
        Accounts(runtime.store.engine).add(name, PASSWORD, role)
    return create_app(runtime, login=True, loopback=False)


@pytest.fixture(scope="module")
def people(app) -> dict[str, TestClient]:
    return {name: log_in(app, name) for name in PEOPLE}


@pytest.fixture
def stranger(app) -> TestClient:
    return visit(app)


@pytest.fixture
def run(runtime) -> str:
    return record_run(runtime.store, "oracle")


def visit(app) -> TestClient:
    return TestClient(app, base_url="http://studio.example:7860", follow_redirects=False)


def log_in(app, name: str) -> TestClient:
    client = visit(app)
    assert client.post("/login", data={"name": name, "password": PASSWORD}).status_code == 200
    return client


def share(client: TestClient, run: str, **how) -> str:
    reply = client.post(f"/api/episodes/{run}/share", json=how)
    assert reply.status_code == 200 and not reply.json()["problem"], reply.text
    return reply.json()["address"]


def test_a_stranger_opens_the_run_and_sees_it_whole(people, stranger, runtime, run):
    address = share(people["eddy"], run)
    assert ADDRESS.fullmatch(address)
    page = stranger.get(address, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
    row = runtime.store.traces.row(run)
    assert page.status_code == 200 and row.query in page.text and str(row.answer) in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"] and "set-cookie" not in page.headers
    assert (page.headers["cache-control"], page.headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text), "it loads nothing from elsewhere"
    other = record_run(runtime.store, "oracle", index=1)
    assert other not in page.text and stranger.get(f"/?episode={other}").status_code in (303, 401)


def test_nothing_else_of_the_studio_is_reached_with_it(app, people, runtime, run):
    address = share(people["eddy"], run)
    token = address.rpartition("/")[2]
    wall = next(wall for wall in app.user_middleware if wall.cls is LoginWall)
    rows = {row for row, _ in list_endpoints(app.routes)} | {
        row for row in wall.kwargs["permissions"].rows if not row.startswith("EVENT ")
    }
    assert len(rows) > 100
    stranger = visit(app)
    for row in sorted(rows - {"GET /login", "POST /login", "GET /shared/{token}"}):
        method, path = row.split(" ", 1)
        path = re.sub(r"\{[^}]*\}", run, path)
        for at, headers in (
            (path, {"authorization": f"Bearer {token}", "cookie": f"{COOKIE}={token}"}),
            (f"{path}?token={token}", {}),
            (f"{address}{path}", {}),
            (f"{address}/..{path}", {}),
        ):
            reply = stranger.request(method, at, headers=headers)
            assert reply.status_code in (303, 401), f"{method} {at} was answered with {reply.status_code}"
    for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        assert stranger.request(method, address).status_code in (303, 401, 405), method
    with pytest.raises(Exception), stranger.websocket_connect(address):  # noqa: B017, PT011  whatever the client makes of it
        pass


def test_a_link_can_be_taken_back_and_its_time_ends(people, stranger, runtime, run):
    address = share(people["eddy"], run)
    (line,) = people["vera"].get(f"/api/episodes/{run}/shares").json()["links"]
    assert (line["user"], line["mine"]) == ("eddy", False) and address.rpartition("/")[2] not in str(line)
    assert people["ella"].post(f"/api/shares/{line['id']}/revoke").status_code == 409, "it is not hers"
    assert people["vera"].post(f"/api/shares/{line['id']}/revoke").status_code == 403
    assert stranger.get(address).status_code == 200
    assert people["eddy"].post(f"/api/shares/{line['id']}/revoke").status_code == 200
    gone = stranger.get(address)
    assert gone.status_code == 404 and "opens nothing" in gone.text
    again = share(people["eddy"], run, days=7)
    with writing(runtime.store.engine, "shared_run") as session:
        row = session.exec(select(SharedRunRow).where(SharedRunRow.episode == run)).one()
        days = (row.expires_at - row.created_at).total_seconds() / 86_400
        row.expires_at = datetime.now(UTC) - timedelta(seconds=1)
    assert days == 7 and stranger.get(again).status_code == 404
    assert people["eddy"].get(f"/api/episodes/{run}/shares").json()["links"] == []
    share(people["olga"], run)
    with Session(runtime.store.engine) as session:
        (kept,) = session.exec(select(SharedRunRow).where(SharedRunRow.episode == run)).all()
    assert (kept.expires_at - kept.created_at).days == 30, "what is over is cleared away"


def test_links_are_listed_among_a_persons_accesses(people, run):
    share(people["eddy"], run)
    share(people["ella"], run)
    own = people["eddy"].get("/api/shares").json()["links"]
    assert {line["user"] for line in own} == {"eddy"} and all(line["query"] for line in own)
    everybodys = people["olga"].get("/api/shares").json()["links"]
    assert {"eddy", "ella"} <= {line["user"] for line in everybodys} and all(line["mine"] for line in everybodys)


def test_who_may_not_run_may_not_share(people, run):
    assert people["vera"].post(f"/api/episodes/{run}/share", json={}).status_code == 403
    for days in (0, 366, "many"):
        assert people["eddy"].post(f"/api/episodes/{run}/share", json={"days": days}).status_code == 422
    assert "no episode" in people["eddy"].post("/api/episodes/nowhere/share", json={}).json()["problem"]


def test_a_run_that_is_deleted_takes_its_links_along(people, stranger, runtime, run):
    address = share(people["eddy"], run)
    things = Things(runtime.store)
    assert "nobody opens them by a link any more: 1 link" in things.find_trace_dependents([run]).affected
    entry = things.delete("trace", run)
    assert stranger.get(address).status_code == 404
    things.trash.restore(entry.key)
    assert runtime.store.traces.row(run).id == run and stranger.get(address).status_code == 404


def test_a_run_that_is_forgotten_takes_its_links_along(people, stranger, runtime, run):
    address = share(people["eddy"], run)
    forget(runtime.store, Sender(since=datetime.now(UTC) - timedelta(days=36_500)))
    assert stranger.get(address).status_code == 404
    with Session(runtime.store.engine) as session:
        assert not session.exec(select(SharedRunRow)).all()


def test_a_run_under_way_is_not_shared(runtime, run):
    with writing(runtime.store.engine, "episode") as session:
        session.get(EpisodeRow, run).state = "running"
    with pytest.raises(ShareRefused, match="has not ended"):
        SharedRuns(runtime.store.engine).add(run)


def test_the_command_makes_lists_and_takes_back(runtime, run, stranger):
    home = str(runtime.store.home.root)

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(program, ["share", *arguments, "--home", home])
        assert result.exit_code == 0, result.output + str(result.exception)
        return result.stdout.strip()

    link = call(run, "--days", "2", "--address", "http://studio.example:7860/")
    assert stranger.get(link).status_code == 200
    assert run in call()
    assert call(run, "--revoke").startswith("Taken back: 1.")
    assert stranger.get(link).status_code == 404 and run not in call()

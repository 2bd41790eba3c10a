"""People and tokens: what is kept, who is let in, and what the login page's door does with guesses."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.access import accounts as accounts_module
from studio.access import login as login_module
from studio.access.accounts import AccountError, Accounts, SessionRow, Tokens
from studio.access.login import COOKIE
from studio.access.login_brake import FREE_TRIES, MAX_IN_LINE, MAX_WAIT_S, LoginBrake, compute_wait_s

pytestmark = pytest.mark.medium

PASSWORD = "correct horse battery"


@pytest.fixture
def store(tmp_path):
    opened = open_store(find_home(tmp_path))
    yield opened
    opened.close()


def test_a_password_opens_and_is_kept_nowhere(store, tmp_path):
    people = Accounts(store.engine)
    people.add("ada", PASSWORD)
    assert people.check("ada", PASSWORD)
    assert not people.check("ada", PASSWORD + "x") and not people.check("bob", PASSWORD)
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("podium.db*"))
    assert b"$argon2id$" in kept and PASSWORD.encode() not in kept


def test_a_new_password_and_a_removal_end_what_was_open(store):
    people = Accounts(store.engine)
    people.add("ada", PASSWORD)
    first = people.open_session("ada")
    people.add("ada", "another long one")
    assert people.session_user(first) is None and not people.check("ada", PASSWORD)
    second = people.open_session("ada")
    people.remove("ada")
    assert people.session_user(second) is None and people.list() == []


def test_a_session_ends_by_itself_and_by_logging_out(store, monkeypatch):
    people = Accounts(store.engine)
    people.add("ada", PASSWORD)
    kept, left = people.open_session("ada"), people.open_session("ada")
    people.close_session(left)
    assert people.session_user(kept) == "ada" and people.session_user(left) is None
    monkeypatch.setattr(accounts_module, "SESSION_LASTS", timedelta(seconds=-1))
    old = people.open_session("ada")
    assert people.session_user(old) is None
    monkeypatch.undo()
    people.open_session("ada")  # clears away what ran out
    with Session(store.engine) as session:
        assert session.get(SessionRow, accounts_module._hash_secret(old)) is None


def test_of_two_owners_who_add_a_person_of_one_name_the_second_is_refused(store):
    people = Accounts(store.engine)
    people.add("ada", PASSWORD, is_new=True)
    opened = people.open_session("ada")
    with pytest.raises(AccountError, match="already"):
        people.add("ada", "another long one", is_new=True)
    assert people.check("ada", PASSWORD) and people.session_user(opened) == "ada"


@pytest.mark.parametrize(
    ("name", "password"), [("", PASSWORD), ("a b", PASSWORD), ("x" * 65, PASSWORD), ("ada", "short")]
)
def test_what_is_no_name_or_no_password_is_told(store, name, password):
    with pytest.raises(AccountError):
        Accounts(store.engine).add(name, password)
    assert Accounts(store.engine).list() == []


def test_a_token_is_shown_once_and_works_until_it_is_removed(store, tmp_path):
    clients = Tokens(store.engine)
    token = clients.add("notebook")
    assert clients.owner(token) == "notebook" and clients.owner(token[:-1]) is None
    with pytest.raises(AccountError, match="already"):
        clients.add("notebook")
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("podium.db*"))
    assert token.encode() not in kept and token.removeprefix("podium_").encode() not in kept
    clients.remove("notebook")
    assert clients.owner(token) is None
    with pytest.raises(AccountError, match="no token"):
        clients.remove("notebook")


def test_the_brake_slows_one_name_from_one_address_and_forgets_the_oldest_when_full(monkeypatch):
    brake = LoginBrake(max_pairs=3)
    for _ in range(FREE_TRIES):
        assert compute_wait_s(brake.open_record("bob", "10.0.0.1").failures) == 0
        brake.open_record("bob", "10.0.0.1").note(is_right=False)
    assert compute_wait_s(brake.open_record("bob", "10.0.0.1").failures) > 0
    assert brake.open_record("bob", "10.0.0.2").failures == brake.open_record("ada", "10.0.0.1").failures == 0
    brake.open_record("bob", "10.0.0.1").note(is_right=True)
    assert brake.open_record("bob", "10.0.0.1").failures == 0
    for name in "abcd":
        brake.open_record(name, "").note(is_right=False)
    assert len(brake._records) == 3
    waits = [compute_wait_s(failures) for failures in range(40)]
    assert waits == sorted(waits) and waits[-1] == MAX_WAIT_S


@pytest.fixture(scope="module")
def shared(runtime):
    """A studio with a login, as others on the network reach it."""
    from studio.app import create_app

    Accounts(runtime.store.engine).add("ada", PASSWORD)
    return create_app(runtime, login=True, loopback=False)


def visitor(shared) -> TestClient:
    return TestClient(shared, base_url="http://studio.example:7860", follow_redirects=False)


def enter(client: TestClient, name: str = "ada", password: str = PASSWORD):
    return client.post("/login", data={"name": name, "password": password})


def test_nothing_but_the_login_page_answers_strangers(shared):
    stranger = visitor(shared)
    asked = stranger.get("/traces?text=x", headers={"accept": "text/html"})
    assert asked.status_code == 303 and asked.headers["location"] == "/login?next=%2Ftraces%3Ftext%3Dx"
    assert "Log in" in stranger.get("/login").text
    assert stranger.get("/podium/web/login/login.js").status_code == 200
    for path in ("/api/traces", "/api/me", "/gradio_api/info", "/config", "/podium/", "/podium/web"):
        assert stranger.get(path).status_code == 401, path
    for path in ("/gradio_api/queue/join", "/gradio_api/upload", "/api/episodes/x/star", "/logout"):
        assert stranger.post(path, json={}).status_code == 401, path
    stranger.cookies.set(COOKIE, "forged")
    assert stranger.get("/api/me").status_code == 401


def test_a_login_opens_until_the_logout(shared):
    ada = visitor(shared)
    answer = enter(ada)
    assert answer.json() == {"ok": True}
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie
    assert ada.get("/api/me").json() == {"user": "ada", "role": "owner", "refused": {}, "read_only": {}}
    assert ada.get("/", headers={"accept": "text/html"}).status_code == 200
    key = ada.cookies[COOKIE]
    assert ada.post("/logout").json() == {"ok": True}
    ada.cookies.set(COOKIE, key)
    assert ada.get("/api/me").status_code == 401


def test_another_sites_page_logs_nobody_in(shared):
    answer = visitor(shared).post(
        "/login", data={"name": "ada", "password": PASSWORD}, headers={"origin": "http://evil.example"}
    )
    assert answer.status_code == 403


@pytest.mark.parametrize(("body", "status"), [(b"x" * 9000, 413), (b"\xff\xfe", 400), (b"&a=1" * 20, 400), (b"", 401)])
def test_what_is_no_login_form_is_refused(shared, body, status):
    assert visitor(shared).post("/login", content=body).status_code == status


def test_guessing_is_slowed_down_and_the_right_password_still_opens(runtime, monkeypatch):
    from studio.app import create_app

    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(login_module.asyncio, "sleep", sleep)
    Accounts(runtime.store.engine).add("bob", PASSWORD)
    guesser = visitor(create_app(runtime, login=True, loopback=False))
    said = [enter(guesser, "bob", f"guess number {k}") for k in range(12)]
    assert {answer.status_code for answer in said} == {401} and said[0].json()["message"]
    assert waits[:FREE_TRIES] == [0.0] * FREE_TRIES and waits[FREE_TRIES] > 0 and waits[-1] == MAX_WAIT_S
    assert enter(guesser, "bob").status_code == 200


def test_many_tries_at_once_wait_in_a_short_line(runtime):
    brake = LoginBrake()
    record = brake.open_record("bob", "")
    record.waiting = MAX_IN_LINE
    assert brake.open_record("bob", "") is record, "one line for a name and an address"


def test_a_studio_that_others_reach_without_a_login_is_never_made(runtime):
    from studio.app import create_app

    with pytest.raises(ValueError, match="must have a login"):
        create_app(runtime, loopback=False)

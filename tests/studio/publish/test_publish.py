"""Publishing to a Hub on this machine, through the official client: what arrives, when, and what never does."""

from __future__ import annotations

import base64
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from studio.prepare import prepare_store
from studio.publish.publication_record import list_records
from tests.studio.support.hub_stand_in import TOKEN, USER, Hub, Repo, client_environment, hub_stand_in
from tests.studio.support.recorded import record_run
from tests.trust.trials import choose_trials, count_trials

pytestmark = pytest.mark.medium

CANARY = "sk-canary/4711+env=secret&x-and-long-enough"
KILLS = choose_trials(10)
REQUESTS = choose_trials(40)  # that fail, one at a time; a publish makes some 25


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a pool whose worker needs a key, and runs of it to show."""
    folder = tmp_path_factory.mktemp("publishing") / "home"
    store = prepare_store(str(folder))
    chat = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:PODIUM_CANARY"}
    calculator = WorkerSpec(name="calculator", kind="calculator", description="Evaluates an expression.")
    writer = WorkerSpec(name="writer", kind="chat", description="Writes.", config=chat)
    near = writer.model_copy(update={"name": "near", "config": {**chat, "base_url": "http://127.0.0.1:9/v1"}})
    store.pools.save(Pool(name="keyed", workers=(calculator, writer, near)))
    record_run(store, "starter-grpo")
    store.close()
    return folder


@pytest.fixture
def hub() -> Iterator[tuple[str, Hub]]:
    with hub_stand_in() as running:
        yield running


def _studio(arguments: list[str], home: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "studio", *arguments, "--home", str(home)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


def _environment(address: str, home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, **client_environment(address, str(home.parent / "hf")), "PODIUM_CANARY": CANARY, **more}


def _publish(hub: tuple[str, Hub], home: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    wanted = ["publish", "--pool", "starter", "--orchestrator", "starter-grpo", "--repo", "tiny", *more]
    return _studio(wanted, home, _environment(hub[0], home, **variables))


def test_a_publish_makes_model_and_space_in_one_commit_each_and_a_repeat_changes_nothing(hub, home):
    done = _publish(hub, home, "--visitors", "own_key", "--visibility", "public", "--hardware", "t4-small")
    assert done.returncode == 0, done.stderr
    model, space = hub[1].model("tiny"), hub[1].space("tiny")
    assert len(model.heads) == len(space.heads) == 2, "one commit each"
    assert not model.private and not space.private and space.hardware == "t4-small" and space.sdk == "gradio"
    assert {"model.safetensors", "tokenizer.json", "README.md", "recipe.yaml", "pool.json"} <= set(model.files)
    assert {"app.py", "live.py", "space.json", "requirements.txt", "README.md"} <= set(space.files)
    assert "checkpoint/model.safetensors" not in space.files, "a public checkpoint is fetched at its revision"
    assert model.head in space.files["space.json"].decode()
    assert any(request.startswith("PUT /_lfs/") for request in hub[1].requests), "weights go through LFS"
    _never_half_public(hub[1])
    again = _publish(hub, home, "--visitors", "own_key", "--visibility", "public", "--hardware", "t4-small")
    assert again.returncode == 0, again.stderr
    assert len(model.heads) == len(space.heads) == 2, "what is there already is not sent again"

    changed = _publish(hub, home, "--static", "--visibility", "public")
    assert changed.returncode == 0, changed.stderr
    assert "index.html" in space.files and "app.py" not in space.files, "files of the earlier publish are tidied up"
    assert len(space.heads) == 3


def test_own_functions_are_published_together_with_the_model(hub, home):
    (home.parent / "tools.py").write_text("def double(x: float) -> float:\n    return 2 * x\n")
    number = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    config = {"target": f"{home.parent / 'tools.py'}:double", "parameters": number}
    store = prepare_store(str(home))
    spec = WorkerSpec(name="double", kind="function", description="Doubles a number.", config=config)
    store.pools.save(Pool(name="own", workers=(spec,)))
    store.close()
    options = ["publish", "--pool", "own", "--orchestrator", "starter-grpo", "--repo", "own", "--visitors", "own_key"]
    refused = _studio(options, home, _environment(hub[0], home))
    assert refused.returncode == 2 and "--take double" in refused.stderr and not hub[1].repos
    done = _studio([*options, "--take", "double"], home, _environment(hub[0], home))
    assert done.returncode == 0, done.stderr
    for repo in (hub[1].model("own"), hub[1].space("own")):
        assert b"return 2 * x" in repo.files["workers/double/tools.py"]
        assert b"workers/double/tools.py:double" in repo.files["pool.json"]
    assert "ask.py" in hub[1].model("own").files


def test_a_dry_run_of_own_functions_mcp_and_sqlite_works_in_the_default_setting(hub, home, tmp_path):
    (tmp_path / "bakery.py").write_text("def double(x: float) -> float:\n    return 2 * x\n")
    with closing(sqlite3.connect(tmp_path / "bakery.db")) as database:
        database.executescript("create table orders (item text, pieces integer);")
    number = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    counted = {"query": "select sum(pieces) from orders where item = :item", "parameters": {"item": "of an item"}}
    local = {"name": "local", "command": sys.executable}
    remote = {"name": "remote", "transport": "http", "url": "https://tools.example.com/mcp"}

    def add_worker(name: str, kind: str, **config: object) -> WorkerSpec:
        return WorkerSpec(name=name, kind=kind, description=f"The worker {name}.", config=config)

    store = prepare_store(str(home))
    workers = (
        add_worker("double", "function", target=f"{tmp_path / 'bakery.py'}:double", parameters=number),
        add_worker("orders", "sql", database=str(tmp_path / "bakery.db"), **counted),
        add_worker("local_tool", "mcp", server=local, tool="double", parameters=number),
        add_worker("remote_tool", "mcp", server=remote, tool="double", parameters=number),
    )
    store.pools.save(Pool(name="bakery", workers=workers))
    store.close()
    options = ["publish", "--pool", "bakery", "--orchestrator", "starter-grpo", "--repo", "b", "--visitors", "own_key"]
    out = tmp_path / "out"
    options += ["--take", "double", "--take", "orders", "--dry-run", "--out", str(out)]
    done = _studio(options, home, _environment(hub[0], home))
    assert done.returncode == 0, done.stderr
    assert "worker local_tool: it starts a program on this machine" in done.stdout and not hub[1].repos
    for repo in ("model", "space"):
        pool = (out / repo / "pool.json").read_text()
        assert "workers/double/bakery.py:double" in pool and "https://tools.example.com/mcp" in pool
        assert str(tmp_path) not in pool and "local_tool" not in pool
        assert (out / repo / "workers" / "orders" / "bakery.db").read_bytes().startswith(b"SQLite format 3")
    assert "workers/double/bakery.py:double" in (out / "model" / "ask.py").read_text()


def test_secrets_go_through_the_secrets_api_and_into_no_file(hub, home):
    done = _studio(
        [
            "publish",
            "--pool",
            "keyed",
            "--orchestrator",
            "model:writer:plan",
            "--repo",
            "keyed",
            "--visitors",
            "secrets",
        ],
        home,
        _environment(hub[0], home),
    )
    assert done.returncode == 0, done.stderr
    space = hub[1].space("keyed")
    assert space.secrets == {"PODIUM_CANARY": CANARY} and space.private
    assert "writer" in space.files["pool.json"].decode() and '"near"' not in space.files["pool.json"].decode()
    forms = [CANARY.encode(), base64.b64encode(CANARY.encode())[:-4], quote(CANARY, safe="").encode(), TOKEN.encode()]
    secret_request = re.compile(rb'^\{"key":\s*"PODIUM_CANARY"')
    sent = [body for body in hub[1].bodies if not secret_request.match(body)]
    for body in [*sent, *space.files.values(), *hub[1].lfs.values()]:
        for data in (body, *_decoded(body)):
            assert not any(form in data for form in forms)
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert not any(form in path.read_bytes() for path in kept for form in forms)
    assert not any(form.decode() in done.stdout + done.stderr for form in forms)


def test_a_planted_secret_stops_everything_before_the_first_byte(hub, home):
    wanted = [
        "publish",
        "--pool",
        "keyed",
        "--orchestrator",
        "starter-grpo",
        "--repo",
        "leaky",
        "--visitors",
        "own_key",
    ]
    done = _studio([*wanted, "--about", f"my key is {CANARY}"], home, _environment(hub[0], home))
    assert done.returncode == 2 and "README.md" in done.stderr and "env:PODIUM_CANARY" in done.stderr
    assert CANARY not in done.stderr + done.stdout
    assert not hub[1].repos and not any("POST" in request for request in hub[1].requests)


def test_a_wrong_token_and_a_foreign_repository_are_told_in_a_sentence(hub, home):
    refused = _publish(hub, home, HF_TOKEN="hf_wrong")
    assert refused.returncode == 2 and "log in" in refused.stderr and "Traceback" not in refused.stderr
    hub[1].repos["space", f"{USER}/tiny"] = Repo(False, "gradio", {"app.py": b"print('mine')"})
    foreign = _publish(hub, home, "--no-model")
    assert foreign.returncode == 2 and "did not make" in foreign.stderr
    assert hub[1].space("tiny").files == {"app.py": b"print('mine')"}


def test_a_hub_that_fails_in_the_middle_leaves_nothing_public_and_the_repeat_goes_on(hub, home):
    hub[1].fail = lambda method, path: 500 if path.endswith("/commit/main") and "/spaces/" in path else None
    failed = _publish(hub, home, "--visibility", "public")
    assert failed.returncode == 2 and "publish again" in failed.stderr
    assert hub[1].space("tiny").private and "app.py" not in hub[1].space("tiny").files
    record = next(each for each in list_records(find_home(home)) if each.request.repo == "tiny")
    assert record.state().state == "failed" and "model" in record.state().done
    hub[1].fail = lambda method, path: None
    assert _publish(hub, home, "--visibility", "public").returncode == 0
    assert len(hub[1].model("tiny").heads) == 2
    _never_half_public(hub[1])


@pytest.mark.slow
def test_a_publish_with_a_failing_write_to_the_hub_can_be_repeated(hub, home):
    """Each request that a publish, and then its repeat, makes fails in turn."""
    options = ["--repo", "failing", "--visibility", "public"]
    requests = 0

    def fail_at(number: int) -> Callable[[str, str], int | None]:
        def fail(method: str, path: str) -> int | None:
            nonlocal requests
            requests += 1
            return 500 if requests == number else None

        return fail

    for number in range(1, REQUESTS + 1):
        requests, hub[1].fail = 0, fail_at(number)
        done = _publish(hub, home, *options)
        assert done.returncode == 0 or (done.returncode == 2 and "publish again" in done.stderr), done.stderr
        _never_half_public(hub[1])
        if requests < number:  # every one has failed once
            break
        count_trials()
    hub[1].fail = lambda method, path: None
    assert _publish(hub, home, *options).returncode == 0
    space, model = hub[1].space("failing"), hub[1].model("failing")
    assert not space.private and {"app.py", "space.json"} <= set(space.files)
    assert len(model.heads) == len(space.heads) == 2, "repeats after failures commit nothing twice"


@pytest.mark.slow
def test_a_publish_that_is_killed_at_any_moment_can_be_repeated(hub, home, monkeypatch):
    """kill -9 at moments spread over the whole publish: before, between and in the middle of requests."""
    environment = _environment(hub[0], home)
    options = ["publish", "--pool", "starter", "--orchestrator", "starter-grpo", "--repo", "killed"]
    command = [sys.executable, "-m", "studio", *options, "--visibility", "public", "--home", str(home)]
    chance = random.Random(4711)
    for _ in range(KILLS):
        wanted = len(hub[1].requests) + chance.randint(0, 16)  # after so many requests, and a moment
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while len(hub[1].requests) < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        count_trials()
        with hub[1].lock:
            _never_half_public(hub[1])
    done = _studio([*options, "--visibility", "public"], home, environment)
    assert done.returncode == 0, done.stderr
    space, model = hub[1].space("killed"), hub[1].model("killed")
    assert not space.private and {"app.py", "space.json"} <= set(space.files) and "model.safetensors" in model.files
    assert len(model.heads) == len(space.heads) == 2, "repeats after kills commit nothing twice"
    _never_half_public(hub[1])
    found = next(each for each in list_records(find_home(home)) if each.request.repo == "killed")
    assert found.state().state == "done"


def _never_half_public(hub: Hub) -> None:
    """At no moment could anybody else see a repository without all its files."""
    for kind, name, private, files in hub.states:
        whole = "podium_files.json" in files and ({"app.py", "index.html"} & files or kind == "model")
        assert private or whole, f"{kind} {name} was public with {sorted(files)}"


def _decoded(body: bytes) -> Iterator[bytes]:
    """The files inside a commit, which travel as base64."""
    for found in re.findall(rb'"content":\s*"([A-Za-z0-9+/=]+)"', body):
        yield base64.b64decode(found)

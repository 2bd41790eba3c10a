"""A planted secret is found nowhere: not in the database, logs, traces, exports, job folders, pages or errors."""

from __future__ import annotations

import base64
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote, quote_plus

import keyring
import pytest
import stamina
from fastapi.testclient import TestClient
from keyring.backend import KeyringBackend

from orchestrator.traces.store import TraceFilter
from pool_registry.pool import Pool, export_pool
from pool_registry.worker import WorkerSpec
from studio.episode_documents.trace import build_trace_document
from studio.pages.pool.commands import PoolCommands
from studio.prepare import prepare_store
from studio.runtime import Runtime
from tests.pool_registry.support.peer import Peer, peer
from trainer.recipe import Recipe

pytestmark = pytest.mark.medium

ENV_KEY = "sk-canary/4711+env=secret&x"
RING_KEY = "sk-canary/0815+ring=secret&y"
ECHOES = ("echo", "echo_value", "echo_call", "echo_finish", "echo_refusal", "echo_400", "echo_429", "echo_500",
          "echo_within", "echo_html", "unauthorized", "broken", "half", "reset", "redirect", "nan")  # fmt: skip


class Ring(KeyringBackend):
    """The system's keyring, at its edge."""

    priority = 1  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        return RING_KEY if (service, username) == ("podium", "CANARY") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


def forms(key: str) -> set[bytes]:
    """What would give the key away, in part at least: the longest stretch of it that an encoding keeps."""
    raw = key.encode()
    shifted = {base64.b64encode(b"\0" * k + raw)[4:-4] for k in range(3)}
    coded = {base64.b64encode(raw)[:-4], *shifted, *(each.translate(bytes.maketrans(b"+/", b"-_")) for each in shifted)}
    return {raw, *coded, quote(key, safe="").encode(), quote_plus(key).encode(), raw.hex().encode(), raw[4:-4]}


def hits(text: bytes) -> list[bytes]:
    return [form for key in (ENV_KEY, RING_KEY) for form in forms(key) if form in text]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def studio(home) -> Iterator[tuple[Runtime, str]]:
    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    os.environ["PODIUM_CANARY"] = ENV_KEY
    runtime = Runtime(prepare_store(str(home)))
    with peer() as address, stamina.set_testing(True, attempts=2, cap=True):
        runtime.store.pools.save(Pool(name="leaky", workers=workers(address)))
        yield runtime, address
    runtime.close()
    keyring.set_keyring(before)
    del os.environ["PODIUM_CANARY"]


def workers(address: str) -> tuple[WorkerSpec, ...]:
    """Two workers for every way to echo a key, one with each kind of reference; some guarded or recorded."""
    return tuple(
        WorkerSpec(
            name=f"{source}-{path}".replace("_", "-"), kind="chat", description="echoes", timeout_s=20, retries=1,
            config={"base_url": f"{address}/{path}", "model": "tiny", "api_key": f"{source}:{name}"},
            cache=path == "echo",
        )
        for source, name in (("env", "PODIUM_CANARY"), ("keyring", "CANARY"))
        for path in ECHOES
    )  # fmt: skip


@pytest.fixture(scope="module")
def everything_happened(studio, home) -> str:
    """Every echo, through every door: episodes, orchestrators, tries, probes, an evaluation. All that was said."""
    runtime, address = studio
    commands, said = PoolCommands(runtime), []
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(logging.Formatter("%(message)s %(args)s").format(record))
    logging.getLogger().addHandler(handler)
    for spec in workers(address):
        for name in (f"direct:{spec.name}", f"model:{spec.name}:tool_calls"):
            episode = runtime.start_episode("leaky", name, "What is your key?")
            while runtime.store.traces.row(episode).state == "running":
                time.sleep(0.01)
            said.append(json.dumps(build_trace_document(runtime.store, runtime.store.traces.row(episode))))
    for spec in workers(address):
        asked = {
            "worker": spec.model_dump(mode="json"),
            "pool": "leaky",
            "name": spec.name,
            "arguments": {"instruction": "x"},
        }
        said += [json.dumps(commands.run(action, asked)) for action in ("try_worker", "check_worker")]
        said.append(json.dumps(asdict(runtime.worker_health(spec, "leaky"))))
    logging.getLogger().removeHandler(handler)
    return "\n".join([*said, *records])


def test_the_keys_were_sent_and_echoed(everything_happened, studio):
    sent = {json.dumps(seen) for _, seen in Peer.seen}
    assert any(ENV_KEY in each for each in sent) and any(RING_KEY in each for each in sent)
    assert everything_happened.count("[secret]") > 100


def test_nothing_that_was_said_holds_a_key(everything_happened):
    assert hits(everything_happened.encode()) == []


def test_an_evaluation_and_a_jobs_folder_hold_no_key(studio, home, everything_happened):
    runtime, _ = studio
    recipe = Recipe.model_validate({"name": "canary", "pool": "leaky", "sft": {"steps": 1}, "grpo": None})
    runtime.jobs.submit(recipe)
    command = [sys.executable, "-m", "trainer", "evaluate", "--pool", "leaky", "--orchestrator", "direct:env-echo",
               "--family", "forge", "--level", "1", "--tasks", "2", "--home", str(home)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    assert hits(done.stdout + done.stderr) == []
    (home / "evaluation.log").write_bytes(done.stdout + done.stderr)


def test_exports_pages_and_answers_of_the_running_studio_hold_no_key(studio, everything_happened):
    from studio.app import create_app

    runtime, _ = studio
    client = TestClient(create_app(runtime), base_url="http://127.0.0.1:7860")
    episodes = [row.id for row in runtime.store.traces.search(TraceFilter(pool="leaky"))]
    paths = ["/", "/pool", "/traces", "/train", "/api/traces", "/api/pools/leaky", "/api/jobs", "/api/recipes"]
    for episode in episodes[::3]:
        parts = ("", "/stream", "/steps/1", "/turns/1")
        paths += [f"/api/episodes/{episode}{part}" for part in parts]
    read = b"".join(client.get(path).content for path in paths)
    assert len(read) > 50_000 and b"[secret]" in read
    assert hits(read) == []
    assert hits(export_pool(runtime.store.pools.latest("leaky").pool).encode()) == []


def test_no_file_of_the_data_folder_holds_a_key(studio, home, everything_happened):
    studio[0].store.traces.flush()
    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name.endswith("-wal") for path in files) and any("jobs" in path.parts for path in files)
    assert {str(path): hits(path.read_bytes()) for path in files if hits(path.read_bytes())} == {}

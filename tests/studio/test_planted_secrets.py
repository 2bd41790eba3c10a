"""None of forty planted secrets leaves by any way out, and what only looks like one is let through."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool, check_pool, export_pool, import_pool
from pool_registry.worker import WorkerSpec
from studio.episode_documents.trace import build_trace_document
from studio.prepare import prepare_store
from studio.publish.bundle import Entry, make_bundle
from studio.publish.plan import make_plan
from studio.publish.request import Publication, PublishError
from studio.publish.secret_scan import check_bundles, collect_secrets
from studio.runtime import Runtime
from tests.planted_secrets import HARMLESS, SECRETS, Planted
from tests.pool_registry.support.peer import Peer, peer
from tests.trust.trials import count_trials

MAY_BE_REFUSED = 1  # of the harmless ones
VALUES = {f"PLANTED_{number}": planted.secret for number, planted in enumerate(SECRETS)}


def make_pool(planted: Planted) -> Pool:
    """A pool of one worker that is well configured, but for what is planted."""
    if "role" in planted.config or "base_url" in planted.config:
        config = {"base_url": "https://models.example.com/v1", "model": "m", **planted.config}
        return Pool(name="own", workers=(WorkerSpec(name="ann", kind="chat", description="d", config=config),))
    config = {"url": "https://api.example.com/x", "method": "GET", **planted.config}
    return Pool(name="own", workers=(WorkerSpec(name="api", kind="http", description="d", config=config),))


def save_as_older_podium(store, pool: Pool) -> None:
    """Save a pool as a Podium did that knew none of these shapes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pool_registry.pool._list_own_problems", lambda _: ())
        store.pools.save(pool)


def plan_of_older_pool(store, pool: Pool, folder: Path) -> None:
    save_as_older_podium(store, pool)
    make_plan(store, Publication(pool="own", orchestrator="oracle", repo="tiny", visitors="own_key"), folder)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = prepare_store(str(tmp_path_factory.mktemp("old")))
    yield store
    store.close()


@pytest.fixture(scope="module")
def new_store(tmp_path_factory):
    store = prepare_store(str(tmp_path_factory.mktemp("new")))
    yield store
    store.close()


def test_the_lists_are_as_long_as_they_are_said_to_be():
    assert len(SECRETS) == len(HARMLESS) == 40
    assert len({planted.name for planted in (*SECRETS, *HARMLESS)}) == 80
    assert all(planted.secret and planted.secret.isprintable() for planted in SECRETS)


@pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.name)
def test_a_planted_secret_is_saved_imported_and_exported_by_nobody(planted):
    pool = make_pool(planted)
    file = json.dumps({"podium_pool": 1, **pool.model_dump(mode="json")})
    for way in (lambda: check_pool(pool), lambda: import_pool(file), lambda: export_pool(pool)):
        with pytest.raises(InvalidPool) as refused:
            way()
        assert "workers.0.config" in str(refused.value) and planted.secret not in str(refused.value)
    count_trials(3)


@pytest.mark.medium
@pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.name)
def test_a_planted_secret_is_published_with_no_pool(planted, store, tmp_path):
    with pytest.raises((InvalidPool, PublishError)) as refused:
        plan_of_older_pool(store, make_pool(planted), tmp_path)
    assert planted.secret not in str(refused.value)


@pytest.mark.parametrize(
    "planted", [planted for planted in SECRETS if planted.is_text], ids=lambda planted: planted.name
)
def test_a_planted_secret_is_published_with_no_recorded_run(planted):
    (text,) = planted.config.values()
    shown = [text, json.dumps({"output": text}), json.dumps({"call": json.dumps({"text": text})})]
    for content in shown:
        entry = Entry("traces/000-run.json", json.dumps({"view": {"output": content}}).encode(), "a run")
        with pytest.raises(PublishError) as refused:
            check_bundles([make_bundle("space", [entry], [])], {})
        assert planted.secret not in str(refused.value)
    count_trials(len(shown))


@pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.name)
def test_the_value_of_any_variable_that_a_reference_names_is_published_nowhere(planted, monkeypatch):
    """Nothing in its name or its shape says that it is one."""
    monkeypatch.setenv("HOUSE_WORD", planted.secret)
    config = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:HOUSE_WORD"}
    pool = Pool(name="other", workers=(WorkerSpec(name="ann", kind="chat", description="d", config=config),))
    secrets = collect_secrets([pool])
    for path in ("pool.json", "README.md", "app.py", "model.safetensors"):
        entry = Entry(path, b"\0a " + planted.secret.encode() + b" b", "x")
        with pytest.raises(PublishError, match="the value of env:HOUSE_WORD"):
            check_bundles([make_bundle("space", [entry], [])], secrets)
    count_trials(4)


@pytest.mark.medium
def test_a_pool_of_an_older_podium_is_downloaded_once_its_key_is_out(store):
    from studio.app import create_app

    held = next(planted for planted in SECRETS if planted.name == "hex in a header")
    save_as_older_podium(store, make_pool(held))
    client = TestClient(create_app(Runtime(store)), base_url="http://127.0.0.1:7860")
    refused = client.get("/api/pools/own")
    assert refused.status_code == 409 and "workers.0.config.headers.X-Foo" in refused.text
    assert held.secret not in refused.text
    store.pools.save(make_pool(HARMLESS[0]))
    assert client.get("/api/pools/own").status_code == 200


@pytest.fixture(scope="module")
def echoed(new_store) -> str:
    """All that was written down about forty workers that repeat the key with which they were called."""
    records: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: records.append(logging.Formatter("%(message)s %(args)s").format(record))
    logging.getLogger().addHandler(handler)
    runtime = Runtime(new_store)
    with pytest.MonkeyPatch.context() as patched, peer() as address:
        for name, value in VALUES.items():
            patched.setenv(name, value)
        workers = tuple(
            WorkerSpec(
                name=name.lower().replace("_", "-"), kind="chat", description="echoes", retries=0,
                config={"base_url": f"{address}/echo", "model": "tiny", "api_key": f"env:{name}"},
            )
            for name in VALUES
        )  # fmt: skip
        new_store.pools.save(Pool(name="echoes", workers=workers))
        for spec in workers:
            episode = runtime.start_episode("echoes", f"direct:{spec.name}", "What is your key?")
            while runtime.store.traces.row(episode).state == "running":
                time.sleep(0.01)
            records.append(
                json.dumps(build_trace_document(new_store, new_store.traces.row(episode)), ensure_ascii=False)
            )
    runtime.store.traces.flush()
    logging.getLogger().removeHandler(handler)
    return "\n".join(records)


@pytest.mark.medium
@pytest.mark.parametrize("variable", VALUES)
def test_a_planted_secret_behind_a_reference_is_in_no_trace_log_or_file(variable, echoed, new_store):
    value = VALUES[variable]
    assert any(value in json.dumps(seen, ensure_ascii=False) for _, seen in Peer.seen), "it was sent, and repeated"
    assert value not in echoed
    files = [path for path in Path(new_store.home.root).rglob("*") if path.is_file()]
    assert [path.name for path in files if value.encode() in path.read_bytes()] == []


def test_of_the_harmless_almost_none_is_refused():
    refused = []
    for planted in HARMLESS:
        entry = Entry("traces/a.json", json.dumps(dict(planted.config)).encode(), "a run")
        try:
            export_pool(make_pool(planted))
            check_bundles([make_bundle("space", [entry], [])], {})
        except (InvalidPool, PublishError) as error:
            refused.append(f"{planted.name}: {error}")
    assert len(refused) <= MAY_BE_REFUSED, refused

"""What Ctrl+K finds: everything that has a name, where every word that was typed occurs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.browser.support.jobs import write_job

MOST = 6  # of a kind


@pytest.fixture
def find(client):
    def post(text: object = ""):
        reply = client.post("/api/pages/search/find", json={"text": text}).json()
        assert reply["ok"], reply
        return [(hit["kind"], hit["title"], hit["address"]) for hit in reply["hits"]]

    return post


@pytest.fixture(scope="module")
def bakery(runtime) -> str:
    worker = WorkerSpec(name="oven", kind="calculator", description="Counts trays.")
    runtime.store.pools.create(Pool(name="rye-house", workers=(worker,)))
    return "rye-house"


def test_without_words_pages_are_listed(find):
    hits = find()
    assert ("Page", "Pool", "/pool") in hits
    assert {kind for kind, _, _ in hits} <= {"Page", "Run"}


def test_pools_workers_orchestrators_and_jobs_are_found_by_any_of_their_words(find, runtime, bakery, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    job = write_job(runtime.store)
    assert ("Pool", bakery, "/pool?pool=rye-house") in find("RYE")
    assert find("trays rye-h") == [("Worker", "oven", "/pool?pool=rye-house&worker=oven")]
    assert any(kind == "Job" and address == f"/train?job={job}" for kind, _, address in find(job))
    assert any(address == "/?orchestrator=smollm2-reader" for _, _, address in find("smollm2-reader"))
    assert find("rye-house nowhere") == []


def test_runs_are_found_by_query_and_id(find, runtime):
    episode = runtime.start_episode("starter", "random_plan", "What is 6 * 7 then?")
    for text in ("6 * 7 then", episode):
        assert ("Run", "What is 6 * 7 then?", f"/?episode={episode}") in find(text)


def test_a_kind_shows_a_few(find, runtime):
    for number in range(MOST + 2):
        runtime.store.pools.create(Pool(name=f"many-{number}"))
    runtime.store.pools.create(Pool(name="so-many-"))
    pools = [title for kind, title, _ in find("many-") if kind == "Pool"]
    assert len(pools) == MOST
    assert "so-many-" not in pools  # those that begin with it come first


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.text(max_size=200), st.integers(), st.none(), st.lists(st.text(), max_size=3)))
def test_whatever_is_typed_has_an_answer(client, text):
    reply = client.post("/api/pages/search/find", json={"text": text}).json()
    assert reply["ok"] or reply["problems"]


def test_a_text_that_is_too_long_to_search_for_is_refused_at_its_field(client):
    reply = client.post("/api/pages/search/find", json={"text": "a" * 100_000}).json()
    assert reply["problems"] == [["text", "search for 1,000 characters at most"]]

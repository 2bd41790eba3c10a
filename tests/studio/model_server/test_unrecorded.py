"""`store: false` and `podium serve --no-record` leave nothing of a request in the data folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from tests.studio.support.edge_home import home, model

__all__ = ["home", "model"]

pytestmark = pytest.mark.medium
CANARY = "canary-4711-finch"
CHAT = {"model": "m", "messages": [{"role": "user", "content": f"say {CANARY}"}]}
RESPONSE = {"model": "m", "input": f"say {CANARY}"}


@contextmanager
def serve(home: Path, **options: Any) -> Iterator[TestClient]:
    store = open_store(find_home(str(home)))
    try:
        app = create_model_app(store, ServedModel("edge", "direct:agent", "m", **options), loopback=True)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            yield client
            store.traces.flush()
    finally:
        store.close()


def find_canary(home: Path) -> list[str]:
    return [str(path) for path in home.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_store_false_leaves_nothing_and_the_request_after_it_is_recorded(home):
    with serve(home) as client:
        done = client.post("/v1/chat/completions", json={**CHAT, "store": False})
        response = client.post("/v1/responses", json={**RESPONSE, "store": False})
        stream = client.post("/v1/chat/completions", json={**CHAT, "store": False, "stream": True})
        assert CANARY in done.json()["choices"][0]["message"]["content"] and CANARY in response.text
        assert CANARY in stream.text
        assert done.json()["podium"]["trace"] is None and "x-podium-trace" not in done.headers
        assert client.post(f"/v1/verdicts/{done.json()['id']}", json={"right": True}).status_code == 404
        assert client.get(f"/v1/responses/{response.json()['id']}").status_code == 404
    assert not find_canary(home)
    with serve(home) as client:
        recorded = client.post("/v1/chat/completions", json=CHAT).json()
        assert recorded["podium"]["trace"]
    assert find_canary(home), "the look into the folder would find it"


def test_a_server_that_records_nothing_stores_nothing_and_says_what_it_cannot_do(tmp_path, model):
    from studio.prepare import prepare_store
    from tests.studio.support.served import edge_pool

    store = prepare_store(str(tmp_path))
    store.pools.save(edge_pool(model.url))
    store.close()
    with serve(tmp_path, record=False) as client:
        assert CANARY in client.post("/v1/chat/completions", json=CHAT).text
        response = client.post("/v1/responses", json=RESPONSE).json()
        follow = client.post("/v1/responses", json={**RESPONSE, "previous_response_id": response["id"]})
        assert follow.status_code == 404
        refused = client.post("/v1/responses", json={**RESPONSE, "background": True})
        assert refused.status_code == 400 and "leave background out" in refused.json()["error"]["message"]
        client.post("/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": CANARY * 9}]})
    assert not find_canary(tmp_path)


def test_where_plans_wait_for_a_person_nothing_can_stay_unrecorded(home):
    with serve(home, mode="review") as client:
        refused = client.post("/v1/chat/completions", json={**CHAT, "store": False})
    assert refused.status_code == 400 and "wait for a person" in refused.json()["error"]["message"]

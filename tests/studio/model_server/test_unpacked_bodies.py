"""Compressed requests: read as plain ones, and bounded by what they unpack to."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.access.body_limit import CONVERSATION
from studio.model_server.app import create_model_app
from studio.model_server.errors import ApiError
from studio.model_server.http.unpacked_bodies import unpack_body
from studio.model_server.service import ServedModel
from tests.studio.support.edge_home import home, model

__all__ = ["home", "model"]

ASK = json.dumps({"model": "podium-edge", "messages": [{"role": "user", "content": "say hello"}]}).encode()


def deflate_raw(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


PACKED = [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", deflate_raw)]


@pytest.mark.parametrize(("coding", "pack"), PACKED)
@given(body=st.binary(max_size=2000))
def test_what_was_packed_is_unpacked(coding, pack, body):
    assert unpack_body(pack(body), coding, 2000) == body


@pytest.mark.parametrize(("coding", "pack"), PACKED)
def test_the_limit_counts_unpacked_bytes(coding, pack):
    assert len(unpack_body(pack(b"x" * 1000), coding, 1000)) == 1000
    with pytest.raises(ApiError, match="larger than 1,000 bytes"):
        unpack_body(pack(b"x" * 1001), coding, 1000)


@given(body=st.binary(max_size=300), coding=st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_are_unpacked_or_refused_with_a_sentence(body, coding):
    try:
        unpack_body(body, coding, 10_000)
    except ApiError as error:
        assert error.status in (400, 413) and coding in str(error)


@pytest.mark.parametrize(("coding", "pack"), PACKED)
def test_a_body_that_is_cut_or_goes_on_is_refused(coding, pack):
    packed = pack(b"some words that are packed")
    with pytest.raises(ApiError, match="ends before the end"):
        unpack_body(packed[:-1], coding, 1000)
    with pytest.raises(ApiError, match="goes on after the end"):
        unpack_body(packed + b"more", coding, 1000)


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[TestClient]:
    app = create_model_app(open_store(find_home(home)), ServedModel("edge", "direct:agent"), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as running:
        yield running


@pytest.mark.medium
@pytest.mark.parametrize(("coding", "pack"), PACKED)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/completions"])
def test_every_api_reads_packed_bodies(client, path, coding, pack):
    body = json.dumps({**json.loads(ASK), "input": "say hello", "prompt": "say hello"}).encode()
    answer = client.post(path, content=pack(body), headers={"content-encoding": coding})
    assert answer.status_code == 200 and "hello" in answer.text


@pytest.mark.medium
def test_a_bomb_is_refused_at_once(client):
    bomb = gzip.compress(b" " * (CONVERSATION.size + 1))
    assert len(bomb) < 50_000
    began = time.monotonic()
    answer = client.post("/v1/chat/completions", content=bomb, headers={"content-encoding": "gzip"})
    assert answer.status_code == 413 and answer.json()["error"]["code"] == "request_too_large"
    assert time.monotonic() - began < 5


@pytest.mark.medium
@pytest.mark.parametrize(
    ("coding", "body", "status", "sentence"),
    [
        ("br", ASK, 415, "send it plain, as gzip or as deflate"),
        ("gzip, gzip", ASK, 415, "send it plain, as gzip or as deflate"),
        ("gzip", ASK, 400, "the body is not gzip"),
        ("gzip", b"", 400, "not JSON"),
    ],
)
def test_what_cannot_be_unpacked_is_refused_with_what_to_do(client, coding, body, status, sentence):
    answer = client.post("/v1/chat/completions", content=body, headers={"content-encoding": coding})
    assert answer.status_code == status and sentence in answer.json()["error"]["message"]

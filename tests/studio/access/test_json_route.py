"""A route reads the same JSON as one of the framework, and says the same of what is none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import APIRouter, Body, FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from studio.access.json_route import JsonRoute, parse_json

NUMBERS = st.integers() | st.floats(allow_nan=False)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
HEADERS = {"content-type": "application/json"}


def make_client() -> TestClient:
    app = FastAPI()
    for path, router in (("/fast", APIRouter(route_class=JsonRoute)), ("/plain", APIRouter())):

        @router.post(path)
        def read(document: Any = Body()) -> str:  # noqa: B008  FastAPI's way
            return json.dumps(document)

        app.include_router(router)
    return TestClient(app)


CLIENT = make_client()


@given(DOCUMENTS, st.booleans())
def test_every_document_is_read_as_by_the_standard_library(document, escaped):
    body = json.dumps(document, ensure_ascii=escaped).encode(errors="replace")
    assert json.loads(CLIENT.post("/fast", content=body, headers=HEADERS).json()) == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        rb'["half a character: \ud83d"]',
        b"[1e999, -1E-999, NaN, -0]",
        b'{"a": 1, "a": 2}',
        b"\xef\xbb\xbf[1]",
        '["é"]'.encode("utf-16"),
        b"[" * 400 + b"]" * 400,
        b"1" * 5000,
        b'{"a": ',
        b"[1,]",
        b"\xff",
        b"nothing",
        b"",
    ],
)
def test_odd_bodies_are_answered_as_the_framework_answers_them(body):
    fast, plain = (CLIENT.post(path, content=body, headers=HEADERS) for path in ("/fast", "/plain"))
    assert (fast.status_code, fast.content) == (plain.status_code, plain.content)


@pytest.mark.medium
def test_a_long_text_is_parsed_in_less_than_half_the_time():
    body = json.dumps({"messages": [{"role": "user", "content": "some words here and " * 1_600_000}]}).encode()

    def take(parse: Callable[[bytes], Any]) -> float:
        start = time.process_time()
        parse(body)
        return time.process_time() - start

    fast, plain = (min(take(parse) for _ in range(5)) for parse in (parse_json, json.loads))
    assert fast < plain / 2, f"{fast:.3f} s, by the standard library {plain:.3f} s"

"""What endpoints are asked for: their lists of models, with the key where it belongs."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import pytest

from pool_registry.errors import WorkerFault
from pool_registry.language_models import endpoints
from tests.pool_registry.support.peer import Peer, peer


@pytest.fixture(scope="module")
def address():
    with peer() as found:
        yield found


def test_models_are_listed_as_chat_completions_take_them(address, monkeypatch):
    monkeypatch.setattr(Peer, "do_GET", lambda self: self._json(200, LISTING))
    assert asyncio.run(endpoints.models(f"{address}/v1/")) == ["gemini-3.5-flash", "tiny"]


@pytest.mark.parametrize("listing", [[], {"data": 3}, {"data": [None, {"id": None}]}, "no", {}])
def test_odd_listings_are_empty_and_no_crash(address, monkeypatch, listing):
    monkeypatch.setattr(Peer, "do_GET", lambda self: self._json(200, listing))
    assert asyncio.run(endpoints.models(address)) == []


def test_anthropic_lists_models_with_its_own_headers(address, monkeypatch):
    seen = {}

    def listing(self):
        seen.update({name.lower(): value for name, value in self.headers.items()}, path=self.path)
        self._json(200, LISTING)

    monkeypatch.setattr(Peer, "do_GET", listing)
    monkeypatch.setenv("PODIUM_TEST_KEY", "sk-planted-3141")
    monkeypatch.setattr(endpoints, "ANTHROPIC", urlsplit(address).netloc)
    assert asyncio.run(endpoints.models(f"{address}/v1", "env:PODIUM_TEST_KEY"))
    assert seen["x-api-key"] == "sk-planted-3141" and seen["path"] == "/v1/models?limit=1000"
    assert "authorization" not in seen and seen["anthropic-version"]


def test_a_host_that_begins_like_anthropics_gets_a_bearer(address, monkeypatch):
    seen = {}

    def listing(self):
        seen.update({name.lower(): value for name, value in self.headers.items()}, path=self.path)
        self._json(200, LISTING)

    monkeypatch.setattr(Peer, "do_GET", listing)
    monkeypatch.setenv("PODIUM_TEST_KEY", "sk-planted-3141")
    monkeypatch.setattr(endpoints, "ANTHROPIC", urlsplit(address).netloc[:-1])
    assert asyncio.run(endpoints.models(f"{address}/v1", "env:PODIUM_TEST_KEY"))
    assert "x-api-key" not in seen and seen["authorization"] == "Bearer sk-planted-3141"
    assert seen["path"] == "/v1/models"


def test_an_unset_key_is_told_and_never_sent(address, monkeypatch):
    monkeypatch.delenv("PODIUM_TEST_KEY", raising=False)
    with pytest.raises(WorkerFault, match="export PODIUM_TEST_KEY"):
        asyncio.run(endpoints.models(address, "env:PODIUM_TEST_KEY"))


LISTING = json.loads('{"data": [{"id": "models/gemini-3.5-flash"}, {"id": "tiny"}]}')

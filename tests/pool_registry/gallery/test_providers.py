"""Providers: each is reached by the chat kind through its base URL, with the fields that its models take."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.gallery.providers import PROVIDERS, provider_of
from pool_registry.kinds import load_config
from pool_registry.language_models import endpoints
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.pool_registry.support.peer import Peer, peer


@pytest.fixture(scope="module")
def address():
    with peer() as found:
        yield found


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
def test_every_provider_makes_a_chat_worker_that_answers(address, monkeypatch, provider):
    monkeypatch.setenv(provider.key or "UNUSED", "sk-planted-3141")
    spec = WorkerSpec(name="chat", kind="chat", description="d", config=provider.config("some-model"))
    load_config(spec)
    here = spec.model_copy(update={"config": {**spec.config, "base_url": f"{address}/ok"}})

    async def ask():
        async with live_pool(Pool(name="p", workers=(here,))) as pool:
            return await pool.call(Action("chat", {"instruction": "2+2?"}))

    assert asyncio.run(ask()).value == "four"
    body, headers = Peer.seen[-1][1]["body"], Peer.seen[-1][1]["headers"]
    assert (headers.get("authorization") == "Bearer sk-planted-3141") is bool(provider.key)
    assert ("temperature" in body) is (provider.name not in ("openai", "anthropic"))
    assert ("max_completion_tokens" in body, "max_tokens" in body) == (
        (True, False) if provider.name == "openai" else (False, True)
    )
    assert None not in body.values()


def test_a_limit_of_the_caller_reaches_the_field_that_the_endpoint_knows(address):
    config = {"base_url": f"{address}/ok", "model": "m", "token_limit": "max_completion_tokens"}
    worker = WorkerSpec(name="chat", kind="chat", description="d", config=config)

    async def ask():
        async with live_pool(Pool(name="p", workers=(worker,))) as pool:
            await pool.workers["chat"].complete([], room=5000)

    asyncio.run(ask())
    assert Peer.seen[-1][1]["body"]["max_completion_tokens"] == 5000


def test_names_labels_and_places_are_unique_and_keys_are_variable_names():
    for part in ("name", "label", "base_url"):
        assert len({getattr(each, part) for each in PROVIDERS}) == len(PROVIDERS)
    for each in PROVIDERS:
        assert each.is_local or (each.key.isupper() and each.key_url.startswith("https://"))
        assert (urlsplit(each.base_url).netloc == endpoints.ANTHROPIC) is (each.name == "anthropic")
        assert provider_of(each.base_url + "/") is each
    assert provider_of("https://api.openai.com.evil.example/v1") is None

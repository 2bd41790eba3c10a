"""What a worker wants is said in full, and an imported pool gets none of it unasked."""

from __future__ import annotations

import pytest

from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.wants import disarm_pool, list_new_wants, list_wants
from pool_registry.worker import WorkerSpec


def spec(kind: str, config: dict[str, object], **changes: object) -> WorkerSpec:
    return WorkerSpec.model_validate({"name": "w", "kind": kind, "description": "d", "config": config, **changes})


def chat(url: str, key: str = "env:AWS_SECRET_ACCESS_KEY", **more: object) -> WorkerSpec:
    return spec("chat", {"base_url": url, "model": "m", "api_key": key, **more})


PARAMETERS = {"type": "object"}


@pytest.mark.parametrize(
    ("worker", "wants"),
    [
        (chat("https://evil.example.com/v1"), ["sends env:AWS_SECRET_ACCESS_KEY to https://evil.example.com:443"]),
        (chat("https://api.example.com/v1", ""), []),
        (
            chat("http://127.0.0.1:8000/v1", ""),
            ["reaches http://127.0.0.1:8000, on this machine or in its network"],
        ),
        (
            chat("http://10.0.0.7/v1", "", allow_private=True),
            [
                "reaches http://10.0.0.7:80, on this machine or in its network",
                "may reach private addresses: this machine's network",
            ],
        ),
        (
            spec("http", {"url": "https://x.example/a", "method": "GET", "headers": {"X-Any": "Bearer env:TOKEN"}}),
            ["sends env:TOKEN to https://x.example:443"],
        ),
        (
            spec("mcp", {"server": {"name": "s", "command": "npx", "args": ["-y", "tool"], "env": {"K": "env:KEY"}},
                         "tool": "t", "parameters": PARAMETERS}),
            ["starts the program npx -y tool on this machine, with your rights",
             "sends env:KEY to the program npx -y tool"],
        ),
        (
            spec("function", {"target": "subprocess:getoutput"}),
            ["starts the Python function subprocess:getoutput on this machine, with your rights"],
        ),
        (spec("sql", {"database": "/home/me/podium.db"}), ["reads the database /home/me/podium.db on this machine"]),
        (spec("documents", {"path": "/home/me"}), ["reads the documents /home/me on this machine"]),
        (spec("search", {"corpus": "/etc"}), ["reads the corpus /etc on this machine"]),
        (spec("local_model", {"model": "/models/x"}), ["reads the model /models/x on this machine"]),
        (
            spec("space", {"space": "owner/name", "token": "env:HF_TOKEN"}),
            ["sends env:HF_TOKEN to the Hugging Face Space owner/name"],
        ),
        (spec("web_fetch", {"allow_private": True}), ["may reach private addresses: this machine's network"]),
        (spec("flaky", {"inner": {"name": "i", "kind": "sql", "description": "d", "config": {"database": "x.db"}}}),
         ["reads the database x.db on this machine"]),
        (spec("calculator", {}), []),
    ],
)  # fmt: skip
def test_every_want_is_named(worker, wants):
    assert list_wants(worker) == wants
    safe, asked, _ = disarm_pool(Pool(name="p", workers=(worker,)))
    assert (len(safe.enabled), asked) == ((0, {"w": wants}) if wants else (1, {}))


def test_the_starter_pool_wants_nothing():
    assert disarm_pool(starter_pool())[1] == {}


def test_a_reference_is_bound_to_the_address_that_it_was_confirmed_for():
    before = chat("https://api.example.com/v1")
    elsewhere = chat("https://evil.example.com/v1")
    assert list_new_wants(before, before) == []
    assert list_new_wants(chat("https://api.example.com/v2", role="another"), before) == []
    assert list_new_wants(elsewhere, before) == ["sends env:AWS_SECRET_ACCESS_KEY to https://evil.example.com:443"]
    assert list_new_wants(chat("https://api.example.com:8443/v1"), before) != []
    assert list_new_wants(chat("http://api.example.com/v1"), before) != []
    assert list_new_wants(before, before.model_copy(update={"enabled": False})) == list_wants(before)
    assert list_new_wants(elsewhere.model_copy(update={"enabled": False}), before) == []

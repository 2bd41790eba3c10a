"""What a person reads before a pool is published: every text of its own, and no more."""

from __future__ import annotations

from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from studio.publish.sent_texts import SentText, list_sent_texts


def test_what_ships_with_podium_is_not_asked_about():
    assert list_sent_texts(starter_pool()) == []


def test_roles_headers_addresses_and_arguments_are_listed_and_references_are_not():
    chat = {
        "base_url": "https://gateway.example/team-7/v1",
        "model": "m",
        "api_key": "env:TEAM_KEY",
        "role": "You know the prices of Hollis and Sons.",
        "extra": {"user": "hollis"},
    }
    tool = {
        "command": "npx",
        "args": ["-y", "server", "--tenant=42"],
        "headers": {"X-Team": "blue", "Authorization": "Bearer env:TEAM_KEY"},
        "parameters": {"properties": {"a": {"description": "A sentence of a description of an argument."}}},
        "mode": "fast",
    }
    workers = [
        WorkerSpec(name="ann", kind="chat", description="Answers questions about prices.", config=chat),
        WorkerSpec(name="bob", kind="mcp", description="A tool.", config=tool),
    ]
    assert list_sent_texts(Pool.model_construct(name="own", workers=tuple(workers))) == [
        SentText("ann", "base_url", "https://gateway.example/team-7/v1"),
        SentText("ann", "role", "You know the prices of Hollis and Sons."),
        SentText("ann", "extra.user", "hollis"),
        SentText("bob", "command", "npx"),
        SentText("bob", "args.1", "-y"),
        SentText("bob", "args.2", "server"),
        SentText("bob", "args.3", "--tenant=42"),
        SentText("bob", "headers.X-Team", "blue"),
    ]

"""Secrets are references; what they resolve to never leaves this process."""

from __future__ import annotations

import asyncio
import base64
from urllib.parse import quote

import pytest

from pool_registry.errors import SecretNotFound
from pool_registry.secrets import check_reference, lending, redact, resolve, secret_encodings


def test_a_reference_resolves_and_its_value_is_redacted_in_every_form(monkeypatch):
    monkeypatch.setenv("PODIUM_TEST_KEY", "sk-very/secret+1")
    assert resolve("env:PODIUM_TEST_KEY").get_secret_value() == "sk-very/secret+1"
    assert "secret+1" not in str(resolve("env:PODIUM_TEST_KEY"))
    forms = (
        "sk-very/secret+1",
        base64.b64encode(b"sk-very/secret+1").decode(),
        quote("sk-very/secret+1", safe=""),
    )
    for form in forms:
        assert redact(f"error at {form}!") == "error at [secret]!"


def test_a_missing_secret_says_how_to_set_it(monkeypatch):
    monkeypatch.delenv("PODIUM_NOT_SET", raising=False)
    with pytest.raises(SecretNotFound, match="export PODIUM_NOT_SET="):
        resolve("env:PODIUM_NOT_SET")


@pytest.mark.parametrize("text", ["sk-abc123", "env:", "file:/etc/passwd", "env:A B", ""])
def test_anything_but_a_reference_is_refused(text):
    with pytest.raises(ValueError, match="never stored"):
        check_reference(text)


def test_lent_keys_are_seen_by_the_runs_they_were_lent_to_and_forgotten_afterwards(monkeypatch):
    monkeypatch.delenv("PODIUM_LENT", raising=False)
    seen: dict[str, str] = {}
    told = "the key is sk-visitor-alice-1, not sk-visitor-bob-22"

    async def run(visitor: str, key: str) -> None:
        with lending({"PODIUM_LENT": key}):
            await asyncio.sleep(0.01)  # both are under way now
            seen[visitor] = await asyncio.create_task(asyncio.to_thread(ask))
            assert key not in redact(told)

    def ask() -> str:
        return resolve("env:PODIUM_LENT").get_secret_value()

    async def both() -> None:
        await asyncio.gather(run("alice", "sk-visitor-alice-1"), run("bob", "sk-visitor-bob-22"))

    asyncio.run(both())
    assert seen == {"alice": "sk-visitor-alice-1", "bob": "sk-visitor-bob-22"}
    assert redact(told) == told
    with pytest.raises(SecretNotFound):
        resolve("env:PODIUM_LENT")


def test_a_key_that_two_visitors_share_stays_redacted_until_the_last_run_ends():
    told = "Bearer sk-shared-between-two"
    with lending({"A": "sk-shared-between-two"}):
        with lending({"B": "sk-shared-between-two"}):
            assert redact(told) == "Bearer [secret]"
        assert redact(told) == "Bearer [secret]"
    assert redact(told) == told


def test_a_key_of_this_machine_stays_redacted_when_a_visitor_has_lent_the_same(monkeypatch):
    monkeypatch.setenv("PODIUM_OWN", "sk-own-and-lent-key")
    resolve("env:PODIUM_OWN")
    with lending({"PODIUM_OWN": "sk-own-and-lent-key"}):
        pass
    assert redact("sk-own-and-lent-key") == "[secret]"


def test_the_written_forms_of_a_secret_are_found_in_bytes():
    forms = secret_encodings("sk-very/secret+1")
    for text in (b"Authorization: " + base64.b64encode(b"user:sk-very/secret+1"), b"sk-very%2Fsecret%2B1"):
        assert any(form in text for form in forms)
    assert not any(form in b"nothing of the kind, but sk-very" for form in forms)

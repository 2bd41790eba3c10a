"""Secrets are references; what they resolve to never leaves this process."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from pool_registry.errors import SecretNotFound
from pool_registry.secrets import check_reference, redact, resolve


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

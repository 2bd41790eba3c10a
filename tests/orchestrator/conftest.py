"""Fixtures of the engine's tests."""

from __future__ import annotations

from tests.orchestrator.support.endpoint import endpoint

__all__ = ["endpoint"]

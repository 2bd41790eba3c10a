"""The arguments of a step as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pool_registry.actions import as_text


def format_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments in one line: a single one as its value, several as `name: value`."""
    if len(arguments) == 1:
        return as_text(next(iter(arguments.values())))
    return ", ".join(f"{name}: {as_text(value)}" for name, value in arguments.items())

"""The arguments of a step as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engine.episode import Episode, StepRun, fill_known
from pool_registry.actions import as_text


def format_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments in one line: a single one as its value, several as `name: value`."""
    if len(arguments) == 1:
        return as_text(next(iter(arguments.values())))
    return ", ".join(f"{name}: {as_text(value)}" for name, value in arguments.items())


def describe_arguments(run: StepRun, episode: Episode, length: int) -> tuple[str, str]:
    """The arguments of a step with outputs in the place of `$k`, where there are any yet, and as they were planned; the
    latter is "" where it is the same. Each in one line of at most `length` characters."""
    values = format_arguments(fill_known(run.step.arguments, episode) if run.arguments is None else run.arguments)
    planned = format_arguments(run.step.arguments)
    return values[:length], "" if planned == values else planned[:length]

"""The answer of an orchestrator that has no worker for a query."""

from __future__ import annotations

from pool_registry.actions import JsonValue

REFUSAL = "No worker of this pool can do this"


def refuse(need: str = "") -> str:
    """The refusal, with the need that no worker serves where it is known."""
    return f"{REFUSAL}: {need}" if need else REFUSAL


def is_refusal(answer: JsonValue) -> bool:
    """Whether an answer says that no worker fits."""
    return isinstance(answer, str) and answer.casefold().startswith(REFUSAL.casefold())


def read_refused_need(answer: JsonValue) -> str:
    """The need that a refusal names; "" when it names none."""
    return str(answer)[len(REFUSAL) :].removeprefix(":").strip() if is_refusal(answer) else ""

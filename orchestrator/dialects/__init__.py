"""The table of dialects: the ways to write a turn as text, one in each file."""

from __future__ import annotations

from orchestrator.dialects.base import Dialect
from orchestrator.dialects.conductor import ConductorDialect
from orchestrator.dialects.conductor_paper import ConductorPaperDialect
from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.dialects.tool_calls import ToolCallsDialect
from orchestrator.errors import UnknownOrchestrator

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (PlanDialect(), ToolCallsDialect(), ConductorDialect(), ConductorPaperDialect())
}


def find_dialect(name: str) -> Dialect:
    """The dialect called `name`. Raises UnknownOrchestrator with the list of dialects."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownOrchestrator(f"there is no dialect {name!r}; use one of: {', '.join(DIALECTS)}") from None

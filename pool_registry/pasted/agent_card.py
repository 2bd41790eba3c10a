"""The card of an agent that speaks A2A. No kind of worker speaks it, so the card is recognised and says what else may
reach the agent."""

from __future__ import annotations

from collections.abc import Mapping

from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, refuse


def is_agent_card(pasted: PastedText) -> bool:
    card = pasted.document
    if not isinstance(card, Mapping) or not isinstance(card.get("skills"), list):
        return False
    reached = card.keys() & {"url", "supportedInterfaces", "additionalInterfaces"}
    return bool(reached) and bool(card.keys() & {"protocolVersion", "capabilities", "defaultInputModes"})


def read_agent_card(pasted: PastedText, settings: ImportSettings) -> Recognition:
    card = pasted.document if isinstance(pasted.document, Mapping) else {}
    name = settings.name or str(card.get("name") or "agent")
    return Recognition((refuse(name, "chat", NOT_SPOKEN),))


NOT_SPOKEN = (
    "this is the card of an agent that speaks A2A, which no kind of worker speaks yet. If the agent also has an "
    "OpenAI-compatible address, an MCP server or an OpenAPI document, paste that"
)

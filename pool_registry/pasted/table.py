"""The kinds of text that people paste. To add one, write a row: what it is called, which settings it takes, how a text
of it is recognised and how it is read. The first row that recognises a text reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.kinds import load_config
from pool_registry.pasted.address import is_address, read_address
from pool_registry.pasted.agent_builder import is_agent_builder_export, read_agent_builder_export
from pool_registry.pasted.agent_card import is_agent_card, read_agent_card
from pool_registry.pasted.autogen_team import is_autogen_team, read_autogen_team
from pool_registry.pasted.base import ImportSettings, PastedKind, PastedText, Recognition, UnfitText
from pool_registry.pasted.mcp_servers import is_client_settings, read_client_settings
from pool_registry.pasted.openapi_document import is_openapi, read_openapi
from pool_registry.pasted.read_text import read_text
from pool_registry.pasted.requests.curl import is_curl, read_curl_lines
from pool_registry.pasted.requests.postman import is_collection, read_collection
from pool_registry.pasted.skill import is_skill, read_skill
from pool_registry.pasted.tools_list import is_tools_list, read_tools_list

ACCEPTED = (
    "Accepted are: mcpServers settings (Claude, Cursor, VS Code), a line such as claude mcp add, a link that adds a "
    "server or its server.json, an OpenAPI document or its address, a list of OpenAI tools, a curl line, a collection "
    "of Postman, a SKILL.md, an A2A agent card, a team of AutoGen Studio, the code that OpenAI's Agent Builder exports "
    "and the address of Ollama, vLLM, LM Studio, an MCP server or an A2A agent."
)
_PYTHON = re.compile(r"(?:from [\w.]+ import |import [\w.]+$|def \w+\(|@\w+)", re.MULTILINE)


def _read_address(pasted: PastedText, settings: ImportSettings) -> Recognition:
    return read_address(pasted, settings, _read_answer)


KINDS: tuple[PastedKind, ...] = (
    PastedKind(
        "mcp_servers",
        "a list of MCP servers",
        ("key", "env", "headers", "name", "private"),
        is_client_settings,
        read_client_settings,
    ),
    PastedKind(
        "openapi", "an OpenAPI document", ("key", "server", "headers", "private"), is_openapi, read_openapi, safe=True
    ),
    PastedKind(
        "agent_card", "an A2A agent card", ("key", "name", "private"), is_agent_card, read_agent_card, safe=True
    ),
    PastedKind(
        "postman",
        "a collection of Postman",
        ("key", "server", "headers", "private"),
        is_collection,
        read_collection,
        safe=True,
    ),
    PastedKind("autogen_team", "a team of AutoGen", ("key", "model", "private"), is_autogen_team, read_autogen_team),
    PastedKind(
        "tools_list",
        "a list of tools",
        ("server", "key", "headers", "private"),
        is_tools_list,
        read_tools_list,
        safe=True,
    ),
    PastedKind("curl", "a curl line", ("key", "headers", "name", "private"), is_curl, read_curl_lines),
    PastedKind(
        "agent_builder",
        "a workflow of OpenAI's Agent Builder",
        ("key", "model", "private"),
        is_agent_builder_export,
        read_agent_builder_export,
    ),
    PastedKind("skill", "a SKILL.md", ("model", "name"), is_skill, read_skill),
    PastedKind("address", "an address", ("key", "server", "headers", "name", "private"), is_address, _read_address),
)


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """A text, read by the row that recognised it."""

    kind: PastedKind
    recognition: Recognition


def find_kind(text: str) -> PastedKind | None:
    """The row that recognises a text; None for none. Never raises."""
    try:
        pasted = read_text(text)
    except InvalidPool:
        return None
    return next((kind for kind in KINDS if kind.recognise(pasted)), None)


def recognise(text: str, settings: ImportSettings) -> RecognisedText:
    """What a text is, and what it offers or has to be asked. Nothing is asked or started here.

    Raises InvalidPool: what is accepted where nothing recognises it, or what to correct.
    """
    pasted = read_text(text)
    kind = next((kind for kind in KINDS if kind.recognise(pasted)), None)
    if kind is None:
        raise InvalidPool([("text", f"{_describe_unknown(pasted)} {ACCEPTED}")])
    _check_settings(kind, settings)
    try:
        recognition = kind.read(pasted, settings)
    except UnfitText as reason:
        raise InvalidPool([("text", str(reason))]) from reason
    notes = (*recognition.notes, *settings.keys.notes)
    offers = check_offers(recognition.offers)
    return RecognisedText(kind, replace(recognition, offers=offers, notes=notes, keys=settings.keys.count))


def check_offers(offers: tuple[Offer, ...] | list[Offer]) -> tuple[Offer, ...]:
    """The offers; one whose worker could not be opened has the reason."""
    return tuple(offer if offer.problem else Offer(offer.spec, _find_problem(offer)) for offer in offers)


def _find_problem(offer: Offer) -> str:
    try:
        load_config(offer.spec)
    except InvalidPool as error:
        return "; ".join(f"{where}: {what}" if where else what for where, what in error.problems)[:600]
    return ""


def _read_answer(text: str, settings: ImportSettings) -> Recognition | None:
    """What an address answered, by the rows that start nothing; None where it is none of them."""
    try:
        pasted = read_text(text)
    except InvalidPool:
        return None
    kind = next((kind for kind in KINDS if kind.safe and kind.recognise(pasted)), None)
    return kind.read(pasted, settings) if kind is not None else None


def _check_settings(kind: PastedKind, settings: ImportSettings) -> None:
    """Raises InvalidPool for a setting that would be of no use."""
    given = {name for name in ("key", "server", "env", "headers", "name", "private") if getattr(settings, name)}
    useless = sorted(given - set(kind.settings))
    if useless:
        takes = ", ".join(name for name in kind.settings if name != "model") or "none"
        raise InvalidPool([(name, f"{kind.label} has no use for this; it takes: {takes}") for name in useless])


def _describe_unknown(pasted: PastedText) -> str:
    if isinstance(pasted.document, dict) and "podium_pool" in pasted.document:
        return "This is a pool's file: import it as a pool of its own (Import, or podium pool import FILE)."
    if pasted.text[0] in "{[" and pasted.document is None:
        return "This begins like JSON, but is none: a bracket or a quotation mark may be missing."
    if _PYTHON.match(pasted.text):
        return "This is Python: keep it as a file and import that (Python function, or --from function:FILE.py)."
    return "This is nothing that workers can be made of."

"""List the tools of an MCP server, and what has changed there since they were added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.imports import FreeNames, Offer
from pool_registry.mcp_client.listed_tools import find_lack, read_input_schema
from pool_registry.mcp_client.session import borrow, give_back
from pool_registry.schemas.argument_schema import describe_changes
from pool_registry.schemas.mend_schema import MendedSchema, mend_schema
from pool_registry.schemas.result_outline import outline_result
from pool_registry.text import shorten
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpConfig, McpServer

if TYPE_CHECKING:
    import mcp_types

MAX_DESCRIPTION = 2000
TWICE = "the server lists another tool of the same name, and a call would reach only one of them"
MAX_TOOL_NAME_CHARS = 256  # as in workers/mcp.py


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One difference between what a pool recorded and what the server has now."""

    what: Literal["added", "removed", "changed"]
    tool: str
    worker: str  # its name in the pool, or the name it would get
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The updated workers (without those whose tool is gone), and what changed."""

    specs: tuple[WorkerSpec, ...]
    changes: tuple[ToolChange, ...]
    new: tuple[Offer, ...]  # tools that the pool does not have yet


async def list_tools(server: McpServer) -> list[Offer]:
    """Return one offer per tool. Starts the server's program or asks its URL, and closes it afterwards.

    Raises WorkerFault when the server cannot be reached, or answers with anything but a list of tools.
    """
    return _offers(server, await _tools(server), taken=())


async def refresh(server: McpServer, specs: Sequence[WorkerSpec]) -> Refreshed:
    """Compare workers of `server` with its tools. Raises WorkerFault, InvalidPool when one is of another server.

    Arguments follow the server; names, descriptions, limits and prices are the person's, and stay.
    """
    for spec in specs:
        if spec.kind != "mcp" or McpConfig.model_validate(spec.config).server != server:
            raise InvalidPool([(spec.name, f"this is no tool of the server {server.name!r}")])
    tools = {tool.name: tool for tool in await _tools(server)}
    kept: list[WorkerSpec] = []
    changes: list[ToolChange] = []
    for spec in specs:
        config = McpConfig.model_validate(spec.config)
        tool = tools.get(config.tool)
        if tool is None:
            changes.append(ToolChange("removed", config.tool, spec.name))
            continue
        returns = _read_returns(tool)
        mended = mend_schema(read_input_schema(tool))
        detail = describe_changes(config.parameters, mended.schema) or _describe_returns(config, returns)
        if not (detail or mended.problem):
            kept.append(spec)
            continue
        changes.append(ToolChange("changed", config.tool, spec.name, mended.problem or detail))
        before = {name: value for name, value in spec.config.items() if name != "mended"}
        config_now = {**before, **_describe_arguments(mended), "returns": returns}
        kept.append(spec if mended.problem else spec.model_copy(update={"config": config_now}))
    imported = {McpConfig.model_validate(spec.config).tool for spec in specs}
    added = [tool for name, tool in tools.items() if name not in imported]
    new = _offers(server, added, taken=[spec.name for spec in specs])
    changes += [ToolChange("added", tool.name, offer.spec.name) for tool, offer in zip(added, new, strict=True)]
    return Refreshed(tuple(kept), tuple(changes), tuple(new))


async def _tools(server: McpServer) -> list[mcp_types.Tool]:
    session = await borrow(server)
    try:
        return await session.tools()
    finally:
        await give_back(server, session)


def _offers(server: McpServer, tools: Sequence[mcp_types.Tool], taken: Sequence[str]) -> list[Offer]:
    names = FreeNames(taken)
    listed, offers = set[str](), list[Offer]()
    for tool in tools:
        instead = (tool.title or "", tool.description or "")
        offer = _offer(server, tool, names.choose(tool.name, server.name, instead))
        offers.append(replace(offer, problem=TWICE) if tool.name in listed and not offer.problem else offer)
        listed.add(tool.name)
    return offers


def _offer(server: McpServer, tool: mcp_types.Tool, name: str) -> Offer:
    mended = mend_schema(read_input_schema(tool))
    problem = mended.problem or find_lack(tool)
    if not 0 < len(tool.name) <= MAX_TOOL_NAME_CHARS:
        problem = f"its name is empty or longer than {MAX_TOOL_NAME_CHARS} characters"
    spec = WorkerSpec(
        name=name,
        kind="mcp",
        description=_description(tool, server),
        config={
            "server": server.model_dump(mode="json"),
            "tool": tool.name,
            **_describe_arguments(mended),
            "returns": _read_returns(tool),
        },
        retries=2 if _may_be_repeated(tool) else 0,
        effects=_read_effects(tool),
    )
    return Offer(spec, problem)


def _describe_arguments(mended: MendedSchema) -> dict[str, JsonValue]:
    """The schema of a tool's arguments in its configuration, and what was changed in it."""
    return {"parameters": mended.schema, **({"mended": list(mended.notes)} if mended.notes else {})}


def _read_returns(tool: mcp_types.Tool) -> dict[str, JsonValue]:
    """The fields of what a tool returns, as results.py takes them out; {} where the server says nothing of them."""
    outline = outline_result(tool.output_schema)
    properties = outline.get("properties")
    if isinstance(properties, dict) and properties.keys() == {"result"}:
        inner = properties["result"]
        return inner if isinstance(inner, dict) else {}
    return outline


def _describe_returns(config: McpConfig, returns: Mapping[str, JsonValue]) -> str:
    return "" if config.returns == returns else "what it returns"


def _description(tool: mcp_types.Tool, server: McpServer) -> str:
    text = (tool.description or tool.title or "").strip() or f"The tool {tool.name} of {server.name}."
    return shorten(text, MAX_DESCRIPTION)


def _read_effects(tool: mcp_types.Tool) -> Literal["auto", "none", "some"]:
    """What the server says of the tool's effects; auto where it says nothing."""
    hints = tool.annotations
    if hints is None or hints.read_only_hint is None:
        return "some" if hints is not None and hints.destructive_hint else "auto"
    return "none" if hints.read_only_hint else "some"


def _may_be_repeated(tool: mcp_types.Tool) -> bool:
    """Whether the server says that a call whose answer was lost may be sent again."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

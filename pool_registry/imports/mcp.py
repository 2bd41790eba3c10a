"""List the tools of an MCP server, and what has changed there since they were added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.imports import FreeNames, Offer
from pool_registry.mcp_client.session import borrow, give_back
from pool_registry.schemas.argument_schema import describe_changes, schema_problem
from pool_registry.schemas.result_outline import outline_result
from pool_registry.text import shorten
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpConfig, McpServer

if TYPE_CHECKING:
    import mcp_types

MAX_DESCRIPTION = 2000


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
        detail = describe_changes(config.parameters, tool.input_schema) or _describe_returns(config, returns)
        if not detail:
            kept.append(spec)
            continue
        problem = schema_problem(tool.input_schema)
        changes.append(ToolChange("changed", config.tool, spec.name, problem or detail))
        config_now = {**spec.config, "parameters": tool.input_schema, "returns": returns}
        kept.append(spec if problem else spec.model_copy(update={"config": config_now}))
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
    return [_offer(server, tool, names.choose(tool.name, server.name)) for tool in tools]


def _offer(server: McpServer, tool: mcp_types.Tool, name: str) -> Offer:
    problem = schema_problem(tool.input_schema)
    if not problem and not 0 < len(tool.name) <= 256:
        problem = "its name is empty or longer than 256 characters"
    spec = WorkerSpec(
        name=name,
        kind="mcp",
        description=_description(tool, server),
        config={
            "server": server.model_dump(mode="json"),
            "tool": tool.name,
            "parameters": {} if problem else tool.input_schema,
            "returns": _read_returns(tool),
        },
        retries=2 if _may_be_repeated(tool) else 0,
        effects=_read_effects(tool),
    )
    return Offer(spec, problem)


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

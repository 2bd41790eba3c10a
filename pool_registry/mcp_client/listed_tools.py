"""The list of tools of an MCP server, as far as each tool can be read.

The SDK checks a whole page of a list and refuses all of it for one tool that is written wrongly. So each tool is put
into the protocol's form before the SDK sees it, and what the server wrote of its arguments travels beside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from pool_registry.schemas.mend_schema import NO_ARGUMENTS, mend_schema

if TYPE_CHECKING:
    import mcp_types

ARGUMENTS_KEY = "podium/inputSchema"  # in a tool's `_meta`, which the protocol leaves to those who need it
_SCHEMA_FIELDS = ("inputSchema", "input_schema", "parameters")  # the last two as other tool formats call it
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_TASK_SUPPORT = ("forbidden", "optional", "required")


class TolerantStream:
    """The messages of a server for the SDK's client, with the lists of tools among them in the protocol's form."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def receive(self) -> Any:
        return _mend_message(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return _mend_message(await anext(self._stream))

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # the SDK looks for the context of a message there


def read_input_schema(tool: mcp_types.Tool) -> object:
    """What a server wrote of a tool's arguments."""
    return (tool.meta or {}).get(ARGUMENTS_KEY, tool.input_schema)


def find_lack(tool: mcp_types.Tool) -> str:
    """What a tool needs of its caller that Podium does not have; "" where nothing is missing."""
    if tool.execution is not None and tool.execution.task_support == "required":
        return "it must be called as a task that runs in the background, which Podium cannot do yet"
    ui = (tool.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    if isinstance(visibility, list) and visibility and "model" not in visibility:
        return "it is for the server's own page only, not for models, and Podium shows no such pages"
    return ""


def _mend_message(message: Any) -> Any:
    result = getattr(getattr(message, "message", None), "result", None)
    if isinstance(result, dict) and isinstance(result.get("tools"), list) and "content" not in result:
        result["tools"] = [mend_tool(tool) for tool in result["tools"]]
    return message


def mend_tool(tool: object) -> dict[str, Any]:
    """A tool of a list in the protocol's form; one that is nothing of the kind has no name."""
    raw = tool if isinstance(tool, Mapping) else {}
    name = raw.get("name")
    schema = next((raw[field] for field in _SCHEMA_FIELDS if field in raw), None)
    mended = mend_schema(schema)
    meta = raw.get("_meta")
    plain: dict[str, Any] = {
        "name": name if isinstance(name, str) else "",
        "inputSchema": mended.schema,
        "_meta": {**(meta if isinstance(meta, dict) else {}), ARGUMENTS_KEY: schema},
    }
    for field in ("title", "description"):
        if isinstance(raw.get(field), str):
            plain[field] = raw[field]
    plain |= {"annotations": hints} if (hints := _read_hints(raw.get("annotations"))) else {}
    plain |= {"outputSchema": output} if (output := _read_output(raw.get("outputSchema"))) else {}
    execution = raw.get("execution")
    if isinstance(execution, Mapping) and execution.get("taskSupport") in _TASK_SUPPORT:
        plain["execution"] = {"taskSupport": execution["taskSupport"]}
    return plain


def _read_hints(annotations: object) -> dict[str, Any]:
    raw = annotations if isinstance(annotations, Mapping) else {}
    hints = {name: raw[name] for name in _HINTS if isinstance(raw.get(name), bool)}
    return hints | ({"title": raw["title"]} if isinstance(raw.get("title"), str) else {})


def _read_output(schema: object) -> dict[str, Any] | None:
    """The schema of what a tool returns; None for one that cannot be read, with which the SDK would refuse results."""
    if not isinstance(schema, dict):
        return None
    mended = mend_schema(schema)
    return None if mended.problem or mended.schema == NO_ARGUMENTS else mended.schema

"""A list of tools as programs send it to a language model: OpenAI's two forms, and those of Anthropic,
Gemini, Bedrock and MCP.

It says what tools take and not where they run. With an address, each is a POST of its arguments as JSON to
ADDRESS/NAME, as mcpo and most servers of tools take it. Without one, each returns its call, labelled as such: plans
over these tools can be made, watched and learnt, and are answered by nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.imports import FreeNames, Offer
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, UnfitText, refuse
from pool_registry.schemas.mend_schema import mend_schema
from pool_registry.worker import WorkerSpec

MAX_TOOLS = 2_000
HOLDERS = ("tools", "functions", "functionDeclarations", "function_declarations")
WRAPPERS = ("function", "toolSpec")  # of OpenAI and Bedrock
SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
NO_ADDRESS = (
    'The list says what its tools take, but not where they run: each returns its call, labelled "recorded call". '
    "To call them, give the address to which arguments are sent as JSON (Server, --server URL), or import the Python "
    "file that holds them (--from function:FILE.py)"
)
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def is_tools_list(pasted: PastedText) -> bool:
    tools = _find_tools(pasted.document)
    return bool(tools) and all(map(_is_tool, tools))


def read_tools_list(pasted: PastedText, settings: ImportSettings) -> Recognition:
    tools = _find_tools(pasted.document)
    if len(tools) > MAX_TOOLS:
        raise InvalidPool([("text", f"it has more than {MAX_TOOLS:,} tools; paste some of them")])
    names = FreeNames()
    offers = tuple(_make_offer(_read_function(tool), names, settings) for tool in tools)
    return Recognition(offers, notes=() if settings.server else (NO_ADDRESS,))


def _find_tools(document: JsonValue) -> list[Any]:
    """The entries of a list of tools, alone or in a request; one tool alone is a list, too."""
    if isinstance(document, Mapping):
        for holder in HOLDERS:
            entries = document.get(holder)
            if isinstance(entries, list):
                return _find_tools(entries)
        if isinstance(document.get("result"), Mapping):  # what an MCP server answers to tools/list
            return _find_tools(document["result"])
        return [document] if _is_tool(document) else []
    if not isinstance(document, list):
        return []
    declared = [_find_tools(entry) if _declares(entry) else [entry] for entry in document]
    return [entry for entries in declared for entry in entries]


def _declares(entry: Any) -> bool:
    return isinstance(entry, Mapping) and bool(entry.keys() & {"functionDeclarations", "function_declarations"})


def _is_tool(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    function = _read_function(entry)
    described = entry.get("type") == "function" or any(isinstance(function.get(key), Mapping | list) for key in SCHEMAS)
    return isinstance(function.get("name"), str) and bool(function["name"]) and described


def _read_function(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    functions = (entry.get(wrapper) for wrapper in WRAPPERS)
    return next((function for function in functions if isinstance(function, Mapping)), entry)


def _make_offer(function: Mapping[str, Any], names: FreeNames, settings: ImportSettings) -> Offer:
    name = names.choose(str(function["name"]))
    try:
        return Offer(_make_worker(name, function, settings))
    except UnfitText as reason:
        return refuse(name, "http", str(reason))


def _make_worker(name: str, function: Mapping[str, Any], settings: ImportSettings) -> WorkerSpec:
    """Raises UnfitText."""
    tool = str(function["name"])
    schema = next((function[key] for key in SCHEMAS if function.get(key) is not None), None)
    if isinstance(schema, Mapping) and isinstance(schema.get("json"), Mapping):  # of Bedrock
        schema = schema["json"]
    mended = mend_schema(schema)
    if mended.problem:
        raise UnfitText(mended.problem)
    parameters: dict[str, Any] = {"properties": {}, **mended.schema}
    notes: dict[str, JsonValue] = {"mended": list(mended.notes)} if mended.notes else {}
    described = " ".join(str(function.get("description") or "").split()) or f"The tool {tool}."
    if not settings.server:
        echo: dict[str, JsonValue] = {"tool": tool[:256], "parameters": parameters, "echoes": True, **notes}
        return WorkerSpec(name=name, kind="recorded", description=described[:2000], config=echo)
    odd = [argument for argument in parameters["properties"] if not _ARGUMENT.fullmatch(argument)]
    if odd or not re.fullmatch(r"[\w.-]+", tool, re.ASCII):
        raise UnfitText(f"rename {(odd or [tool])[0][:60]!r} with letters, digits and _, so that a request can hold it")
    headers = dict(settings.headers) | ({"Authorization": f"Bearer {settings.key}"} if settings.key else {})
    config: dict[str, JsonValue] = {
        "url": f"{settings.server.rstrip('/')}/{tool}",
        "method": "POST",
        "headers": {key: settings.keys.refer_setting(f"{tool} {key}", key, value) for key, value in headers.items()},
        "body": {argument: f"{{{argument}}}" for argument in parameters["properties"]},
        "parameters": parameters,
    }
    if settings.private:
        config["allow_private"] = True
    return WorkerSpec(name=name, kind="http", description=described[:2000], config=config, retries=0)

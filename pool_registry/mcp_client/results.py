"""Convert the result of an MCP tool to a value for the engine."""

from __future__ import annotations

import json

import mcp_types

from pool_registry.actions import JsonValue


def value_of(result: mcp_types.CallToolResult) -> JsonValue:
    """Return the structured content if there is any, otherwise the text of all parts.

    SDKs wrap what is no object as `{"result": value}`, because the protocol wants an object: the value comes out. A
    text that is one JSON object is that object: many servers know no other way to return one.
    """
    structured = result.structured_content
    if structured is None:
        return _read_object(text_of(result))
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured


def _read_object(text: str) -> JsonValue:
    """The object that a text is in JSON, or the text itself."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def text_of(result: mcp_types.CallToolResult) -> str:
    """Join all parts as text; other content becomes a note of its kind and size: models read no base64."""
    return "\n".join(_part(part) for part in result.content)


def _part(part: mcp_types.ContentBlock) -> str:
    match part:
        case mcp_types.TextContent():
            return part.text
        case mcp_types.ImageContent():
            return _note("image", part.mime_type, part.data)
        case mcp_types.AudioContent():
            return _note("audio", part.mime_type, part.data)
        case mcp_types.ResourceLink():
            return f"[link to {part.uri}{f': {part.description}' if part.description else ''}]"
        case mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents() as resource):
            return resource.text
        case mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents() as resource):
            return _note(f"file {resource.uri}", resource.mime_type, resource.blob)
    raise AssertionError("the protocol has no other kinds")


def _note(what: str, mime_type: str | None, base64: str) -> str:
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return f"[{what}, {mime_type or 'unknown type'}, {size:,} bytes: not shown]"

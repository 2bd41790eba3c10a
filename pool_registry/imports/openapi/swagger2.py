"""Swagger 2.0 documents as OpenAPI 3.0: places of arguments, formats of lists, bodies, servers and keys.

References stay as they are: what they lead to (`definitions`, `responses`) is kept where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import jsonpointer

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
# collectionFormat -> style in a query or form; other places have `csv` alone
_STYLES: dict[str, dict[str, Any]] = {
    "csv": {"style": "form", "explode": False},
    "multi": {"style": "form", "explode": True},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_NOT_OF_SCHEMAS = {"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"}
_KEYS: dict[str, dict[str, Any]] = {"basic": {"type": "http", "scheme": "basic"}}  # others are called as in OpenAPI 3


def convert_document(root: Mapping[str, Any]) -> dict[str, Any]:
    """The document as OpenAPI 3.0; what is wrong in it stays, to be told where it is read."""
    paths = {path: _convert_item(root, _follow(root, item)) for path, item in root["paths"].items()}
    schemes = root.get("securityDefinitions")
    keys = {name: _convert_key(scheme) for name, scheme in schemes.items()} if isinstance(schemes, dict) else {}
    kept = {name: root[name] for name in ("info", "security", "responses", "parameters") if name in root}
    schemas = root.get("definitions")
    definitions = (
        {name: _convert_choice(schema) for name, schema in schemas.items()} if isinstance(schemas, dict) else {}
    )
    return {
        **kept,
        "definitions": definitions,
        "openapi": "3.0.4",
        "servers": [{"url": _name_server(root)}],
        "paths": paths,
        "components": {"securitySchemes": keys},
    }


def _follow(root: Mapping[str, Any], node: Any) -> Any:
    """What a local reference leads to; anything else as it is."""
    reference = node.get("$ref") if isinstance(node, dict) else None
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return node
    try:
        return jsonpointer.resolve_pointer(root, unquote(reference[1:]))
    except (jsonpointer.JsonPointerException, TypeError):
        return node


def _name_server(root: Mapping[str, Any]) -> str:
    """The address without its scheme where the document names none: that of the document itself holds."""
    host, base, schemes = root.get("host"), str(root.get("basePath") or "/"), root.get("schemes")
    if not host:
        return base
    names = schemes if isinstance(schemes, list) else []
    scheme = "https:" if "https" in names else f"{names[0]}:" if names else ""
    return f"{scheme}//{host}{base}"


def _convert_key(scheme: Any) -> Any:
    return _KEYS.get(str(scheme.get("type")), scheme) if isinstance(scheme, dict) else scheme


def _convert_choice(schema: Any) -> Any:
    """A definition with the field of its discriminator where OpenAPI 3 has it."""
    field = schema.get("discriminator") if isinstance(schema, dict) else None
    return {**schema, "discriminator": {"propertyName": field}} if isinstance(field, str) else schema


def _convert_item(root: Mapping[str, Any], item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    methods = {method: item[method] for method in METHODS if method in item}
    shared = item.get("parameters", [])
    return {method: _convert_operation(root, operation, shared) for method, operation in methods.items()}


def _convert_operation(root: Mapping[str, Any], operation: Any, shared: Any) -> Any:
    own = operation.get("parameters", []) if isinstance(operation, dict) else None
    if not isinstance(own, list) or not isinstance(shared, list):
        return operation
    every = {_place(parameter): parameter for parameter in (_follow(root, node) for node in [*shared, *own])}
    parameters = list(every.values())
    types = _read_types(root, operation, "consumes")
    fields = [parameter for parameter in parameters if _place(parameter)[1] == "formData"]
    bodies = [_read_body(parameter, types) for parameter in parameters if _place(parameter)[1] == "body"]
    if fields:
        bodies.append(_build_form(fields, types))
    elsewhere = [parameter for parameter in parameters if _place(parameter)[1] not in ("formData", "body")]
    return {
        **{name: value for name, value in operation.items() if name != "responses"},
        "parameters": [_convert_parameter(parameter) for parameter in elsewhere],
        "responses": dict(_convert_responses(root, operation)),
        **({"requestBody": bodies[0]} if bodies else {}),
    }


def _place(parameter: Any) -> tuple[str, str]:
    return (
        (str(parameter.get("name")), str(parameter.get("in"))) if isinstance(parameter, dict) else (repr(parameter), "")
    )


def _read_types(root: Mapping[str, Any], operation: Mapping[str, Any], key: str) -> list[str]:
    listed = operation.get(key, root.get(key))
    return [kind for kind in listed if isinstance(kind, str)] if isinstance(listed, list) else []


def _read_body(parameter: Mapping[str, Any], types: list[str]) -> dict[str, Any]:
    media = {"schema": parameter.get("schema", {})}
    body = {name: parameter[name] for name in ("required", "description") if name in parameter}
    return {**body, "content": dict.fromkeys(types or ["application/json"], media)}


def _build_form(fields: list[dict[str, Any]], types: list[str]) -> dict[str, Any]:
    """One form of its fields; of parts where one of them is a file."""
    rules = {str(field.get("name")): _read_schema(field) for field in fields}
    required = [str(field.get("name")) for field in fields if field.get("required") is True]
    encoding = {str(field.get("name")): _read_style(field) for field in fields if field.get("type") == "array"}
    has_file = any(field.get("type") == "file" for field in fields)
    kinds = [MULTIPART] if has_file else [kind for kind in types if kind in (FORM, MULTIPART)] or [FORM]
    schema = {"type": "object", "properties": rules, "required": required}
    return {"required": True, "content": {kind: {"schema": schema, "encoding": encoding} for kind in kinds}}


def _convert_parameter(parameter: Any) -> Any:
    if not isinstance(parameter, dict) or "$ref" in parameter:
        return parameter
    kept = {name: parameter[name] for name in ("name", "in", "required", "description") if name in parameter}
    style = _read_style(parameter) if parameter.get("type") == "array" else {}
    return {**kept, "schema": _read_schema(parameter), **style}


def _read_style(parameter: Mapping[str, Any]) -> dict[str, Any]:
    """How a list is written: as commas divide it where the document says nothing."""
    name = str(parameter.get("collectionFormat", "csv"))
    if parameter.get("in") in ("path", "header") and name == "csv":
        return {"style": "simple"}
    return _STYLES.get(name, {"style": name})  # a name that OpenAPI 3 has not is refused with it


def _read_schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    rule = {name: value for name, value in parameter.items() if name not in _NOT_OF_SCHEMAS}
    return {**rule, "type": "string", "format": "binary"} if rule.get("type") == "file" else rule


def _convert_responses(root: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    replies = operation.get("responses")
    types = _read_types(root, operation, "produces") or ["application/json"]
    for status, node in replies.items() if isinstance(replies, dict) else ():
        reply = _follow(root, node)
        if isinstance(reply, dict):
            schema = reply.get("schema")
            yield status, {"content": {kind: {"schema": schema} for kind in types} if schema is not None else {}}

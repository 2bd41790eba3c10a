"""What must be read of a schema before it is translated: the properties that only answers have, and the names that a
discriminator has for the variants of a `oneOf`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pool_registry.imports.openapi.document import Document, UnfitOperation

_SETTLED = {"const", "enum"}  # a variant says itself what it is called


def list_read_only(document: Document, node: Any) -> frozenset[str]:
    """The properties of a schema, and of what it joins by `allOf`, that a caller must not send."""
    names = (name for name, rule in _list_properties(document, node) if _is_read_only(document, rule))
    return frozenset(names)


def list_labels(document: Document, node: Mapping[str, Any]) -> list[list[str]]:
    """The values that a discriminator has for each variant of `oneOf`; empty where it does not name each of them, or
    where a variant does not have its field."""
    discriminator = node.get("discriminator")
    if not isinstance(discriminator, Mapping) or not isinstance(discriminator.get("propertyName"), str):
        return []
    mapping = discriminator.get("mapping")
    table = mapping if isinstance(mapping, Mapping) else {}
    labels = []
    for variant in node["oneOf"]:
        values = _list_values(variant, table)
        rule = dict(_list_properties(document, variant)).get(discriminator["propertyName"])
        if not values or rule is None:
            return []
        labels.append([] if isinstance(rule, Mapping) and _read_rule(document, rule).keys() & _SETTLED else values)
    return labels


def list_heirs(document: Document, node: Any) -> list[dict[str, str]]:
    """References to the schemas that a discriminator chooses from where no `oneOf` lists them: those of its `mapping`,
    or the schema and those beside it that join it by `allOf`. Empty where it has no such choice."""
    base = _read_rule(document, node)
    discriminator = base.get("discriminator")
    if not isinstance(discriminator, Mapping) or base.keys() & {"oneOf", "anyOf"}:
        return []
    mapping, reference = discriminator.get("mapping"), str(node.get("$ref", ""))
    folder = reference.rpartition("/")[0] or "#/components/schemas"
    if isinstance(mapping, Mapping) and mapping:
        references = [str(target) if "#" in str(target) else f"{folder}/{target}" for target in mapping.values()]
    else:
        references = [reference, *_list_joining(document, folder, reference)] if reference else []
    heirs = [{"$ref": item} for item in dict.fromkeys(references)]
    return heirs if all(_read_rule(document, heir) for heir in heirs) and len(heirs) > 1 else []


def _list_joining(document: Document, folder: str, reference: str) -> Iterator[str]:
    schemas = document.at(folder)
    for name, schema in schemas.items() if isinstance(schemas, dict) else ():
        parts = schema.get("allOf") if isinstance(schema, dict) else None
        if isinstance(parts, list) and {"$ref": reference} in parts:
            yield f"{folder}/{name}"


def write_label(variant: Any, field: str, values: list[str]) -> Any:
    """`variant` with its name in the field that tells it from the others; as it is where it says that itself."""
    if not values or not isinstance(variant, dict):
        return variant
    properties, required = variant.get("properties", {}), variant.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return variant  # the check of the whole schema says why
    rule = properties.get(field)
    label = {**(rule if isinstance(rule, dict) else {}), "enum": values}
    demands = required if field in required else [*required, field]
    return {**variant, "properties": {**properties, field: label}, "required": demands}


def _list_values(variant: Any, mapping: Mapping[str, Any]) -> list[str]:
    """The names of a variant: those that `mapping` has for its reference, or the last part of that."""
    reference = variant.get("$ref") if isinstance(variant, Mapping) else None
    if not isinstance(reference, str):
        return []
    last = reference.rpartition("/")[2]
    mapped = [str(value) for value, target in mapping.items() if target in (reference, last)]
    return mapped or [last]


def _list_properties(document: Document, node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the properties of a schema and of those that it joins by `allOf`, each schema once."""
    waiting, seen = [node], set[int]()
    while waiting:
        try:
            schema = document.follow(waiting.pop())
        except UnfitOperation:
            continue  # the translation says so
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        properties, parts = schema.get("properties"), schema.get("allOf")
        if isinstance(properties, dict):
            yield from properties.items()
        if isinstance(parts, list):
            waiting.extend(parts)


def _is_read_only(document: Document, rule: Any) -> bool:
    if not isinstance(rule, Mapping):
        return False
    parts = rule.get("allOf")
    schemas = [rule, *(parts if isinstance(parts, list) else [])]
    return any(_read_rule(document, schema).get("readOnly") is True for schema in schemas) or (
        rule.get("readOnly") is True  # beside a reference
    )


def _read_rule(document: Document, rule: Any) -> Mapping[str, Any]:
    try:
        return document.follow(rule)
    except UnfitOperation:
        return {}  # the translation says so

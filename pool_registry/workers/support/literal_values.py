"""The values that a Python function surely takes: keys of the tables in its file that it looks its arguments up in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import TypeAlias

from pool_registry.actions import JsonValue
from pool_registry.python_source import parse_module

MAX_COMBINATIONS = 400
Scalar: TypeAlias = str | int | float
Key: TypeAlias = Scalar | tuple[Scalar, ...]


def list_looked_up(source: str, function: str, parameters: Sequence[str]) -> list[dict[str, JsonValue]]:
    """Arguments by which a function of this source looks something up: `title` is a key of BOOKS in `BOOKS[title]`, or
    in `BOOKS.get(title.lower())`. None where a parameter is no key of a table that is written in the source."""
    try:
        tree = parse_module(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    tables = dict(_list_tables(tree))
    body = next((node for node in tree.body if _is_function(node) and getattr(node, "name", "") == function), None)
    if body is None or not parameters:
        return []
    options: dict[str, list[Scalar]] = {}
    for table, key in _list_lookups(body):
        names = _list_names(key, parameters)
        if table in tables and len(names) == 1:
            options.setdefault(names[0], []).extend(item for item in tables[table] if not isinstance(item, tuple))
        elif table in tables and sorted(names) == sorted(parameters) and isinstance(key, ast.Tuple):
            rows = [key for key in tables[table] if isinstance(key, tuple) and len(key) == len(names)]
            return [dict(zip(names, row, strict=True)) for row in rows]
    if any(not options.get(name) for name in parameters):
        return []
    combinations = product(*(dict.fromkeys(options[name]) for name in parameters))
    return [dict(zip(parameters, row, strict=True)) for row in islice(combinations, MAX_COMBINATIONS)]


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _list_tables(tree: ast.Module) -> Iterator[tuple[str, list[Key]]]:
    """Yield the tables at the top of a source with their keys; a key of several parts is a tuple."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Dict):
            yield target.id, [key for key in map(_read_key, value.keys) if key is not None]


def _read_key(node: ast.expr | None) -> Key | None:
    try:
        key = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError):
        return None
    parts = key if isinstance(key, tuple) else (key,)
    is_plain = all(isinstance(part, str | int | float) and not isinstance(part, bool) for part in parts)
    return key if is_plain else None


def _list_lookups(body: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the name of each table that a function looks into, with the key."""
    for node in ast.walk(body):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            yield node.value.id, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            table = node.func.value
            if node.func.attr == "get" and isinstance(table, ast.Name):
                yield table.id, node.args[0]


def _list_names(key: ast.expr, parameters: Sequence[str]) -> list[str]:
    """The parameters that a key is made of, in their order there."""
    names = [node.id for node in ast.walk(key) if isinstance(node, ast.Name) and node.id in parameters]
    return list(dict.fromkeys(names))

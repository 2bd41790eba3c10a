"""Reads the calls in Python source whose results have names (`agent = Agent(name=...)`), as data. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pool_registry.python_source import parse_module


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that the source uses."""

    name: str


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call: the last part of what is called, and its arguments by name. What is no literal is a Reference, a
    NamedCall or None."""

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """The named calls of a source, the texts that its variables hold or its functions return, and the names of what it
    calls."""

    calls: Mapping[str, NamedCall]
    texts: Mapping[str, str]
    called: tuple[str, ...]


def read_source(text: str) -> Source | None:
    """None where the text is no Python, or is nested too deep."""
    try:
        return _read_tree(parse_module(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read_tree(tree: ast.Module) -> Source:
    calls, texts = dict[str, NamedCall](), dict[str, str]()
    for node in ast.walk(tree):
        target = _find_target(node)
        if target is not None and isinstance(node, ast.Assign | ast.AnnAssign):
            value = _read_value(node.value)
            if isinstance(value, NamedCall):
                calls.setdefault(target, value)
            elif isinstance(value, str):
                texts.setdefault(target, value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            texts.update((node.name, returned) for returned in _list_returned(node))
    called = tuple(_name_of(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return Source(calls, texts, called)


def _find_target(node: ast.AST) -> str | None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _list_returned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        value = _read_value(node.value) if isinstance(node, ast.Return) else None
        if isinstance(value, str):
            yield value


def _read_value(node: ast.expr | None) -> Any:
    """A literal, with {name} in place of what an f-string fills in; a Reference; a NamedCall; None for all else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_part(part) for part in node.values)
    if isinstance(node, ast.Name):
        return Reference(node.id)
    if isinstance(node, ast.List | ast.Tuple):
        return [_read_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {key.value: _read_value(value) for key, value in pairs if isinstance(key, ast.Constant)}
    if isinstance(node, ast.Call):
        arguments = {keyword.arg: _read_value(keyword.value) for keyword in node.keywords if keyword.arg}
        return NamedCall(_name_of(node.func), arguments)
    return None


def _read_part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _name_of(node: ast.expr) -> str:
    """The last part of what is called: `agents.Agent` is "Agent"."""
    if isinstance(node, ast.Call | ast.Subscript):
        return _name_of(node.func if isinstance(node, ast.Call) else node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

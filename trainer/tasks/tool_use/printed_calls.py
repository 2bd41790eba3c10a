"""Calls that a data set prints as a list of Python's: `[get_stock(item="tea"), find_order(number=7)]`."""

from __future__ import annotations

import ast
import re

from pool_registry.actions import storable
from pool_registry.python_source import parse_expression
from trainer.tasks.tool_use.conversation import ToolCall
from trainer.tasks.tool_use.loose_json import MAX_PRINTED_CHARS

_LOOKS_SO = re.compile(r"\[\s*[A-Za-z_][\w.]*\(.*\)\s*\]", re.DOTALL)


def read_printed_calls(text: str) -> list[ToolCall]:
    """The calls that a text is, each with all its arguments by name; none where it is something else."""
    if len(text) > MAX_PRINTED_CHARS or not _LOOKS_SO.fullmatch(text):
        return []
    try:
        node = parse_expression(text)
        listed = node.elts if isinstance(node, ast.List) else []
        calls = [_read_call(item) for item in listed if isinstance(item, ast.Call)]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []
    return calls if len(calls) == len(listed) else []


def _read_call(node: ast.Call) -> ToolCall:
    """Raises ValueError where an argument has no name, or is no value."""
    if node.args or any(word.arg is None for word in node.keywords):
        raise ValueError("an argument has no name")
    arguments = {str(word.arg): storable(ast.literal_eval(word.value)) for word in node.keywords}
    return ToolCall(ast.unparse(node.func), arguments)

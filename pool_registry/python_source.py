"""Parse Python, whatever other threads parse meanwhile.

Up to Python 3.11 `ast.parse` counts its depth in one place for the whole process. Where a thread is stopped in the
middle (the garbage collector may run a finalizer there) and another one parses, the first one's count is off and its
parse ends in a SystemError, although the source is fine.
"""

import ast

_TRIES = 20


def parse_module(source: str) -> ast.Module:
    """The tree of a file. Raises what `ast.parse` raises: SyntaxError, ValueError, RecursionError or MemoryError."""
    tree = _parse(source, "exec")
    assert isinstance(tree, ast.Module)
    return tree


def parse_expression(source: str) -> ast.expr:
    """The tree of one expression. Raises as `parse_module`."""
    tree = _parse(source, "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def _parse(source: str, mode: str) -> ast.AST:
    for _ in range(_TRIES - 1):
        try:
            return ast.parse(source, mode=mode)
        except SystemError:
            continue
    return ast.parse(source, mode=mode)

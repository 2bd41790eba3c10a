"""Runs one snippet in this process and reports its result; everything it reports is untrusted.

Standard library only. The process is locked in by then (jail.py), and ends after this one snippet.
"""

from __future__ import annotations

import ast
import errno
import io
import json
import resource
import sys
from typing import Any

KEEP_OUTPUT = 64 * 1024


class Kept(io.StringIO):
    """The snippet's standard output, of which the first KEEP_OUTPUT characters are kept."""

    cut = False

    def write(self, text: str) -> int:
        room = KEEP_OUTPUT - self.tell()
        self.cut = self.cut or len(text) > room
        super().write(text[: max(room, 0)])
        return len(text)


def run(code: str) -> dict[str, Any]:
    """Run a snippet; return its last expression, its output, or its error."""
    printed = Kept()
    try:
        body, last = split(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return {"error": "syntax", "message": f"{type(error).__name__}: {error}"}
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    real = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = printed
    try:
        exec(body, space)
        value = None if last is None else eval(last, space)
        shown = jsonable(value, printed.getvalue())
    except SystemExit:
        shown = None
    except BaseException as error:
        if is_out_of_memory(error):
            return {"error": "out_of_memory", "message": describe_shortage(error), "stdout": printed.getvalue()}
        return {"error": "exception", "message": describe_error(error), "stdout": printed.getvalue()}
    finally:
        sys.stdout, sys.stderr = real
    return {"value": shown, "stdout": printed.getvalue(), "cut": printed.cut}


def split(code: str) -> tuple[Any, Any]:
    """Split off the last statement when it is an expression."""
    tree = ast.parse(code, "<snippet>")
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        expression = tree.body.pop()
        assert isinstance(expression, ast.Expr), "just asked"
        last = compile(ast.Expression(expression.value), "<snippet>", "eval", dont_inherit=True)
    return compile(tree, "<snippet>", "exec", dont_inherit=True), last


def jsonable(value: Any, printed: str) -> Any:
    """Return the value if JSON can hold it, else None where something was printed, else its text."""
    if value is None:
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None if printed.strip() else str(value)[:KEEP_OUTPUT]
    return value


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the snippet was refused memory."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def describe_shortage(error: BaseException) -> str:
    """Say how much memory a snippet gets, and what to do about it."""
    megabytes = resource.getrlimit(resource.RLIMIT_AS)[0] >> 20
    what = MemoryError(f"a snippet gets {megabytes} MB of memory; work on less data at a time")
    return describe_error(what.with_traceback(error.__traceback__))


def describe_error(error: BaseException) -> str:
    """Describe an exception in one line, with the snippet's own line number."""
    line, place = 0, error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename == "<snippet>":
            line = place.tb_lineno
        place = place.tb_next
    where = f" (line {line})" if line else ""
    try:
        sentence = f"{type(error).__name__}: {error}"
    except BaseException:  # the snippet's own __str__
        sentence = type(error).__name__
    return sentence[:2000] + where

"""Runs one snippet in this process and reports its result; everything it reports is untrusted.

Standard library only. The process is locked in by then (jail.py), and ends after this one snippet.
"""

from __future__ import annotations

import ast
import errno
import io
import json
import mmap
import resource
import sys
from types import CodeType, FrameType
from typing import Any

KEEP_OUTPUT = 64 * 1024
SPARE_BYTES = 8 * 2**20


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
    spare = mmap.mmap(-1, SPARE_BYTES)  # what describing an error needs when the snippet has used up all else
    frames: list[FrameType] = []
    sys.stdout = sys.stderr = printed
    try:
        execute(body, space, frames)
        value = None if last is None else execute(last, space, frames)
        shown = jsonable(value, printed.getvalue())
    except SystemExit:
        shown = None
    except BaseException as error:
        spare.close()
        if is_out_of_memory(error):
            return {"error": "out_of_memory", "message": describe_shortage(error, frames), "stdout": printed.getvalue()}
        return {"error": "exception", "message": describe_error(error), "stdout": printed.getvalue()}
    finally:
        sys.stdout, sys.stderr = real
    return {"value": shown, "stdout": printed.getvalue(), "cut": printed.cut}


def split(code: str) -> tuple[CodeType, CodeType | None]:
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


def execute(code: CodeType, space: dict[str, Any], frames: list[FrameType]) -> Any:
    """Run compiled code; return its value. Its frame goes into `frames`: it knows the line that the code has reached,
    also when no memory is left for a traceback. Tracing ends with that first frame, so the code runs at full speed."""

    def keep_frame(frame: FrameType, *_: Any) -> None:
        sys.settrace(None)
        frames.append(frame)

    sys.settrace(keep_frame)
    return eval(code, space)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the snippet was refused memory."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def describe_shortage(error: BaseException, frames: list[FrameType]) -> str:
    """Say how much memory a snippet gets, and what to do about it."""
    megabytes = resource.getrlimit(resource.RLIMIT_AS)[0] >> 20
    shortage = MemoryError(f"a snippet gets {megabytes} MB of memory; work on less data at a time")
    reached_line = frames[-1].f_lineno if frames else 0
    return describe_error(shortage.with_traceback(error.__traceback__), reached_line)


def describe_error(error: BaseException, reached_line: int = 0) -> str:
    """Describe an exception in one line, with the snippet's own line number: the traceback's, else `reached_line`."""
    line, place = reached_line, error.__traceback__
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

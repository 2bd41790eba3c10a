"""Kind `calculator`: one arithmetic expression through simpleeval.

Evaluated on the event loop, so everything is bounded: length, powers, and no text or comprehensions.
It is no programming language; that is kind `python`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

MAX_CHARS = 2000
MAX_FACTORIAL = 1000

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "round": round,
    "min": min,
    "max": max,
    "sum": sum,
    "len": len,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "hypot": math.hypot,
}
NAMES = {"pi": math.pi, "e": math.e}


class Calculator(Worker[NoConfig]):
    sample = {"expression": "round((59910 * 247.105) / 2, 1)"}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        names = ", ".join(FUNCTIONS)
        return one_string("expression", f"Arithmetic with + - * / // % **, comparisons, lists and: {names}.")

    async def call(self, call: Call) -> Reply:
        return Reply(evaluate(call.text("expression")))


def evaluate(expression: str) -> int | float | bool:
    """The value of an expression. Raises BadCall when it is none, WorkerFault when it has no value."""
    if len(expression) > MAX_CHARS:
        raise BadCall(f"the expression has {len(expression):,} characters; {MAX_CHARS:,} are allowed")
    return _number(_evaluate(expression.strip()))


def _evaluate(expression: str) -> object:
    from simpleeval import EvalWithCompoundTypes, InvalidExpression

    evaluator = EvalWithCompoundTypes(functions=FUNCTIONS, names=NAMES)
    try:
        return evaluator.eval(expression)
    except (ZeroDivisionError, OverflowError) as error:
        raise WorkerFault("math_error", str(error)) from error
    except (InvalidExpression, SyntaxError, AttributeError, KeyError, IndexError) as error:
        raise BadCall(f"{_short(expression)} cannot be evaluated: {error}") from error
    except (TypeError, ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or "too complex"
        raise BadCall(f"{_short(expression)} cannot be evaluated: {reason}") from error


def _number(value: object) -> int | float | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > 4096:
            raise WorkerFault("math_error", "the result has more than 1,200 digits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise WorkerFault("math_error", "the result is not a finite number")
        return value
    raise BadCall(f"the result is {type(value).__name__}; write an expression whose result is a number")


def _short(expression: str) -> str:
    return repr(expression if len(expression) <= 80 else expression[:80] + " …")

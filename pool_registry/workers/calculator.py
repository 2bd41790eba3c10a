"""Kind `calculator`: one arithmetic expression through simpleeval.

Evaluated on the event loop, so everything is bounded: only numbers and short lists of them can be written
(no text, no comprehensions, no attributes), and no number may outgrow MAX_BITS on the way.
It is no programming language; that is kind `python`.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.python_source import parse_expression
from pool_registry.text import shorten
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

MAX_CHARS = 2000
MAX_BITS = 4096  # some 1,200 digits
MAX_FACTORIAL = 500
MAX_DECIMALS = 300
Number: TypeAlias = int | float
_TYPED = str.maketrans({"×": "*", "÷": "/", "−": "-"})  # what people type for * / -
_NUMBER = r"\d+(?:\.\d+)?|\.\d+"
# What people write, as an expression. The figure is part of each pattern, so that nothing else is touched.
_WRITTEN = (
    (re.compile(r"^(.*[\d)])\s*([+-])\s*(" + _NUMBER + r")\s*%$"), r"(\1) * (1 \2 \3/100)"),  # 80 - 20%
    (re.compile(rf"({_NUMBER})\s*(?:%|per ?cent)\s*of\b", re.IGNORECASE), r"\1/100 *"),
    (re.compile(rf"({_NUMBER})\s*%(?=\s*(?:[),]|$))"), r"(\1/100)"),
    (re.compile(rf"\b(?:the )?(?:square root of|sqrt(?: of)?)\s+({_NUMBER})", re.IGNORECASE), r"sqrt(\1)"),
    (re.compile(rf"({_NUMBER}) squared\b", re.IGNORECASE), r"\1**2"),
    (re.compile(rf"({_NUMBER}) cubed\b", re.IGNORECASE), r"\1**3"),
    (re.compile(r"(?<=[\d)]) to the power(?: of)? (?=[\d(])", re.IGNORECASE), "**"),
    (re.compile(r"(?<=[\d)])\s*\^\s*(?=[\d(.-])"), "**"),
    (re.compile(r"(?<=[\d)])(?<!\b0) ?x ?(?=[\d(])", re.IGNORECASE), "*"),
    (re.compile(r"(?<=[\d)])\s+(?:times|multiplied by)\s+(?=[\d(.-])", re.IGNORECASE), " * "),
    (re.compile(r"(?<=[\d)])\s+(?:divided by|over)\s+(?=[\d(.-])", re.IGNORECASE), " / "),
    (re.compile(r"(?<=[\d)])\s+plus\s+(?=[\d(.-])", re.IGNORECASE), " + "),
    (re.compile(r"(?<=[\d)])\s+minus\s+(?=[\d(.-])", re.IGNORECASE), " - "),
)
_GRAMMAR = (
    ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Call | ast.keyword | ast.Name
    | ast.Constant | ast.List | ast.Tuple | ast.Subscript | ast.Slice | ast.expr_context | ast.boolop
    | ast.operator | ast.unaryop | ast.cmpop
)  # fmt: skip


class Calculator(Worker[NoConfig]):
    label = "Calculator"
    summary = "Evaluates one arithmetic expression."
    icon = "M6 3h12v18H6z M9 7h6 M9 12h.01 M12 12h.01 M15 12h.01 M9 16h.01 M12 16h.01 M15 16h.01"
    cacheable = True
    sample = {"expression": "round((59910 * 247.105) / 2, 1)"}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        names = ", ".join(FUNCTIONS)
        return one_string(
            "expression", f"Arithmetic with + - * / // % **, comparisons, lists and: {names}. Also 15% of 80."
        )

    async def call(self, call: Call) -> Reply:
        return Reply(evaluate(call.text("expression")))


def evaluate(expression: str) -> int | float | bool:
    """Evaluate an expression. Raises BadCall when it is invalid, WorkerFault when it has no value."""
    if len(expression) > MAX_CHARS:
        raise BadCall(f"the expression has {len(expression):,} characters; {MAX_CHARS:,} are allowed")
    value = _evaluate(_parse(_as_expression(expression)), expression)
    if isinstance(value, bool | int | float):
        return value
    raise BadCall(f"the result is a {type(value).__name__}; {_hint(expression)}")


def _as_expression(text: str) -> str:
    """The expression that a person means by "15% of 80", "2^10", "80 - 20%" or "17 x 23"."""
    expression = text.strip().translate(_TYPED)
    for pattern, replacement in _WRITTEN:
        expression = pattern.sub(replacement, expression)
    return expression


def _evaluate(tree: ast.expr, expression: str) -> object:
    from simpleeval import EvalWithCompoundTypes, InvalidExpression

    evaluator = EvalWithCompoundTypes(operators=dict(OPERATORS), functions=dict(FUNCTIONS), names=dict(NAMES))
    try:
        return _check_number(evaluator.eval("", previously_parsed=tree))
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise WorkerFault("math_error", str(error)) from error
    except (InvalidExpression, LookupError, TypeError, RecursionError) as error:
        reason = str(error).partition(", for expression")[0].removesuffix(" for expression ''") or "too complex"
        raise BadCall(f"{shorten(expression, 80)!r} cannot be evaluated: {reason}") from error


def _parse(expression: str) -> ast.expr:
    """Parse an expression and check that it is arithmetic only."""
    try:
        tree = parse_expression(expression)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or str(error) or "nested too deeply"
        raise BadCall(f"{shorten(expression, 80)!r} is not an arithmetic expression: {reason}") from error
    for node in ast.walk(tree):
        _check(node)
    return tree


def _check(node: ast.AST) -> None:
    if not isinstance(node, _GRAMMAR):
        raise BadCall(f"{type(node).__name__} is not arithmetic; use numbers, lists, operators and functions")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
        raise BadCall(f"{shorten(repr(node.value), 80)!r} is not a number; write numbers without quotes")
    if isinstance(node, ast.operator | ast.unaryop | ast.cmpop) and type(node) not in OPERATORS:
        raise BadCall("use + - * / // % ** (a power is 2**3) and comparisons")


def _limit_operator(work: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an operator: numbers only, and no result over MAX_BITS."""

    def call_checked(*operands: object) -> object:
        if not all(isinstance(operand, int | float) for operand in operands):
            raise TypeError("operators take numbers; pick one from a list as in [3, 4][0]")
        return _check_number(work(*operands))

    return call_checked


def _limit_function(work: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of numbers and lists: no result over MAX_BITS."""

    def call_checked(*arguments: Any, **named: Any) -> object:
        return _check_number(work(*arguments, **named))

    return call_checked


def _check_number(value: object) -> object:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError("a number has more than 1,200 digits")
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        raise OverflowError("the result is not a finite real number")
    return value


def _power(base: Number, exponent: Number) -> object:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        if (base.bit_length() - 1) * exponent > MAX_BITS:
            raise OverflowError("the power has more than 1,200 digits")
        if -exponent > MAX_BITS:
            return 0.0
    return base**exponent


def _round(number: Number, ndigits: int | None = None) -> Number:
    if ndigits is not None and abs(ndigits) > MAX_DECIMALS:
        raise TypeError(f"round takes at most {MAX_DECIMALS} decimals")
    return round(number, ndigits)


def _factorial(value: int) -> int:
    if value > MAX_FACTORIAL:
        raise OverflowError(f"factorial takes at most {MAX_FACTORIAL}")
    return math.factorial(value)


def _items(arguments: tuple[Any, ...]) -> list[Number]:
    """Return the numbers of sum(1, 2) as well as of sum([1, 2]). Raises for anything but numbers."""
    items = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list | tuple) else arguments
    if not all(isinstance(item, int | float) for item in items):
        raise TypeError("expected numbers, or one list of numbers")
    return list(items)


def _mean(*arguments: Any) -> float:
    items = _items(arguments)
    return sum(items) / len(items)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "round": _round, "min": min, "max": max, "sum": lambda *numbers: sum(_items(numbers)), "mean": _mean,
    "len": len, "int": lambda value: int(value + 0), "float": lambda value: float(value + 0),
    "floor": math.floor, "ceil": math.ceil, "sqrt": math.sqrt, "pow": _limit_operator(_power), "exp": math.exp,
    "log": math.log, "log10": math.log10, "log2": math.log2, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "atan2": math.atan2,
    "degrees": math.degrees, "radians": math.radians, "hypot": math.hypot, "gcd": math.gcd,
    "lcm": math.lcm, "factorial": _factorial,
}  # fmt: skip
FUNCTIONS = {name: _limit_function(work) for name, work in _FUNCTIONS.items()}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power, ast.UAdd: operator.pos,
    ast.USub: operator.neg, ast.Not: operator.not_, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
OPERATORS = {node: _limit_operator(work) for node, work in _OPERATORS.items()}
NAMES = {"pi": math.pi, "e": math.e}


def _hint(expression: str) -> str:
    if "," in expression and "[" not in expression:
        return "write numbers without thousands separators, and lists in [ ]"
    return "write an expression whose result is one number"

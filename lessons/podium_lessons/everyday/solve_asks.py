"""What comes out of asks, and the grader of it: every ask is done without a pool."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache

from orchestrator.plan import fit_arguments
from podium_lessons.everyday.asks import Ask, quote_results
from podium_lessons.everyday.worker import OPERATIONS, run_operation
from podium_lessons.families.atlas import load_facts
from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.starter.ledger import ledger_database
from trainer.tasks.verifier import ExactText, NumberWithin, OneOf, Verifier

RELATIVE_TOLERANCE = 0.002  # of a figure with decimals: nobody says to how many digits
FACT_LABELS = {  # facts about countries as the family atlas calls them
    "population": "population", "area": "total area", "coastline": "coastline", "median age": "median age",
    "life expectancy": "life expectancy at birth", "mean elevation": "mean elevation",
    "gdp": "GDP (official exchange rate)", "railways": "railway length",
    "electricity consumption": "electricity consumption",
}  # fmt: skip


def solve_asks(asks: Sequence[Ask]) -> JsonValue:
    """What comes out. Raises BadCall or WorkerFault where nothing does."""
    results: dict[int, JsonValue] = {}
    for number, ask in enumerate(asks, start=1):
        parts = quote_results(ask.parts, results)
        results[number] = _SOLVERS.get(ask.work, run_work)(ask.work, parts)
    return results[len(asks)]


def try_solve(asks: Sequence[Ask]) -> JsonValue | None:
    """What comes out; None where nothing does."""
    try:
        return solve_asks(asks)
    except (BadCall, WorkerFault, KeyError):
        return None


def make_verifier(value: JsonValue) -> Verifier:
    """The grader of an answer; figures with decimals may be rounded as people do."""
    if isinstance(value, bool):
        return OneOf(("true", "yes") if value else ("false", "no"))
    if isinstance(value, int | float):
        exact = float(value).is_integer() and abs(value) < 1e15
        return NumberWithin(value, 1e-6 if exact else max(abs(value) * RELATIVE_TOLERANCE, 1e-9))
    return ExactText(str(value))


def run_work(work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    """What one piece of work gives. Raises BadCall or WorkerFault."""
    operation = OPERATIONS[work]
    request = {part: value for part, value in parts.items() if part in operation.parts}
    return run_operation(work, fit_arguments(request, {"properties": operation.parts}))


def _solve_fact(work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    country, fact = str(parts["country"]), str(parts.get("fact", work))
    if fact == "capital":
        return load_facts().capitals[country]
    value = load_facts().values[FACT_LABELS[fact]][country]
    return int(value) if float(value).is_integer() else value


def _solve_revenue(_work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    return _run_select(select_revenue(*(str(parts[part]) for part in ("company", "status", "start", "end"))))


def _solve_rate(_work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    day, currency = parts["day"], parts["currency"]
    return _run_select(f"select rate from fixings where day = '{day}' and currency = '{currency}'")  # noqa: S608


@lru_cache(maxsize=100_000)
def _run_select(query: str) -> JsonValue:
    with closing(sqlite3.connect(ledger_database())) as database:
        row = database.execute(query).fetchone()
    if row is None or row[0] is None:
        raise WorkerFault("no_rows", "nothing fits")
    value: JsonValue = row[0]
    return value


def select_revenue(company: str, status: str, start: str, end: str, region: str = "") -> str:
    """The query for a company's revenue."""
    where = f" and region = '{region}'" if region else ""
    return (
        f"select round(sum(revenue), 2) from sales where company_id = {company}{where} and status = '{status}' "  # noqa: S608
        f"and placed between '{start}' and '{end}'"
    )


_SOLVERS: dict[str, Callable[[str, Mapping[str, JsonValue]], JsonValue]] = {
    **dict.fromkeys(("country_fact", "capital", "population", "area"), _solve_fact),
    "select": lambda _work, parts: _run_select(str(parts["query"])),
    "revenue": _solve_revenue,
    "rate": _solve_rate,
}

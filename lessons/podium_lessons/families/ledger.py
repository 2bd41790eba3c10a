"""Family `ledger`: money questions about synthetic companies, which only the database can answer.

L1: sql -> calculator (2 steps). L2: sql | calendar -> fx_desk -> calculator (4 steps, 2 wide).
L3: sql | sql | calendar -> fx_desk, sum -> calculator (6 steps, 3 wide).

Only the answer is rounded. (The plans ask the database for four decimals, which is what prices in cents,
whole quantities and discounts in per cent can have at most: nothing is lost, and the value reads well.)
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from orchestrator.plan import Step, Turn
from podium_lessons.families.steps import calculate
from podium_lessons.template_suite import TemplateSuite
from pool_registry.starter.ledger import COMPANIES, CURRENCIES, REGIONS, ledger_database
from pool_registry.workers.calendar import last_business_day, quarter
from trainer.tasks.verifier import Verifier, is_near_tie, make_rounded_verifier

DESKS = ("US", "GB", "DE", "JP", "CA", "SE")
GAPS = {
    "company": r"\d{1,5}",
    "other": r"\d{1,5}",
    "region": "|".join(REGIONS),
    "q": "[1-4]",
    "year": "202[2-4]",
    "percent": r"\d{1,2}",
    "currency": "|".join(CURRENCIES),
    "desk": "|".join(DESKS),
}


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """Everything a ledger query says; what a level does not ask for is empty."""

    level: int
    template: int
    companies: tuple[int, ...]
    region: str
    q: int
    year: int
    percent: int = 0
    currency: str = ""
    desk: str = ""


class Ledger(TemplateSuite[LedgerQuery]):
    name = "ledger"
    description = "Revenue of companies from a database, fixings of a currency desk, business days."
    workers = ("sql", "calendar", "fx_desk", "calculator")
    gap_patterns = GAPS

    def draw(self, level: int, split: str, random: Random) -> LedgerQuery:
        companies = random.sample(COMPANIES[split], 2 if level == 3 else 1)
        return LedgerQuery(
            level=level,
            template=self.wordings[level, ""].draw(split, random),
            companies=tuple(companies),
            region=random.choice(REGIONS),
            q=random.randint(1, 4),
            year=random.randint(2022, 2024),
            percent=random.randint(1, 40) if level == 1 else 0,
            currency=random.choice(sorted(CURRENCIES)) if level > 1 else "",
            desk=random.choice(DESKS) if level > 1 else "",
        )

    def write(self, parameters: LedgerQuery) -> str:
        p = parameters
        return self.template_of(p).fill(
            company=p.companies[0],
            other=p.companies[-1],
            region=p.region,
            q=p.q,
            year=p.year,
            percent=p.percent,
            currency=p.currency,
            desk=p.desk,
        )

    def read(self, query: str) -> LedgerQuery | None:
        match = self.match(query)
        if match is None:
            return None
        (level, _), number, gaps = match
        return LedgerQuery(
            level=level,
            template=number,
            companies=tuple(int(gaps[key]) for key in ("company", "other") if key in gaps),
            region=gaps["region"].lower(),
            q=int(gaps["q"]),
            year=int(gaps["year"]),
            percent=int(gaps.get("percent", 0)),
            currency=gaps.get("currency", "").upper(),
            desk=gaps.get("desk", "").upper(),
        )

    def solve(self, parameters: LedgerQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        first, last = quarter(p.q, p.year)
        revenues = [_compute_revenue(company, p.region, first.isoformat(), last.isoformat()) for company in p.companies]
        if any(revenue is None for revenue in revenues):
            return None
        total = sum(revenue for revenue in revenues if revenue is not None)
        if p.level == 1:
            value = total * p.percent / 100
        else:
            day = last_business_day(first, last, p.desk).isoformat()
            value = total * _read_fixing(day, p.currency)
        return None if is_near_tie(value, 2) else (make_rounded_verifier(value, 2), _make_plan(p))


def _make_plan(p: LedgerQuery) -> Turn:
    sqls = [
        Step(k, "sql", {"query": _select(p, company)}, need="figures of the company database")
        for k, company in enumerate(p.companies, start=1)
    ]
    if p.level == 1:
        return Turn((*sqls, calculate(2, f"round($1*{p.percent}/100, 2)", [1])), "$2")
    day = len(sqls) + 1
    request = f"last business day of Q{p.q} {p.year} in {p.desk}"
    calendar = Step(day, "calendar", {"request": request}, need="business day of a period")
    fixing = Step(day + 1, "fx_desk", {"day": f"${day}", "currency": p.currency}, (day,), need="exchange rate on a day")
    if p.level == 2:
        total = calculate(4, "round($1*$3, 2)", [1, 3])
        return Turn((*sqls, calendar, fixing, total), "$4")
    both = calculate(5, "$1+$2", [1, 2])
    return Turn((*sqls, calendar, fixing, both, calculate(6, "round($5*$4, 2)", [4, 5])), "$6")


def _select(p: LedgerQuery, company: int) -> str:
    first, last = quarter(p.q, p.year)
    return (
        f"select round(sum(revenue), 4) from sales where company_id = {company} and region = '{p.region}' "  # noqa: S608
        f"and status = 'paid' and placed between '{first}' and '{last}'"
    )


@lru_cache(maxsize=100_000)
def _compute_revenue(company: int, region: str, first: str, last: str) -> float | None:
    """Compute paid revenue straight from the tables; None without any."""
    query = """SELECT i.qty, p.unit_price, i.discount FROM orders o
        JOIN customers c ON c.id = o.customer_id JOIN items i ON i.order_id = o.id
        JOIN products p ON p.id = i.product_id
        WHERE o.company_id = ? AND c.region = ? AND o.status = 'paid' AND o.placed >= ? AND o.placed <= ?"""
    with closing(sqlite3.connect(ledger_database())) as database:
        rows = database.execute(query, (company, region, first, last)).fetchall()
    return sum(quantity * price * (1 - discount) for quantity, price, discount in rows) if rows else None


@lru_cache(maxsize=100_000)
def _read_fixing(day: str, currency: str) -> float:
    with closing(sqlite3.connect(ledger_database())) as database:
        cursor = database.execute("SELECT rate FROM fixings WHERE day = ? AND currency = ?", (day, currency))
        return float(cursor.fetchone()[0])

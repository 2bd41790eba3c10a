"""Family `ledger`: money questions about synthetic companies, which only the database can answer.

L1: sql -> calculator (2 steps). L2: sql | calendar -> fx_desk -> calculator (4 steps, 2 wide).
L3: sql | sql | calendar -> fx_desk, sum -> calculator (6 steps, 3 wide).

Only the answer is rounded. (The plans ask the database for four decimals, which is what prices in cents,
whole quantities and discounts in per cent can have at most: nothing is lost, and the value reads well.)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from orchestrator.plan import Step, Turn
from pool_registry.starter.ledger import COMPANIES, CURRENCIES, REGIONS, ledger_database
from pool_registry.workers.calendar import last_business_day, quarter
from trainer.tasks.suite import Suite
from trainer.tasks.verifier import Verifier, near_tie, to_digits
from trainer.tasks.wordings import matched, templates

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
_REVENUE = "paid sales revenue (net of item discounts"
TEMPLATES = {
    level: templates(texts, GAPS)
    for level, texts in {
        1: (
            "[Work out|Compute|Calculate] {percent}% of the paid sales revenue, net of item discounts, that company "
            "{company} [made|booked|earned] [in Q{q} {year} from the {region} region|from the {region} region in Q{q} "
            "{year}], in US dollars [to the cent|with cents].",
            f"For Q{{q}} {{year}} and the {{region}} region, [what does|how much does] {{percent}}% of company "
            f"{{company}}'s {_REVENUE}) [come to|amount to] in US dollars, to the cent?",
            f"[A bonus|A commission|A levy] of {{percent}}% is [due|owed] on [the {_REVENUE}) of company {{company}}|"
            f"company {{company}}'s {_REVENUE})] in the {{region}} region [for|in] Q{{q}} {{year}}. How many US "
            "dollars is it, to the cent?",
            f"Region {{region}}, Q{{q}} {{year}}, company {{company}}: [give|tell me|report] {{percent}}% of its "
            f"{_REVENUE}), in US dollars [to|down to] the cent.",
            f"Company {{company}} gives back {{percent}}% of its {_REVENUE}) from the {{region}} region in "
            "Q{q} {year}. How many US dollars is that, to the cent?",
            f"What is {{percent}}% of company {{company}}'s {_REVENUE}) from the {{region}} region in Q{{q}} "
            "{year}, in US dollars to the cent?",
            f"The {{region}} region's rebate at company {{company}} is {{percent}}% of the quarter's {_REVENUE}). "
            "Work it out for Q{q} {year}, in US dollars to the cent.",
        ),
        2: (
            f"[What is|How much is] company {{company}}'s {_REVENUE}, in USD) from the {{region}} region in Q{{q}} "
            "{year} in {currency}, [using|with] the desk's fixing for the last business day of [that|the] quarter in "
            "{desk}? [Round to|Give] two decimals.",
            f"For Q{{q}} {{year}} and the {{region}} region, [turn|translate] the {_REVENUE}, in USD) of company "
            "{company} into {currency}; [use|take] the desk's fixing of the quarter's last business day in {desk} and "
            "[round to|give] two decimals.",
            f"[In|Stated in|Measured in] {{currency}}, to two decimals, [how much|what] {_REVENUE}, in USD) did "
            "company {company} [make|earn|book] from the {region} region in Q{q} {year}? [Use|Apply|Take] the desk's "
            "fixing for the last business day of that quarter in {desk}.",
            "The desk fixes {currency} on the last business day of [the|a] quarter in {desk}. At that fixing, "
            f"[give|state|report] company {{company}}'s {_REVENUE}, in USD) for the {{region}} region and Q{{q}} "
            "{year} in that currency, to two decimals.",
            f"Take company {{company}}'s {_REVENUE}, in USD) from the {{region}} region in Q{{q}} {{year}}, and "
            "convert it to {currency} at the desk's fixing for the last business day of that quarter in {desk}, "
            "rounded to two decimals.",
            f"Express company {{company}}'s {_REVENUE}, in USD) from the {{region}} region in Q{{q}} {{year}} in "
            "{currency}, at the desk's fixing for the last business day of that quarter in {desk}, to two decimals.",
            f"In Q{{q}} {{year}} company {{company}} had {_REVENUE}, in USD) in the {{region}} region. How much is "
            "that in {currency} at the desk's fixing for the quarter's last business day in {desk}, to two decimals?",
        ),
        3: (
            f"[What is|How much is] the [combined|joint|total] {_REVENUE}, in USD) of companies {{company}} and "
            "{other} [from|in] the {region} region in Q{q} {year}, [converted to|expressed in] {currency} at the "
            "desk's fixing for the last business day of that quarter in {desk}? [Round to|Give] two decimals.",
            f"For Q{{q}} {{year}} and the {{region}} region, [put together|join] the {_REVENUE}, in USD) of company "
            "{company} and that of company {other}, then turn it into {currency}; [use|take] the desk's fixing for "
            "the quarter's last business day in {desk} and [round to|give] two decimals.",
            f"Company {{company}} and company {{other}} [share|pool] the {_REVENUE}, in USD) [they made|made] in the "
            "{region} region in Q{q} {year}. [Express|State|Report] the total in {currency}, to two decimals, at the "
            "desk's fixing for the last business day of that quarter in {desk}.",
            "In {currency}, to two decimals: [what do|how much do] companies {company} and {other} [come to|reach] "
            f"together in {_REVENUE}, in USD) from the {{region}} region in Q{{q}} {{year}}? [Use|Apply] the desk's "
            "fixing for the last business day of that quarter in {desk}.",
            f"Add the {_REVENUE}, in USD) of companies {{company}} and {{other}} from the {{region}} region in "
            "Q{q} {year}, and convert the sum to {currency} at the desk's fixing for the last business day of "
            "that quarter in {desk}, rounded to two decimals.",
            f"Companies {{company}} and {{other}} merge their {_REVENUE}, in USD) from the {{region}} region in "
            "Q{q} {year}. How much is that in {currency}, at the desk's fixing for the last business day of "
            "that quarter in {desk}, to two decimals?",
            f"Company {{company}} takes over company {{other}}. Sum up both companies' {_REVENUE}, in USD) from the "
            "{region} region in Q{q} {year} and give it in {currency} to two decimals, at the desk's fixing for the "
            "quarter's last business day in {desk}.",
        ),
    }.items()
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


class Ledger(Suite[LedgerQuery]):
    name = "ledger"
    description = "Revenue of companies from a database, fixings of a currency desk, business days."
    workers = ("sql", "calendar", "fx_desk", "calculator")

    def draw(self, level: int, split: str, random: Random) -> LedgerQuery:
        companies = random.sample(COMPANIES[split], 2 if level == 3 else 1)
        return LedgerQuery(
            level=level,
            template=TEMPLATES[level].draw(split, random),
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
        return TEMPLATES[p.level][p.template].fill(
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
        found = matched(TEMPLATES, query)
        if found is None:
            return None
        level, number, said = found
        return LedgerQuery(
            level=level,
            template=number,
            companies=tuple(int(said[key]) for key in ("company", "other") if key in said),
            region=said["region"].lower(),
            q=int(said["q"]),
            year=int(said["year"]),
            percent=int(said.get("percent", 0)),
            currency=said.get("currency", "").upper(),
            desk=said.get("desk", "").upper(),
        )

    def level_of(self, parameters: LedgerQuery) -> int:
        return parameters.level

    def new_words(self, parameters: LedgerQuery) -> bool:
        return TEMPLATES[parameters.level].held_out(parameters.template)

    def solve(self, parameters: LedgerQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        first, last = quarter(p.q, p.year)
        revenues = [_revenue(company, p.region, first.isoformat(), last.isoformat()) for company in p.companies]
        if any(revenue is None for revenue in revenues):
            return None
        total = sum(revenue for revenue in revenues if revenue is not None)
        if p.level == 1:
            value = total * p.percent / 100
        else:
            day = last_business_day(first, last, p.desk).isoformat()
            value = total * _fixing(day, p.currency)
        return None if near_tie(value, 2) else (to_digits(value, 2), _plan(p))


def _plan(p: LedgerQuery) -> Turn:
    sqls = [Step(k, "sql", {"query": _select(p, company)}) for k, company in enumerate(p.companies, start=1)]
    if p.level == 1:
        return Turn((*sqls, _calculate(2, f"round($1*{p.percent}/100, 2)", [1])), "$2")
    day = len(sqls) + 1
    request = f"last business day of Q{p.q} {p.year} in {p.desk}"
    calendar = Step(day, "calendar", {"request": request})
    fixing = Step(day + 1, "fx_desk", {"day": f"${day}", "currency": p.currency}, (day,))
    if p.level == 2:
        total = _calculate(4, "round($1*$3, 2)", [1, 3])
        return Turn((*sqls, calendar, fixing, total), "$4")
    both = _calculate(5, "$1+$2", [1, 2])
    return Turn((*sqls, calendar, fixing, both, _calculate(6, "round($5*$4, 2)", [4, 5])), "$6")


def _select(p: LedgerQuery, company: int) -> str:
    first, last = quarter(p.q, p.year)
    return (
        f"select round(sum(revenue), 4) from sales where company_id = {company} and region = '{p.region}' "  # noqa: S608
        f"and status = 'paid' and placed between '{first}' and '{last}'"
    )


def _calculate(step: int, expression: str, access: Sequence[int]) -> Step:
    return Step(step, "calculator", {"expression": expression}, tuple(access))


@lru_cache(maxsize=100_000)
def _revenue(company: int, region: str, first: str, last: str) -> float | None:
    """Paid revenue straight from the tables; None without any."""
    query = """SELECT i.qty, p.unit_price, i.discount FROM orders o
        JOIN customers c ON c.id = o.customer_id JOIN items i ON i.order_id = o.id
        JOIN products p ON p.id = i.product_id
        WHERE o.company_id = ? AND c.region = ? AND o.status = 'paid' AND o.placed >= ? AND o.placed <= ?"""
    with closing(sqlite3.connect(ledger_database())) as database:
        rows = database.execute(query, (company, region, first, last)).fetchall()
    return sum(quantity * price * (1 - discount) for quantity, price, discount in rows) if rows else None


@lru_cache(maxsize=100_000)
def _fixing(day: str, currency: str) -> float:
    with closing(sqlite3.connect(ledger_database())) as database:
        found = database.execute("SELECT rate FROM fixings WHERE day = ? AND currency = ?", (day, currency))
        return float(found.fetchone()[0])

"""Questions about money in the ledger: the sales of a company, and exchange rates."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from podium_lessons.everyday.asks import Ask, evaluate
from podium_lessons.everyday.everyday_data import load_ledger
from podium_lessons.everyday.questions.dates import MONTHS, draw_day, write_day
from podium_lessons.everyday.questions.question import EverydayQuestion, choose_bank, choose_text
from podium_lessons.everyday.solve_asks import select_revenue
from pool_registry.starter.ledger import COMPANIES, REGIONS
from pool_registry.workers.calendar import quarter

STATUS_WORDS = ("paid", "open", "returned")


def draw_company(split: str, random: Random) -> EverydayQuestion:
    """The sales of a company in a span of time."""
    bank = choose_bank(load_ledger().company, random)
    company, region = random.choice(COMPANIES[split]), random.choice(REGIONS)
    status = random.choice(STATUS_WORDS) if bank.asks == "revenue" else random.choice(("paid", "paid", *STATUS_WORDS))
    span, start, end = draw_span(random)
    percent = random.randint(2, 60)
    other = random.choice([number for number in COMPANIES[split] if number != company])
    before, year = random.choice(((2022, 2023), (2023, 2024)))
    revenue = ask_revenue(company, status, start, end)
    other_revenue = ask_revenue(other, status, start, end)
    years = tuple(ask_revenue(company, status, f"{number}-01-01", f"{number}-12-31") for number in (year, before))
    where = f"from sales where company_id = {company} and placed between '{start}' and '{end}'"
    asks: dict[str, tuple[Ask, ...]] = {
        "revenue": (revenue,),
        "region_revenue": (Ask("select", {"query": select_revenue(str(company), status, start, end, region)}),),
        "two_companies": (revenue, other_revenue, evaluate("$1 + $2")),
        "company_gap": (revenue, other_revenue, evaluate("$1 - $2")),
        "change": (*years, evaluate("$1 - $2")),
        "orders": (Ask("select", {"query": f"select count(*) {where}"}),),
        "best_region": (
            Ask("select", {"query": f"select region {where} group by region order by sum(revenue) desc limit 1"}),
        ),
        "revenue_share": (
            revenue,
            Ask("percent_of", {"percent": percent, "whole": "$1"}, (evaluate(f"$1 * {percent} / 100"),)),
        ),
    }
    gaps = {
        "company": str(company), "other": str(other), "region": region, "status": status, "span": span,
        "n": str(percent), "year": str(year), "before": str(before),
    }  # fmt: skip
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def ask_revenue(company: int, status: str, start: str, end: str) -> Ask:
    select = Ask("select", {"query": select_revenue(str(company), status, start, end)})
    return Ask("revenue", {"company": str(company), "status": status, "start": start, "end": end}, (select,))


def draw_span(random: Random) -> tuple[str, str, str]:
    """A year, a quarter or a month: its name, its first day and its last."""
    year = random.randint(2022, 2024)
    kind = random.randrange(3)
    if kind == 0:
        return str(year), f"{year}-01-01", f"{year}-12-31"
    if kind == 1:
        number = random.randint(1, 4)
        first, last = quarter(number, year)
        name = random.choice((f"Q{number} {year}", f"quarter {number} of {year}"))
        return name, first.isoformat(), last.isoformat()
    month = random.randint(1, 12)
    following = date(year + month // 12, month % 12 + 1, 1)
    return f"{MONTHS[month - 1]} {year}", f"{year}-{month:02}-01", (following - timedelta(days=1)).isoformat()


def draw_exchange(split: str, random: Random) -> EverydayQuestion:
    """An exchange rate of a day, or an amount by it."""
    bank = choose_bank(load_ledger().exchange, random)
    day = draw_day(random, 2022, 2024)
    currency = random.choice(sorted(load_ledger().currencies))
    name, plural = load_ledger().currencies[currency]
    number = random.choice((random.randint(2, 99), 10 * random.randint(5, 90), 100 * random.randint(5, 90)))
    rate = Ask("rate", {"day": day.isoformat(), "currency": currency})
    asks = {
        "rate": (rate,),
        "from_dollars": (rate, evaluate(f"{number} * $1")),
        "to_dollars": (rate, evaluate(f"{number} / $1")),
    }
    gaps = {"start": write_day(day, random), "currency": currency, "name": name, "plural": plural, "n": str(number)}
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks])

"""Questions that combine two kinds of work: a holiday's weekday, an elevation in metres, a revenue in another currency,
a sum with a conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random

from podium_lessons.everyday.asks import Ask, add_days, convert_units, evaluate, find_fact
from podium_lessons.everyday.everyday_data import load_combined, load_dates, load_ledger, load_units
from podium_lessons.everyday.questions.companies import STATUS_WORDS, ask_revenue, draw_span
from podium_lessons.everyday.questions.countries import FACT_WORDS, list_countries
from podium_lessons.everyday.questions.dates import draw_day, draw_period, write_day
from podium_lessons.everyday.questions.places import draw_places, list_codes
from podium_lessons.everyday.questions.question import EverydayQuestion, choose_bank, choose_text
from podium_lessons.everyday.solve_asks import run_work
from pool_registry.starter.ledger import COMPANIES

DIVIDED_FACTS = ("area", "gdp", "population", "coastline", "electricity consumption")


# What the gaps of a text hold, and the asks that a question about it may be.
Drawn = tuple[Mapping[str, str], Mapping[str, tuple[Ask, ...]]]


def draw_combination(split: str, random: Random) -> EverydayQuestion:
    """A question of two kinds of work."""
    subjects = load_combined().combined
    subject = random.choices(list(subjects), list(map(len, subjects.values())))[0]
    bank = choose_bank(subjects[subject], random)
    gaps, asks = _DRAWS[subject](split, random)
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _draw_airports(_split: str, random: Random) -> Drawn:
    code, other = sorted(random.sample(sorted(set(list_codes())), 2), key=_find_elevation, reverse=True)
    elevations = [Ask("airport_fact", {"place": place, "fact": "elevation"}) for place in (code, other)]
    return {"code": code, "other_code": other}, {
        "elevation_in_metres": (elevations[0], convert_units("$1", "feet", "meters")),
        "elevation_gap": (*elevations, evaluate("$1 - $2")),
    }


def _find_elevation(code: str) -> float:
    """In feet; 0 where it is not known."""
    return float(str(run_work("airport_fact", {"place": code, "fact": "elevation"}) or 0))


def _draw_companies(split: str, random: Random) -> Drawn:
    company, status = random.choice(COMPANIES[split]), random.choice(STATUS_WORDS)
    before, year = random.choice(((2022, 2023), (2023, 2024)))
    span, start, end = draw_span(random)
    day = draw_day(random, 2022, 2024)
    currency, other = random.sample(sorted(load_ledger().currencies), 2)
    amount = 10 * random.randint(2, 90)
    rates = [Ask("rate", {"day": day.isoformat(), "currency": code}) for code in (currency, other)]
    now, then = (ask_revenue(company, status, f"{number}-01-01", f"{number}-12-31") for number in (year, before))
    gaps = {
        "company": str(company), "status": status, "span": span, "year": str(year), "before": str(before),
        "day": write_day(day, random), "n": str(amount), "currency": currency, "other_currency": other,
        "plural": load_ledger().currencies[currency][1], "other_plural": load_ledger().currencies[other][1],
    }  # fmt: skip
    return gaps, {
        "revenue_per_month": (now, evaluate("$1 / 12")),
        "revenue_change_percent": (now, then, evaluate("($1 - $2) / $2 * 100")),
        "revenue_in_currency": (ask_revenue(company, status, start, end), rates[0], evaluate("$1 * $2")),
        "cross_rate": (rates[1], rates[0], evaluate(f"{amount} / $1 * $2")),
    }


def _draw_days(_split: str, random: Random) -> Drawn:
    start = draw_day(random)
    days, price = random.randint(5, 60), random.randint(5, 300)
    end = start + timedelta(days=days)
    code = random.choice(sorted(load_dates().holiday_countries))
    period, which = draw_period(random), random.choice(("first", "last"))
    day, last = start.isoformat(), end.isoformat()
    holiday = Ask("next_holiday", {"date": day, "country": code})
    span = Ask("days_between", {"start": day, "end": last})
    workdays = Ask("business_days", {"start": day, "end": last, "country": code})
    style = random.getrandbits(30)
    gaps = {
        "start": write_day(start, Random(style)),  # noqa: S311  both dates in one style
        "end": write_day(end, Random(style)),  # noqa: S311
        "country": random.choice((*load_dates().holiday_countries[code], code)),
        "period": period, "which": which, "n": str(days), "a": str(price),
    }  # fmt: skip
    return gaps, {
        "holiday_weekday": (holiday, Ask("weekday", {"date": "$1"})),
        "days_to_holiday": (holiday, Ask("days_between", {"start": day, "end": "$1"})),
        "business_pay": (workdays, evaluate(f"$1 * {price}")),
        "price_of_days": (span, evaluate(f"$1 * {price}")),
        "weeks_between": (span, evaluate("$1 / 7")),
        "saved_per_week": (span, evaluate(f"$1 / 7 * {price}")),
        "edge_weekday": (
            Ask("edge_business_day", {"which": which, "period": period, "country": code}),
            Ask("weekday", {"date": "$1"}),
        ),
        "is_holiday_after": (add_days(day, days), Ask("is_holiday", {"date": "$1", "country": code})),
    }


def _draw_distances(_split: str, random: Random) -> Drawn:
    origin, destination = draw_places(2, random)
    litres, percent, parts, speed = (
        random.randint(3, 900), random.randint(2, 95), random.randint(2, 14), 10 * random.randint(20, 95),
    )  # fmt: skip
    route = Ask("distance", {"origin": origin, "destination": destination})
    gaps = {
        "origin": origin, "destination": destination,
        "a": str(litres), "p": str(percent), "t": str(parts), "n": str(speed),
    }  # fmt: skip
    return gaps, {
        "distance_fuel": (route, evaluate(f"$1 * {litres} / 100")),
        "flight_minutes": (route, evaluate(f"$1 / {speed} * 60")),
        "distance_share": (route, evaluate(f"$1 * {percent} / 100")),
        "distance_split": (route, evaluate(f"$1 / {parts}")),
    }


def _draw_countries(_split: str, random: Random) -> Drawn:
    fact = random.choice(DIVIDED_FACTS)
    country = random.choice([name for name in list_countries(fact) if name in list_countries("population")])
    percent, parts = random.randint(2, 40), random.randint(2, 30)
    gaps = {"country": country, "fact": random.choice(FACT_WORDS[fact]), "p": str(percent), "t": str(parts)}
    return gaps, {
        "fact_growth": (find_fact(country, "population"), evaluate(f"$1 * (1 + {percent} / 100)")),
        "fact_divided": (find_fact(country, fact), evaluate(f"$1 / {parts}")),
    }


def _draw_molecules(_split: str, random: Random) -> Drawn:
    formula, other = random.sample(load_units().formulas, 2)
    moles = random.randint(2, 900)
    masses = tuple(Ask("molar_mass", {"formula": name}) for name in (formula, other))
    return {"formula": formula, "other": other, "n": str(moles)}, {
        "kilos_of_moles": (masses[0], evaluate(f"$1 * {moles} / 1000")),
        "mass_of_two": (*masses, evaluate("$1 + $2")),
    }


def _draw_measures(_split: str, random: Random) -> Drawn:
    group = random.choice(load_units().units.groups)
    source, target = (random.choice(unit) for unit in random.sample(group.units, 2))
    b, a = sorted(random.sample(range(2, 90), 2))
    price = random.randint(2, 60)
    return {"a": str(a), "b": str(b), "p": str(price), "from": source, "to": target}, {
        "converted_sum": (evaluate(f"{a} * {b}"), convert_units("$1", source, target)),
        "sum_of_units": (convert_units(a, source, target), evaluate(f"$1 + {b}")),
        "price_per_unit": (convert_units(a, source, target), evaluate(f"$1 * {price}")),
        "converted_share": (convert_units(a, source, target), evaluate(f"$1 / {b}")),
        "converted_total": (evaluate(f"{a} + {b}"), convert_units("$1", source, target)),
        "converted_rest": (evaluate(f"{a} - {b}"), convert_units("$1", source, target)),
    }


_DRAWS: Mapping[str, Callable[[str, Random], Drawn]] = {
    "airports": _draw_airports, "companies": _draw_companies, "days": _draw_days, "distances": _draw_distances,
    "countries": _draw_countries, "molecules": _draw_molecules, "measures": _draw_measures,
}  # fmt: skip

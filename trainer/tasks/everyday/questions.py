"""Everyday questions: drawn figures and names in drawn words, with what has to be done and what comes out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from random import Random
from typing import TypeVar

from orchestrator.plan import fit_arguments
from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.starter.ledger import COMPANIES, REGIONS, ledger_database
from pool_registry.starter.workers.airports import airports, list_cities
from pool_registry.workers.calendar import quarter
from trainer.tasks.everyday.asks import Ask, convert_units, evaluate, find_fact, quote_results
from trainer.tasks.everyday.everyday_data import TextBank, choose_texts, load_everyday
from trainer.tasks.everyday.worker import OPERATIONS, run_operation
from trainer.tasks.families.atlas import load_facts
from trainer.tasks.verifier import ExactText, NumberWithin, OneOf, Verifier
from trainer.tasks.wordings import expand_choices

RELATIVE_TOLERANCE = 0.002  # of a figure with decimals: nobody says to how many digits
LABELS = {  # facts about countries as the family atlas calls them
    "population": "population", "area": "total area", "coastline": "coastline", "median age": "median age",
    "life expectancy": "life expectancy at birth", "mean elevation": "mean elevation",
    "gdp": "GDP (official exchange rate)", "railways": "railway length",
    "electricity consumption": "electricity consumption",
}  # fmt: skip
FACT_WORDS = {
    "population": ("population",), "area": ("area", "total area", "size"), "coastline": ("coastline",),
    "gdp": ("GDP",), "railways": ("railway length", "rail network"), "median age": ("median age",),
    "electricity consumption": ("electricity consumption",), "life expectancy": ("life expectancy",),
    "mean elevation": ("mean elevation",),
}  # fmt: skip
FACT_UNITS = {
    "area": ("square kilometers", ("acres", "hectares", "square miles")),
    "coastline": ("km", ("miles", "nautical miles")),
    "railways": ("km", ("miles",)),
    "mean elevation": ("meters", ("feet", "yards")),
}
STATUS_WORDS = ("paid", "open", "returned")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EverydayQuestion:
    """A text with named gaps and what stands in them, what has to be done, and whether the names may be written in
    small letters, too."""

    text: str
    gaps: Mapping[str, str]
    asks: tuple[Ask, ...]
    small_letters: bool = False


Draw = Callable[[str, Random], EverydayQuestion]


def draw_question(split: str, random: Random) -> EverydayQuestion:
    """A question of any kind in this split's words."""
    draws, weights = zip(*_DRAWS, strict=True)
    draw: Draw = random.choices(draws, weights)[0]
    return draw(split, random)


def solve_asks(asks: Sequence[Ask]) -> JsonValue:
    """What comes out. Raises BadCall or WorkerFault where nothing does."""
    results: dict[int, JsonValue] = {}
    for number, ask in enumerate(asks, start=1):
        parts = quote_results(ask.parts, results)
        results[number] = _SOLVERS.get(ask.work, _run)(ask.work, parts)
    return results[len(asks)]


def make_verifier(value: JsonValue) -> Verifier:
    """The grader of an answer; figures with decimals may be rounded as people do."""
    if isinstance(value, bool):
        return OneOf(("true", "yes") if value else ("false", "no"))
    if isinstance(value, int | float):
        exact = float(value).is_integer() and abs(value) < 1e15
        return NumberWithin(value, 1e-6 if exact else max(abs(value) * RELATIVE_TOLERANCE, 1e-9))
    return ExactText(str(value))


def try_solve(question: EverydayQuestion) -> JsonValue | None:
    """What comes out; None where nothing does."""
    try:
        return solve_asks(question.asks)
    except (BadCall, WorkerFault, KeyError):
        return None


def _run(work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    schema = {"properties": OPERATIONS[work].parts}
    return run_operation(work, fit_arguments(parts, schema))


def _solve_fact(work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    country, fact = str(parts["country"]), str(parts.get("fact", work))
    if fact == "capital":
        return load_facts().capitals[country]
    value = load_facts().values[LABELS[fact]][country]
    return int(value) if float(value).is_integer() else value


@lru_cache(maxsize=100_000)
def _run_select(query: str) -> JsonValue:
    with closing(sqlite3.connect(ledger_database())) as database:
        row = database.execute(query).fetchone()
    if row is None or row[0] is None:
        raise WorkerFault("no_rows", "nothing fits")
    value: JsonValue = row[0]
    return value


def _solve_revenue(_work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    return _run_select(select_revenue(*(str(parts[part]) for part in ("company", "status", "start", "end"))))


def _solve_rate(_work: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    day, currency = parts["day"], parts["currency"]
    return _run_select(f"select rate from fixings where day = '{day}' and currency = '{currency}'")  # noqa: S608


_SOLVERS: dict[str, Callable[[str, Mapping[str, JsonValue]], JsonValue]] = {
    **dict.fromkeys(("country_fact", "capital", "population", "area"), _solve_fact),
    "select": lambda _work, parts: _run_select(str(parts["query"])),
    "revenue": _solve_revenue,
    "rate": _solve_rate,
}


def select_revenue(company: str, status: str, start: str, end: str, region: str = "") -> str:
    """The query for a company's revenue."""
    where = f" and region = '{region}'" if region else ""
    return (
        f"select round(sum(revenue), 2) from sales where company_id = {company}{where} and status = '{status}' "  # noqa: S608
        f"and placed between '{start}' and '{end}'"
    )


def _choose_bank(banks: Sequence[T], random: Random) -> T:
    weights = [bank.weight if isinstance(bank, TextBank) else 1 for bank in banks]
    return random.choices(banks, weights)[0]


def _choose_text(texts: tuple[str, ...], split: str, random: Random) -> str:
    return random.choice(_list_wordings(random.choice(choose_texts(texts, split))))


@cache
def _list_wordings(text: str) -> list[str]:
    return expand_choices(text)


def _draw_sum(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().sums, random)
    gaps = {gap: _draw_figure(span, random) for gap, span in bank.gaps.items()}
    ask = evaluate(bank.expression.format(**gaps))
    if bank.tool is not None:
        parts = {part: _as_number(gaps[gap]) for part, gap in bank.tool.parts.items()}
        ask = Ask(bank.tool.work, parts, (ask,))
    elif bank.name in _OPERATIONS:
        parts = {"first": _as_number(gaps["a"]), "operation": _OPERATIONS[bank.name], "second": _as_number(gaps["b"])}
        ask = Ask("arithmetic", parts, (ask,))
    text = _choose_text(bank.texts, split, random)
    return EverydayQuestion(text, {gap: _group_digits(figure, random) for gap, figure in gaps.items()}, (ask,))


_OPERATIONS = {
    "product": "multiply", "sum_of_two": "add", "difference": "subtract", "quotient": "divide", "boxes": "multiply",
    "shared": "divide", "rectangle": "multiply",
}  # fmt: skip


def _draw_figure(span: tuple[int, ...], random: Random) -> str:
    low, high, *decimals = span
    if decimals:
        return f"{random.uniform(low, high):.{random.choice((0, decimals[0]))}f}"
    return str(random.randint(low, random.choice((high, max(low, high // 10))) if high > 99 else high))


def _as_number(figure: str) -> JsonValue:
    return float(figure) if "." in figure else int(figure)


def _group_digits(figure: str, random: Random) -> str:
    """A large figure with a thousands separator, now and then."""
    return f"{int(figure):,}" if figure.isdigit() and int(figure) > 999 and random.random() < 0.15 else figure


def _draw_list(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().lists, random)
    top = random.choice((20, 100, 1000))
    figures = [str(random.randint(1, top)) for _ in range(random.randint(3, 6))]
    if random.random() < 0.2:
        figures = [f"{random.uniform(1, top):.{random.choice((1, 2))}f}" for _ in figures]
    total = " + ".join(figures)
    expression = total if bank.work == "sum" else f"({total}) / {len(figures)}"
    ask = Ask(bank.work, {"numbers": [_as_number(figure) for figure in figures]}, (evaluate(expression),))
    last = random.choice((" and ", ", ", " and "))
    written = ", ".join(figures[:-1]) + last + figures[-1]
    return EverydayQuestion(_choose_text(bank.texts, split, random), {"list": written}, (ask,))


def _draw_units(split: str, random: Random) -> EverydayQuestion:
    group = random.choice(load_everyday().units.groups)
    source, target = (random.choice(unit) for unit in random.sample(group.units, 2))
    low, high = group.range
    value = str(random.randint(low, random.choice((high, max(low + 9, high // 10)))))
    if random.random() < 0.2:
        value += random.choice((".5", ".25", ".2"))
    text = _choose_text(load_everyday().units.texts, split, random)
    ask = convert_units(_as_number(value), source, target)
    return EverydayQuestion(text, {"v": _group_digits(value, random), "from": source, "to": target}, (ask,))


def _draw_temperature(split: str, random: Random) -> EverydayQuestion:
    source, target = (random.choice(unit) for unit in random.sample(load_everyday().units.temperatures, 2))
    value = random.randint(0 if source.startswith("K") else -40, 400)
    text = _choose_text(load_everyday().units.temperature_texts, split, random)
    ask = convert_units(value, source, target)
    return EverydayQuestion(text, {"v": str(value), "from": source, "to": target}, (ask,))


def _draw_day(random: Random, first: int = 2020, last: int = 2030) -> date:
    return date(first, 1, 1) + timedelta(days=random.randrange(366 * (last - first + 1) - 8))


def write_day(day: date, random: Random) -> str:
    """A date as people write it."""
    month = MONTHS[day.month - 1]
    return random.choices(
        (
            day.isoformat(),
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month} {day.year}",
            f"{month[:3]} {day.day}, {day.year}",
            f"{day.day} {month[:3]} {day.year}",
        ),
        (10, 4, 4, 1, 1),
    )[0]


def _draw_dates(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().dates, random)
    start = _draw_day(random)
    days = random.choice((random.randint(1, 30), random.randint(5, 400), 7 * random.randint(1, 20)))
    if bank.asks == "business_days":
        days = random.randint(5, 60)
    end = start + timedelta(days=days)
    code = random.choice(sorted(load_everyday().holiday_countries))
    country = random.choice((*load_everyday().holiday_countries[code], code))
    period = _draw_period(random)
    which = random.choice(("first", "last"))
    day = start.isoformat()
    if bank.asks == "is_holiday" and random.random() < 0.5:
        day = str(_run("next_holiday", {"date": day, "country": code}))
        start = date.fromisoformat(day)
    asks: dict[str, tuple[Ask, ...]] = {
        "days_between": (Ask("days_between", {"start": day, "end": end.isoformat()}),),
        "add_days": (Ask("add_days", {"date": day, "days": days}),),
        "subtract_days": (
            Ask("subtract_days", {"date": day, "days": days}, (Ask("add_days", {"date": day, "days": -days}),)),
        ),
        "weekday": (Ask("weekday", {"date": day}),),
        "weekday_after": (Ask("add_days", {"date": day, "days": days}), Ask("weekday", {"date": "$1"})),
        "business_days": (Ask("business_days", {"start": day, "end": end.isoformat(), "country": code}),),
        "edge_business_day": (Ask("edge_business_day", {"which": which, "period": period, "country": code}),),
        "next_business_day": (Ask("next_business_day", {"date": day, "country": code}),),
        "is_holiday": (Ask("is_holiday", {"date": day, "country": code}),),
        "next_holiday": (Ask("next_holiday", {"date": day, "country": code}),),
    }
    style = random.getrandbits(30)
    gaps = {
        "start": write_day(start, Random(style)),  # noqa: S311  both dates in one style
        "end": write_day(end, Random(style)),  # noqa: S311
        "n": str(days), "country": country, "period": period, "which": which,
    }  # fmt: skip
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _draw_period(random: Random) -> str:
    year = random.randint(2020, 2030)
    return f"Q{random.randint(1, 4)} {year}" if random.random() < 0.4 else f"{random.choice(MONTHS)} {year}"


@cache
def list_cities_by_name() -> tuple[str, ...]:
    """The names of cities as they are written."""
    import json

    from assets import asset

    return tuple(json.loads(asset("cities.json").read_text(encoding="utf-8")))


@cache
def _list_codes() -> tuple[str, ...]:
    """IATA codes: those of the cities, and every tenth of the others."""
    cities = sorted(set(list_cities().values()))
    others = [code for code in sorted(airports()) if code.isalpha() and code not in cities]
    return (*cities, *cities, *cities, *others[::10])


def _draw_places(count: int, random: Random) -> list[str]:
    """Cities or airport codes, of which no two are the same place."""
    while True:
        if random.random() < 0.5:
            places = random.sample(list_cities_by_name(), count)
        else:
            places = random.sample(_list_codes(), count)
        codes = {list_cities().get(_fold(place), place) for place in places}
        if len(codes) == count:
            return places


def _fold(name: str) -> str:
    from pool_registry.starter.workers.airports import fold_place

    return fold_place(name)


def _draw_zones(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().zones, random)
    place, other = _draw_places(2, random)
    moment = datetime(2024, 1, 1) + timedelta(minutes=15 * random.randrange(96 * 365 * 4))
    minutes = 5 * random.randint(9, 190)
    time = f"{moment:%Y-%m-%d %H:%M}"
    if bank.asks == "local_time":
        ask = Ask("local_time", {"time": time, "place": place, "other": other})
    else:
        ask = Ask("arrival", {"time": time, "place": place, "minutes": minutes, "other": other})
    day = write_day(moment.date(), random)
    gaps = {"time": f"{day} {moment:%H:%M}", "place": place, "other": other, "n": str(minutes)}
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, (ask,), True)


def _draw_distances(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().distances, random)
    origin, destination, via = _draw_places(3, random)
    number = 10 * random.randint(60, 95)
    unit = random.choice(("miles", "miles", "miles", "nautical miles"))
    route = Ask("distance", {"origin": origin, "destination": destination})
    in_miles: tuple[Ask, ...] = (route, convert_units("$1", "km", unit))
    if unit == "miles":
        instead = (route, Ask("convert", {"value": "$-1", "from_unit": "km", "to_unit": "miles"}))
        in_miles = (Ask("distance_miles", route.parts, instead),)
    asks: dict[str, tuple[Ask, ...]] = {
        "km": (route,),
        "miles": in_miles,
        "flight_hours": (route, evaluate(f"$1 / {number}")),
        "round_trip": (route, evaluate("$1 * 2")),
        "two_legs": (
            Ask("distance", {"origin": origin, "destination": via}),
            Ask("distance", {"origin": via, "destination": destination}),
            evaluate("$1 + $2"),
        ),
    }
    gaps = {"origin": origin, "destination": destination, "via": via, "n": str(number), "unit": unit}
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _draw_airport(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().airports, random)
    code, city = random.choice(_list_codes()), random.choice(list_cities_by_name())
    place = city if bank.asks == "airport code" else code
    ask = Ask("airport_fact", {"place": place, "fact": bank.asks})
    return EverydayQuestion(_choose_text(bank.texts, split, random), {"code": code, "city": city}, (ask,), True)


@cache
def list_countries(fact: str) -> tuple[str, ...]:
    """The countries of which a fact may be asked."""
    if fact == "capital":
        return tuple(country for country in load_facts().capitals if country not in load_everyday().unclear_capitals)
    return tuple(load_facts().values[LABELS[fact]])


def _draw_fact(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank([bank for bank in load_everyday().facts if bank.fact != "internet code"], random)
    country = random.choice(list_countries(bank.fact))
    asks = (find_fact(country, bank.fact),)
    return EverydayQuestion(_choose_text(bank.texts, split, random), {"country": country}, asks, True)


def _draw_compared(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().compared, random)
    choices = FACT_UNITS if bank.asks == "converted" else LABELS
    fact = "population" if bank.asks == "density" else random.choice(sorted(choices))
    if bank.asks == "total" and fact in ("median age", "life expectancy", "mean elevation"):
        fact = "population"
    countries = [name for name in list_countries(fact) if name in list_countries("area")]
    country, other = random.sample(countries, 2)
    facts = (find_fact(country, fact), find_fact(other, fact))
    unit, targets = FACT_UNITS.get(fact, ("", ("",)))
    target = random.choice(targets)
    asks: dict[str, tuple[Ask, ...]] = {
        "difference": (*facts, evaluate("$1 - $2")),
        "ratio": (*facts, evaluate("$1 / $2")),
        "total": (*facts, evaluate("$1 + $2")),
        "is_larger": (*facts, evaluate("$1 > $2")),
        "density": (facts[0], find_fact(country, "area"), evaluate("$1 / $2")),
        "converted": (facts[0], convert_units("$1", unit, target)),
    }
    gaps = {"country": country, "other": other, "fact": random.choice(FACT_WORDS[fact]), "unit": target}
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _draw_molecule(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().molecules, random)
    formula = random.choice(load_everyday().formulas)
    number = random.choice((str(random.randint(2, 90)), f"{random.uniform(0.1, 20):.1f}"))
    mass = Ask("molar_mass", {"formula": formula})
    asks = {"mass": (mass,), "moles": (mass, evaluate(f"$1 * {number}")), "grams": (mass, evaluate(f"{number} / $1"))}
    return EverydayQuestion(_choose_text(bank.texts, split, random), {"formula": formula, "n": number}, asks[bank.asks])


def _draw_company(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().company, random)
    company, region = random.choice(COMPANIES[split]), random.choice(REGIONS)
    status = random.choice(STATUS_WORDS) if bank.asks == "revenue" else "paid"
    span, start, end = _draw_span(random)
    percent = random.randint(2, 60)
    select = Ask("select", {"query": select_revenue(str(company), status, start, end)})
    revenue = Ask("revenue", {"company": str(company), "status": status, "start": start, "end": end}, (select,))
    where = f"from sales where company_id = {company} and placed between '{start}' and '{end}'"
    asks: dict[str, tuple[Ask, ...]] = {
        "revenue": (revenue,),
        "region_revenue": (Ask("select", {"query": select_revenue(str(company), status, start, end, region)}),),
        "orders": (Ask("select", {"query": f"select count(*) {where}"}),),
        "best_region": (
            Ask("select", {"query": f"select region {where} group by region order by sum(revenue) desc limit 1"}),
        ),
        "revenue_share": (
            revenue,
            Ask("percent_of", {"percent": percent, "whole": "$1"}, (evaluate(f"$1 * {percent} / 100"),)),
        ),
    }
    gaps = {"company": str(company), "region": region, "status": status, "span": span, "n": str(percent)}
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _draw_span(random: Random) -> tuple[str, str, str]:
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


def _draw_exchange(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().exchange, random)
    day = _draw_day(random, 2022, 2024)
    currency = random.choice(sorted(load_everyday().currencies))
    name, plural = load_everyday().currencies[currency]
    number = random.choice((random.randint(2, 99), 10 * random.randint(5, 90), 100 * random.randint(5, 90)))
    rate = Ask("rate", {"day": day.isoformat(), "currency": currency})
    asks = {
        "rate": (rate,),
        "from_dollars": (rate, evaluate(f"{number} * $1")),
        "to_dollars": (rate, evaluate(f"{number} / $1")),
    }
    gaps = {"start": write_day(day, random), "currency": currency, "name": name, "plural": plural, "n": str(number)}
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, asks[bank.asks])


def _draw_mixture(split: str, random: Random) -> EverydayQuestion:
    bank = _choose_bank(load_everyday().mixtures, random)
    group = random.choice(load_everyday().units.groups)
    source, target = (random.choice(unit) for unit in random.sample(group.units, 2))
    a, b = random.randint(2, 90), random.randint(2, 30)
    start = _draw_day(random)
    end = start + timedelta(days=random.randint(2, 60))
    span = Ask("days_between", {"start": start.isoformat(), "end": end.isoformat()})
    asks: dict[str, tuple[Ask, ...]] = {
        "converted_sum": (evaluate(f"{a} * {b}"), convert_units("$1", source, target)),
        "sum_of_units": (convert_units(a, source, target), evaluate(f"$1 + {b}")),
        "price_of_days": (span, evaluate(f"$1 * {a}")),
        "weeks_between": (span, evaluate("$1 / 7")),
    }
    style = random.getrandbits(30)
    gaps = {
        "a": str(a), "b": str(b), "from": source, "to": target,
        "start": write_day(start, Random(style)),  # noqa: S311  both dates in one style
        "end": write_day(end, Random(style)),  # noqa: S311
    }  # fmt: skip
    return EverydayQuestion(_choose_text(bank.texts, split, random), gaps, asks[bank.asks])


_DRAWS: tuple[tuple[Draw, float], ...] = (
    (_draw_sum, 11), (_draw_list, 2), (_draw_units, 6), (_draw_temperature, 1.5), (_draw_dates, 8), (_draw_zones, 3.5),
    (_draw_distances, 6), (_draw_airport, 1.5), (_draw_fact, 6), (_draw_compared, 6), (_draw_molecule, 3),
    (_draw_company, 4), (_draw_exchange, 3), (_draw_mixture, 3),
)  # fmt: skip

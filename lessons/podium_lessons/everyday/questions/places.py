"""Questions about cities and airports: the time there, how far they are apart, an airport's name or code."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cache
from random import Random

from assets import asset
from podium_lessons.everyday.asks import Ask, convert_units, evaluate
from podium_lessons.everyday.everyday_data import load_dates, load_places
from podium_lessons.everyday.questions.dates import write_day
from podium_lessons.everyday.questions.question import EverydayQuestion, choose_bank, choose_text
from podium_lessons.everyday.solve_asks import run_work
from pool_registry.starter.workers.airports import airports, fold_place, list_cities


def draw_zones(split: str, random: Random) -> EverydayQuestion:
    """The time in another place, at a given moment or on arrival there."""
    bank = choose_bank(load_dates().zones, random)
    place, other = draw_places(2, random)
    moment = datetime(2024, 1, 1) + timedelta(minutes=15 * random.randrange(96 * 365 * 4))
    hours = random.randint(2, 15)
    minutes = 60 * hours if bank.asks == "hours_later" else 5 * random.randint(9, 190)
    time = f"{moment:%Y-%m-%d %H:%M}"
    if bank.asks == "local_time":
        ask = Ask("local_time", {"time": time, "place": place, "other": other})
    else:
        span = f"{hours} hours" if bank.asks == "hours_later" else f"{minutes} minutes"
        ask = Ask("arrival", {"time": time, "place": place, "minutes": minutes, "span": span, "other": other})
    day = write_day(moment.date(), random)
    gaps = {"time": f"{day} {moment:%H:%M}", "place": place, "other": other, "n": str(minutes), "h": str(hours)}
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, (ask,), True)


def draw_distances(split: str, random: Random) -> EverydayQuestion:
    """The distance between places, there and back or by way of a third, or the hours of a flight."""
    bank = choose_bank(load_places().distances, random)
    origin, destination, via = draw_places(3, random)
    if bank.asks == "farther":
        via, destination = sorted((via, destination), key=lambda place: _measure(origin, place))
    trips = random.randint(2, 12)
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
        "farther": (route, Ask("distance", {"origin": origin, "destination": via}), evaluate("$1 - $2")),
        "trips": (route, evaluate(f"$1 * {trips}")),
    }
    gaps = {
        "origin": origin, "destination": destination, "via": via, "n": str(number), "unit": unit, "t": str(trips),
    }  # fmt: skip
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _measure(origin: str, destination: str) -> float:
    """The distance in kilometres."""
    return float(str(run_work("distance", {"origin": origin, "destination": destination})))


def draw_airport(split: str, random: Random) -> EverydayQuestion:
    """A fact about an airport, or the code of a city's airport."""
    bank = choose_bank(load_places().airports, random)
    code, city = random.choice(list_codes()), random.choice(list_cities_by_name())
    place = city if bank.asks == "airport code" else code
    ask = Ask("airport_fact", {"place": place, "fact": bank.asks})
    return EverydayQuestion(choose_text(bank.texts, split, random), {"code": code, "city": city}, (ask,), True)


def draw_places(count: int, random: Random) -> list[str]:
    """Cities or airport codes, of which no two are the same place."""
    while True:
        if random.random() < 0.5:
            places = random.sample(list_cities_by_name(), count)
        else:
            places = random.sample(list_codes(), count)
        codes = {list_cities().get(fold_place(place), place) for place in places}
        if len(codes) == count:
            return places


@cache
def list_cities_by_name() -> tuple[str, ...]:
    """The names of cities as they are written."""
    return tuple(json.loads(asset("cities.json").read_text(encoding="utf-8")))


@cache
def list_codes() -> tuple[str, ...]:
    """IATA codes: those of the cities, and every tenth of the others."""
    cities = sorted(set(list_cities().values()))
    others = [code for code in sorted(airports()) if code.isalpha() and code not in cities]
    return (*cities, *cities, *cities, *others[::10])

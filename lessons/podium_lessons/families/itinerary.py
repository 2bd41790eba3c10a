"""Family `itinerary`: flights between real airports, their local landing dates and the business days after.

L1: clock | clock -> calendar (3 steps). L2: great_circle | airports -> clock -> calendar (4 steps, 3 deep).
L3: great_circle | great_circle | airports -> clock -> clock -> calendar (6 steps, 4 deep, 3 wide).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from random import Random

from orchestrator.plan import Step, Turn
from podium_lessons.template_suite import QueryKind, TemplateSuite
from pool_registry.starter.workers.airports import Airport, airports
from pool_registry.starter.workers.clock import zone_at
from pool_registry.starter.workers.great_circle import RADIUS_KM
from pool_registry.workers.calendar import is_business_day
from trainer.tasks.suite import assign_split
from trainer.tasks.verifier import ExactText, NumberWithin, Verifier

STOPS = ("a", "b", "c", "d")  # the gaps that hold airports,
STARTS = ("start", "later")  # local times of departure,
SPANS = ("x", "y", "z")  # minutes or km/h
_CODE, _TIME, _DAY, _SPAN = "[A-Z]{3}", r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}", r"\d{4}-\d{2}-\d{2}", r"\d{1,4}"
GAPS = {
    **dict.fromkeys(STOPS, _CODE),
    **dict.fromkeys(STARTS, _TIME),
    **dict.fromkeys(SPANS, _SPAN),
    "until": _DAY,
    "country": "[A-Z]{2}",
}
FIRST_YEAR, LAST_YEAR = 1950, 2090  # of what a person may ask for
CLOCK = "local time some minutes later in another place"
MIN_KM = 300
MAX_SPAN_DAYS = 400
MIDNIGHT = timedelta(minutes=10)  # a landing closer to it is on a date that rounding decides


@dataclass(frozen=True, slots=True)
class ItineraryQuery:
    """Everything an itinerary query says; `asks` is "days" (how many) or "next" (which date).

    `spans` are minutes at level 1, the speed at level 2, speed, minutes on the ground and speed at level 3.
    """

    level: int
    asks: str
    template: int
    stops: tuple[str, ...]
    starts: tuple[str, ...]
    spans: tuple[int, ...]
    until: str = ""
    country: str = ""


class Itinerary(TemplateSuite[ItineraryQuery]):
    name = "itinerary"
    description = "Flights between real airports: distances, local times, public holidays."
    workers = ("great_circle", "airports", "clock", "calendar")
    gap_patterns = GAPS

    def kind_of(self, parameters: ItineraryQuery) -> QueryKind:
        return parameters.level, parameters.asks

    def draw(self, level: int, split: str, random: Random) -> ItineraryQuery:
        asks = random.choice([asks for kind_level, asks in self.wordings if kind_level == level])
        start = datetime(2024, 1, 1) + timedelta(minutes=5 * random.randrange(288 * 900))
        later = start + timedelta(minutes=5 * random.randint(288 * 6, 288 * 60))
        stops = random.sample(_list_codes(split), {1: 4, 2: 2, 3: 3}[level])
        speeds = [10 * random.randint(60, 95) for _ in range(2)]
        minutes = [5 * random.randint(9, 180) for _ in range(2)]
        return ItineraryQuery(
            level=level,
            asks=asks,
            template=self.wordings[level, asks].draw(split, random),
            stops=tuple(stops),
            starts=tuple(f"{time:%Y-%m-%d %H:%M}" for time in ((start, later) if level == 1 else (start,))),
            spans=tuple({1: minutes, 2: speeds[:1], 3: [speeds[0], minutes[0], speeds[1]]}[level]),
            until=f"{later:%Y-%m-%d}" if level > 1 and asks == "days" else "",
            country=airports()[stops[-1]].country if level == 1 else "",
        )

    def write(self, parameters: ItineraryQuery) -> str:
        p = parameters
        places = dict(zip((*STOPS[: len(p.stops)], *STARTS[: len(p.starts)]), (*p.stops, *p.starts), strict=True))
        spans = dict(zip(SPANS, p.spans, strict=False))
        return self.template_of(p).fill(**places, **spans, until=p.until, country=p.country)

    def read(self, query: str) -> ItineraryQuery | None:
        match = self.match(query)
        if match is None:
            return None
        (level, asks), number, gaps = match
        return ItineraryQuery(
            level=level,
            asks=asks,
            template=number,
            stops=tuple(gaps[gap].upper() for gap in STOPS if gap in gaps),
            starts=tuple(gaps[gap] for gap in STARTS if gap in gaps),
            spans=tuple(int(gaps[gap]) for gap in SPANS if gap in gaps),
            until=gaps.get("until", ""),
            country=gaps.get("country", "").upper(),
        )

    def solve(self, parameters: ItineraryQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        stops = [airports().get(code) for code in p.stops]
        airports_on_route = [stop for stop in stops if stop is not None]
        country = p.country or (airports_on_route[-1].country if airports_on_route else "")
        if len(airports_on_route) < len(stops) or country not in _list_countries():
            return None
        landings = _land_both(p, airports_on_route) if p.level == 1 else [_land_last(p, airports_on_route)]
        days = [landing.date() for landing in landings if landing is not None]
        if len(days) < len(landings):
            return None
        if p.asks == "next":
            return ExactText(_find_next_business_day(days[0], country).isoformat()), _make_plan(p)
        last = days[1] if p.level == 1 else _parse_date(p.until)
        if last is None or not 0 <= (last - days[0]).days <= MAX_SPAN_DAYS:
            return None
        between = (days[0] + timedelta(days=offset) for offset in range((last - days[0]).days + 1))
        return NumberWithin(sum(is_business_day(day, country) for day in between), 0.0), _make_plan(p)


def _make_plan(p: ItineraryQuery) -> Turn:
    if p.level == 1:
        a, b, c, d = p.stops
        one = Step(1, "clock", {"request": f"{p.starts[0]} at {a} plus {p.spans[0]} minutes, local at {b}"}, need=CLOCK)
        two = Step(2, "clock", {"request": f"{p.starts[1]} at {c} plus {p.spans[1]} minutes, local at {d}"}, need=CLOCK)
        return Turn((one, two, _ask_calendar(3, f"business days from $1 to $2 in {p.country}", (1, 2))), "$3")
    routes = [
        Step(k, "great_circle", {"route": " to ".join(p.stops[k - 1 : k + 1])}, need="distance between two airports")
        for k in range(1, p.level)
    ]
    country = Step(
        p.level,
        "airports",
        {"request": f"country of {p.stops[-1]}"},
        need="country, time zone or elevation of an airport",
    )
    flight = f"{p.starts[0]} at {p.stops[0]} plus $1 km / {p.spans[0]} km/h, local at {p.stops[1]}"
    clocks = [Step(p.level + 1, "clock", {"request": flight}, (1,), need=CLOCK)]
    if p.level == 3:
        onward = f"$4 at {p.stops[1]} plus {p.spans[1]} minutes plus $2 km / {p.spans[2]} km/h, local at {p.stops[2]}"
        clocks.append(Step(5, "clock", {"request": onward}, (2, 4), need=CLOCK))
    landed, place = clocks[-1].id, country.id
    days = f"business days from ${landed} to {p.until} in ${place}"
    request = days if p.asks == "days" else f"next business day after ${landed} in ${place}"
    last = landed + 1
    return Turn((*routes, country, *clocks, _ask_calendar(last, request, (place, landed))), f"${last}")


def _ask_calendar(step: int, request: str, access: tuple[int, ...]) -> Step:
    need = "business days between two dates" if request.startswith("business") else "next business day after a date"
    return Step(step, "calendar", {"request": request}, access, need=need)


def _land_both(p: ItineraryQuery, stops: list[Airport]) -> list[datetime | None]:
    """Compute the local landing times of both flights; nothing is rounded, so that any minute is clear."""
    flights = zip(stops[::2], stops[1::2], p.starts, p.spans, strict=True)
    landed = []
    for origin, target, start, minutes in flights:
        moment = _parse_departure(start, origin)
        landed.append(_to_local(moment + timedelta(minutes=minutes), target) if moment else None)
    return landed


def _land_last(p: ItineraryQuery, stops: list[Airport]) -> datetime | None:
    """The last local landing time, None when rounding to minutes on the way could change its date."""
    moment = _parse_departure(p.starts[0], stops[0])
    speeds = p.spans[::2]
    lengths = [_measure_km(*pair) for pair in pairwise(stops)]
    if moment is None or min(speeds) < 100 or min(lengths) < MIN_KM:
        return None
    hours = sum(length / speed for length, speed in zip(lengths, speeds, strict=True))
    landed = moment + timedelta(hours=hours, minutes=sum(p.spans[1::2]))
    local = _to_local(landed, stops[-1])
    near = {_to_local(landed + margin, stops[-1]).date() for margin in (-MIDNIGHT, MIDNIGHT)}
    return local if near == {local.date()} else None


def _parse_departure(text: str, origin: Airport) -> datetime | None:
    """A local time as a moment; None where clocks show it twice or never."""
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        return None
    if not FIRST_YEAR <= local.year <= LAST_YEAR:
        return None
    zone = zone_at(origin.code)
    first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return first.astimezone(UTC) if first.utcoffset() == second.utcoffset() else None


def _to_local(moment: datetime, target: Airport) -> datetime:
    return moment.astimezone(zone_at(target.code))


def _measure_km(start: Airport, end: Airport) -> float:
    """The angle between two places' vectors: another formula than the worker's."""
    one, two = _to_vector(start), _to_vector(end)
    cosine = sum(a * b for a, b in zip(one, two, strict=True))
    return RADIUS_KM * math.acos(max(-1.0, min(1.0, cosine)))


def _to_vector(place: Airport) -> tuple[float, float, float]:
    north, east = math.radians(place.latitude), math.radians(place.longitude)
    return math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north)


def _find_next_business_day(day: date, country: str) -> date:
    day += timedelta(days=1)
    while not is_business_day(day, country):
        day += timedelta(days=1)
    return day


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@cache
def _list_codes(split: str) -> list[str]:
    """The airports of a split, in an order of their own."""
    return sorted(code for code in airports() if assign_split(code) == split)


@cache
def _list_countries() -> frozenset[str]:
    """The countries whose public holidays are known."""
    import holidays

    return frozenset(holidays.list_supported_countries())

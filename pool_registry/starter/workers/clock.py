"""Kind `clock`: local times at airports and in time zones, some time before or after another.

The answer is "2025-04-21 02:57": to the nearest minute, half a minute up. Time passes as it does on a
stopwatch, also across a change to summer time; where clocks are put back, the first of two equal times is meant.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

import tzdata

from pool_registry.errors import BadCall
from pool_registry.starter.workers.airports import PLACE_NAME, airport, airports
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORMS = (
    "2025-04-20 21:30 at LIS plus 90 minutes, local at GRU",
    "2025-04-20 21:30 at LIS plus 7935.3 km / 840 km/h, local at GRU",
    "2025-04-20 21:30 at Europe/Lisbon minus 2 hours plus 15 minutes",
    "2025-04-20 21:30 in London, local in Tokyo",
)
MAX_CHARS = 300
MAX_DAYS = 36_600
_AMOUNT = r"[0-9][0-9,]{0,15}(?:\.[0-9]{1,12})?"
_SPAN = rf"(?:plus|minus|\+|-) {_AMOUNT} ?(?:[a-z]+|km ?/ ?{_AMOUNT} ?km ?/ ?h)"
_PLACE = rf"{PLACE_NAME}|[a-z]+(?:/[a-z0-9_+-]+){{1,2}}"  # LIS, UTC, Lisbon, Europe/Lisbon
_REQUEST = re.compile(
    rf"(?P<time>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ t][0-9]{{1,2}}:[0-9]{{2}})"
    rf"(?: local)?(?: time)? (?:at|in) (?P<start>{_PLACE})"
    rf"(?P<spans>(?:,? {_SPAN})*)(?:,? (?:in )?local(?: time)? (?:at|in) (?P<end>{_PLACE}))?",
    re.IGNORECASE,
)
_ONE_SPAN = re.compile(
    rf"(?P<sign>plus|minus|\+|-) (?P<amount>{_AMOUNT}) ?(?:km ?/ ?(?P<speed>{_AMOUNT}) ?km ?/ ?h|(?P<unit>[a-z]+))",
    re.IGNORECASE | re.ASCII,
)
_MINUTES = {
    **dict.fromkeys(("minute", "minutes", "min", "mins"), 1.0),
    **dict.fromkeys(("hour", "hours", "h"), 60.0),
    **dict.fromkeys(("day", "days"), 1440.0),
}


class Clock(Worker[NoConfig]):
    label = "Clock"
    summary = "Local times across time zones."
    icon = "M12 4a8 8 0 1 0 .01 0 M12 8v4l3 2"
    described_by = "request"
    template = None  # its task family needs it; a person would not add it
    cacheable = True
    sample = {"request": FORMS[0]}
    parameters = one_string(
        "request",
        f"As in: {'; '.join(FORMS)}. "
        "A place is an IATA code, a large city or a time zone; the answer is to the minute.",
    )

    async def call(self, call: Call) -> Reply:
        await airports.ready()
        return Reply(answer(call.text("request")))

    async def check(self) -> str:
        await airports.ready()
        answer(FORMS[0])
        return "ready"


def answer(request: str) -> str:
    """Answer a request in one of FORMS with a local time. Raises BadCall listing them otherwise."""
    match = _REQUEST.fullmatch(" ".join(request[:MAX_CHARS].split()).rstrip("?. "))
    if match is None:
        raise BadCall("write the request in one of these forms: " + "; ".join(FORMS))
    minutes = sum(_minutes(span) for span in _ONE_SPAN.finditer(match["spans"]))
    start = zone_at(match["start"])
    moment = _instant(match["time"], start) + timedelta(minutes=math.floor(minutes + 0.5))
    zone = zone_at(match["end"]) if match["end"] else start
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def zone_at(place: str) -> ZoneInfo:
    """Return the time zone of an airport, or the one of that name. Raises BadCall when there is neither."""
    if place.upper() == "UTC":
        return _zone("UTC")
    return _zone(_zone_name(place) if "/" in place else airport(place).zone)


def _instant(text: str, zone: ZoneInfo) -> datetime:
    try:
        day, _, time = text.upper().replace("T", " ").partition(" ")
        moment = datetime.fromisoformat(f"{day} {time:0>5}").replace(tzinfo=zone)
    except ValueError as error:
        raise BadCall(f"{text!r} is no time: {error}; write it as 2025-04-20 21:30") from error
    if not 1900 <= moment.year <= 2100:
        raise BadCall("the year must lie between 1900 and 2100")
    return moment.astimezone(UTC)


def _minutes(span: re.Match[str]) -> float:
    amount = _number(span["amount"])
    if span["speed"] is not None:
        speed = _number(span["speed"])
        if not speed:
            raise BadCall("the speed must not be 0; write it in km/h, such as 840 km/h")
        minutes = 60 * amount / speed
    elif span["unit"].lower() in _MINUTES:
        minutes = amount * _MINUTES[span["unit"].lower()]
    else:
        raise BadCall(f"{span['unit']!r} is no span of time; write minutes, hours, days or km / km/h")
    if minutes > MAX_DAYS * 1440:
        raise BadCall("the span must be at most 100 years long")
    return -minutes if span["sign"].lower() in ("minus", "-") else minutes


def _number(text: str) -> float:
    return float(text.replace(",", ""))


@lru_cache(maxsize=1024)
def _zone_name(name: str) -> str:
    """Return a zone's name as the database spells it: europe/lisbon is Europe/Lisbon."""
    names = (resources.files(tzdata) / "zones").read_text(encoding="utf-8").split()
    for zone in names:
        if zone.lower() == name.lower():
            return zone
    raise BadCall(f"there is no time zone {name!r}; write an IATA code or a name such as Europe/Lisbon")


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    """Load a zone from the package `tzdata`, so that answers agree on every machine."""
    with resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)

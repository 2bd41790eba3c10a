"""Kind `airports`: where an airport is, by its IATA code, from the tables of `airportsdata`.

The name of a common city stands for its main airport (assets/cities.json).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from assets import asset
from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall
from pool_registry.load_once import LoadOnce
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORMS = (
    "country of LIS",
    "time zone of LIS",
    "coordinates of LIS",
    "elevation of LIS",
    "country of Lisbon",
    "airport code of Lisbon",
)
MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Airport:
    """One airport. `country` is ISO alpha-2, `elevation` in feet, `zone` a name of the IANA database."""

    code: str
    country: str
    zone: str
    latitude: float
    longitude: float
    elevation: float


class Airports(Worker[NoConfig]):
    label = "Airports"
    summary = "Country, time zone and place of an airport."
    icon = "M21 4L3 11l6 3 3 6z M9 14l5-4"
    described_by = "request"
    template = None  # its task family needs it; a person would not add it
    cacheable = True
    sample = {"request": FORMS[0]}
    parameters = one_string(
        "request",
        f"One of these forms: {'; '.join(FORMS)}. A city stands for its main airport. "
        "Codes are IATA, countries ISO alpha-2, elevations in feet.",
    )

    async def call(self, call: Call) -> Reply:
        await airports.ready()
        return Reply(answer(call.text("request")))

    async def check(self) -> str:
        await airports.ready()
        return f"{len(airports()):,} airports"


def answer(request: str) -> JsonValue:
    """Answer a request in one of FORMS. Raises BadCall listing them otherwise."""
    text = " ".join(request[:MAX_CHARS].split()).rstrip("?. ")
    for pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is not None:
            field = match["field"].lower().replace(" ", "")
            return _FIELDS[field](airport(match["code"]))
    raise BadCall("write the request in one of these forms: " + "; ".join(FORMS))


def airport(code: str) -> Airport:
    """Return the airport with an IATA code, in any case, or the main one of a city. Raises BadCall without one."""
    place = airports().get(code.upper()) or airports().get(list_cities().get(fold_place(code), ""))
    if place is None:
        name = code.upper() if len(code) == 3 else code
        raise BadCall(f"there is no airport {name!r}; use an IATA code of three letters such as LIS, or a large city")
    return place


@cache
def list_cities() -> Mapping[str, str]:
    """Return the IATA code of the main airport of each common city, by its folded name."""
    names = json.loads(asset("cities.json").read_text(encoding="utf-8"))
    return {fold_place(name): code for name, code in names.items()}


def fold_place(name: str) -> str:
    """Return a city's name without case, accents, dots and extra white space."""
    letters = unicodedata.normalize("NFKD", name.casefold().replace(".", ""))
    return " ".join("".join(letter for letter in letters if not unicodedata.combining(letter)).split())


@LoadOnce
def airports() -> Mapping[str, Airport]:
    """Return every airport by its IATA code; reading the tables takes 0.2 s."""
    import airportsdata

    return {
        code: Airport(code, row["country"], row["tz"], row["lat"], row["lon"], row["elevation"])
        for code, row in airportsdata.load("IATA").items()
    }


PLACE_NAME = r"[^\W\d_](?:[^\W\d_]|[ .'-]){1,40}?"  # LIS, Lisbon, St. Louis
_FIELDS: dict[str, Callable[[Airport], JsonValue]] = {
    "country": lambda place: place.country,
    "timezone": lambda place: place.zone,
    "coordinates": lambda place: {"lat": place.latitude, "lon": place.longitude},
    "position": lambda place: {"lat": place.latitude, "lon": place.longitude},
    "elevation": lambda place: place.elevation,
    "airport": lambda place: place.code,
    "code": lambda place: place.code,
}
_FIELD = r"(?P<field>country|time ?zone|coordinates|position|elevation|airport|code)(?: code)?"
_CODE = rf"(?:the )?(?:airport )?(?P<code>{PLACE_NAME})(?: airport)?"
_PATTERNS = (
    re.compile(rf"(?:what is )?(?:the )?{_FIELD} (?:of|at|for|in) {_CODE}", re.IGNORECASE),
    re.compile(rf"{_CODE}(?:'s)?[ :,]+{_FIELD}", re.IGNORECASE),
)

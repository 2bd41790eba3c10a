"""Kind `great_circle`: the shortest way over the globe between two airports, in kilometers to one decimal."""

from __future__ import annotations

import math
import re

from pool_registry.errors import BadCall
from pool_registry.starter.workers.airports import PLACE_NAME, Airport, airport, airports
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORM = "LIS to GRU"
RADIUS_KM = 6371.0088  # the mean radius of the Earth (IUGG)
MAX_CHARS = 200
_PAIR = re.compile(
    r"(?:(?:the )?(?:great[ -]circle |flight )*(?:distance )?(?:from |between )?)?"
    rf"(?P<start>{PLACE_NAME})(?: to | and | ?[-–>→]+ ?)(?P<end>{PLACE_NAME})(?: in (?:km|kilomet(?:er|re)s))?",
    re.IGNORECASE,
)


class GreatCircle(Worker[NoConfig]):
    label = "Great circle"
    summary = "Distance between two airports."
    icon = "M4 18a16 16 0 0 1 16-12 M4 18h.01 M20 6h.01 M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0"
    described_by = "request"
    template = None  # its task family needs it; a person would not add it
    cacheable = True
    sample = {"route": FORM}
    parameters = one_string(
        "route",
        f"Two IATA codes or large cities, as in: {FORM}, or Lisbon to Sao Paulo. The distance comes in kilometers.",
    )

    async def call(self, call: Call) -> Reply:
        await airports.ready()
        return Reply(route_km(call.text("route")))

    async def check(self) -> str:
        await airports.ready()
        route_km(FORM)
        return "ready"


def route_km(route: str) -> float:
    """Return the length of a route such as "LIS to GRU". Raises BadCall when it is none."""
    match = _PAIR.fullmatch(" ".join(route[:MAX_CHARS].split()).rstrip("?. "))
    if match is None:
        raise BadCall(f"write the route as two IATA codes or large cities: {FORM}")
    return round(distance_km(airport(match["start"]), airport(match["end"])), 1)


def distance_km(start: Airport, end: Airport) -> float:
    """Compute the haversine formula on a sphere of the Earth's mean radius."""
    south, north = math.radians(start.latitude), math.radians(end.latitude)
    turn = math.radians(end.longitude - start.longitude)
    chord = math.sin((north - south) / 2) ** 2 + math.cos(south) * math.cos(north) * math.sin(turn / 2) ** 2
    return 2 * RADIUS_KM * math.asin(math.sqrt(min(1.0, chord)))

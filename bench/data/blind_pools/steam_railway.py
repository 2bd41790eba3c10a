"""Trains, engines and fares of a small museum railway."""

MILEPOST = {"wharf": 0.0, "mill lane": 2.5, "quarry": 4.0, "summit": 7.0}
FARE = {
    frozenset({"wharf", "mill lane"}): 4.0,
    frozenset({"wharf", "quarry"}): 6.5,
    frozenset({"wharf", "summit"}): 11.0,
    frozenset({"mill lane", "quarry"}): 3.0,
    frozenset({"mill lane", "summit"}): 8.0,
    frozenset({"quarry", "summit"}): 5.5,
}
FIRST = {"wharf": "09:40", "mill lane": "09:52", "quarry": "10:05", "summit": "10:30"}
ENGINE = {"mail": "Duchess", "picnic": "Badger", "sunset": "Old Tom"}
BUILT = {"Duchess": 1923, "Badger": 1898, "Old Tom": 1911}
FIREMAN = {"Duchess": "Rhys", "Badger": "Nell", "Old Tom": "Ivor"}
COAL = {"Duchess": 22.0, "Badger": 14.5, "Old Tom": 18.0}


def fare(origin: str, destination: str) -> float:
    """Single fare between two stations, in pounds."""
    return FARE[frozenset({origin.lower(), destination.lower()})]


def miles(origin: str, destination: str) -> float:
    """Distance between two stations in miles."""
    return abs(MILEPOST[origin.lower()] - MILEPOST[destination.lower()])


def first_train(station: str) -> str:
    """Departure of the first train of the day from a station (HH:MM)."""
    return FIRST[station.lower()]


def engine_on(service: str) -> str:
    """Engine rostered on a service: mail, picnic or sunset."""
    return ENGINE[service.lower()]


def year_built(engine: str) -> int:
    """Year an engine left the works."""
    return BUILT[engine.title()]


def fireman(engine: str) -> str:
    """Name of the fireman of an engine."""
    return FIREMAN[engine.title()]


def coal_per_mile(engine: str) -> float:
    """Coal an engine burns, kg per mile."""
    return COAL[engine.title()]


def total(a: float, b: float) -> float:
    """a plus b."""
    return a + b


def product(a: float, b: float) -> float:
    """a times b."""
    return a * b

"""Boats, rowers and coaches of a rowing club."""

CREW = {"Marlin": 8, "Kingfisher": 4, "Pike": 2, "Grebe": 1}
HULL = {"Marlin": 96, "Kingfisher": 52, "Pike": 27, "Grebe": 14}
RACK = {"Marlin": "R1", "Kingfisher": "R4", "Pike": "L2", "Grebe": "L5"}
STROKE = {"Marlin": "Oskar", "Kingfisher": "Freya", "Pike": "Dunja", "Grebe": "Leo"}
ERG = {"Oskar": 388, "Freya": 436, "Dunja": 452, "Leo": 401}
COACH = {"Oskar": "Brandt", "Freya": "Mireille", "Dunja": "Mireille", "Leo": "Brandt"}
DAY = {"Brandt": "Tuesday", "Mireille": "Saturday"}


def crew_size(boat: str) -> int:
    """Number of rowers in a boat."""
    return CREW[boat.capitalize()]


def hull_weight(boat: str) -> int:
    """Weight of an empty boat (kg)."""
    return HULL[boat.capitalize()]


def rack_of(boat: str) -> str:
    """Rack that a boat is stored on."""
    return RACK[boat.capitalize()]


def stroke_of(boat: str) -> str:
    """The rower in the stroke seat of a boat."""
    return STROKE[boat.capitalize()]


def erg_seconds(rower: str) -> int:
    """A rower's best 2000 m on the rowing machine, in seconds."""
    return ERG[rower.capitalize()]


def coach_of(rower: str) -> str:
    """Coach of a rower."""
    return COACH[rower.capitalize()]


def practice_day(coach: str) -> str:
    """Weekday on which a coach gives practice."""
    return DAY[coach.capitalize()]


def minus(a: float, b: float) -> float:
    """Subtract b from a."""
    return a - b


def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b

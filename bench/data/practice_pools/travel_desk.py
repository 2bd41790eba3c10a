"""Trains, weather records and fares for a travel desk."""

STATIONS = {"Arvik": "A1", "Belmont": "B4", "Corsa": "C2", "Dunmore": "D7", "Elling": "E3"}
KM = {("Arvik", "Belmont"): 42, ("Arvik", "Corsa"): 97, ("Belmont", "Dunmore"): 61, ("Corsa", "Elling"): 130}
JULY = {"Arvik": (17.5, 88), "Belmont": (19.0, 64), "Corsa": (24.5, 21), "Dunmore": (16.0, 102), "Elling": (21.5, 40)}
LINES = {"Coast Line": "Arvik", "Valley Line": "Belmont", "Night Express": "Elling"}
FIRST = {"Coast Line": "05:40", "Valley Line": "06:15", "Night Express": "22:10"}


def platform(station: str) -> str:
    """Platform code of the main platform at a station."""
    return STATIONS[station]


def distance_km(start: str, end: str) -> int:
    """Rail distance between two stations in km."""
    return KM.get((start, end)) or KM[(end, start)]


def july_temperature(city: str) -> float:
    """Average July temperature of a city in degrees Celsius."""
    return JULY[city][0]


def july_rain(city: str) -> int:
    """Rainfall in July, in millimetres, for one city."""
    return JULY[city][1]


def terminus(line: str) -> str:
    """Last stop of a line."""
    return LINES[line]


def first_train(line: str) -> str:
    """Departure time of the first train on a line."""
    return FIRST[line]


def km_to_miles(km: float) -> float:
    """Converts kilometres to miles."""
    return round(km * 0.621371, 1)


def fare(km: float) -> float:
    """Fare in euros for a trip of so many kilometres."""
    return round(3 + 0.18 * km, 2)

"""The observing schedule of an amateur astronomers' telescope."""

from datetime import date
from typing import Literal

NIGHT = {"Yusuf": "2026-03-14", "Hanna": "2026-03-27", "Piet": "2026-04-10", "Carmen": "2026-04-18"}
TARGET = {"Yusuf": "M81", "Hanna": "M104", "Piet": "M51", "Carmen": "NGC4565"}
CONSTELLATION = {"M81": "Ursa Major", "M104": "Virgo", "M51": "Canes Venatici", "NGC4565": "Coma Berenices"}
MAGNITUDE = {"M81": 6.9, "M104": 8.0, "M51": 8.4, "NGC4565": 9.6}
EXPOSURE = {
    "M81": {"lum": 40, "red": 55, "ha": 120},
    "M104": {"lum": 60, "red": 75, "ha": 150},
    "M51": {"lum": 65, "red": 80, "ha": 180},
    "NGC4565": {"lum": 90, "red": 110, "ha": 210},
}
NEW_MOON = {"march": "2026-03-19", "april": "2026-04-17", "may": "2026-05-16"}


def night_of(observer: str) -> str:
    """Date (YYYY-MM-DD) on which an observer has the telescope."""
    return NIGHT[observer.capitalize()]


def target_of(observer: str) -> str:
    """Catalogue name of the object an observer has applied for."""
    return TARGET[observer.capitalize()]


def constellation(target: str) -> str:
    """The constellation an object lies in."""
    return CONSTELLATION[target.upper().replace(" ", "")]


def magnitude(target: str) -> float:
    """Visual magnitude of an object."""
    return MAGNITUDE[target.upper().replace(" ", "")]


def exposure(target: str, band: Literal["lum", "red", "ha"]) -> int:
    """Recommended total exposure of an object through a filter, minutes."""
    return EXPOSURE[target.upper().replace(" ", "")][band.lower()]


def new_moon(month: str) -> str:
    """Date of the new moon in a month of 2026."""
    return NEW_MOON[month.lower()]


def days_between(start: str, end: str) -> int:
    """Days from one date to another, both as YYYY-MM-DD."""
    return (date.fromisoformat(end) - date.fromisoformat(start)).days


def weekday(day: str) -> str:
    """Day of the week of a date given as YYYY-MM-DD."""
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return names[date.fromisoformat(day).weekday()]

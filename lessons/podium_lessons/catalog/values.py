"""What a parameter of a tool may hold, and how people write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from random import Random

CITIES = (
    "Lisbon", "Oslo", "New York", "Chicago", "Toronto", "Mumbai", "Nairobi", "Osaka", "Lima", "Denver", "Athens",
    "Perth", "Hanoi", "Dublin", "Cape Town", "Seattle", "Prague", "Bogota", "Vienna", "Boston", "Manila", "Zurich",
    "San Diego", "Lagos", "Madrid", "Auckland", "Houston", "Jakarta", "Turin", "Calgary",
)  # fmt: skip
COUNTRIES = (
    "Portugal", "Norway", "Canada", "India", "Kenya", "Japan", "Peru", "Greece", "Australia", "Vietnam", "Ireland",
    "Brazil", "Mexico", "Egypt", "Poland", "Chile", "Germany", "Thailand", "Spain", "New Zealand", "France", "Morocco",
)  # fmt: skip
LANGUAGES = ("English", "German", "Spanish", "French", "Portuguese", "Hindi", "Japanese", "Korean", "Italian", "Dutch")
PEOPLE = (
    "Anna Berg", "John Miller", "Priya Nair", "Luis Ortega", "Mei Tanaka", "Sam Okafor", "Clara Weiss", "Omar Haddad",
    "Emily Stone", "Tomas Novak", "Grace Lee", "Ivan Petrov", "Nora Quinn", "David Cohen", "Sofia Rossi",
)  # fmt: skip
_PLACES = frozenset({"location", "city", "origin", "destination", "area_name", "venue", "place", "town"})
_PEOPLE = frozenset(
    {"patient_name", "student_name", "member_name", "employee_name", "customer_name", "client_name", "author"}
)
_MAIL = ("example.com", "mail.com", "acme.org")


def _draw_date(random: Random) -> str:
    return (date(2019, 1, 1) + timedelta(days=random.randrange(2700))).isoformat()


def _draw_id(random: Random) -> str:
    letters = "".join(random.choices("ABCDEFGHKLMNPRSTUVWX", k=random.randint(1, 3)))
    number = random.randint(10, 99_999)
    return f"{letters}{random.choice(('-', '', ''))}{number}" if random.random() < 0.7 else str(number)


def _draw_mail(random: Random) -> str:
    first, last = random.choice(PEOPLE).lower().split()
    return f"{first}.{last}@{random.choice(_MAIL)}"


def _draw_time(random: Random) -> str:
    return f"{random.randint(6, 22):02}:{random.choice((0, 15, 30, 45)):02}"


TEXT_RULES: Mapping[str, Callable[[Random], str]] = {
    "date": _draw_date, "id": _draw_id, "email": _draw_mail, "time": _draw_time,
    "year": lambda random: str(random.randint(1960, 2026)),
    "place": lambda random: random.choice(CITIES),
    "country": lambda random: random.choice(COUNTRIES),
    "language": lambda random: random.choice(LANGUAGES),
    "person": lambda random: random.choice(PEOPLE),
}  # fmt: skip


def find_text_rule(name: str) -> str:
    """The rule for a text parameter of this name; "" where examples have to say what it holds."""
    last = name.rsplit("_", 1)[-1]
    if name in _PLACES:
        return "place"
    if name in _PEOPLE:
        return "person"
    return {
        "date": "date", "id": "id", "email": "email", "time": "time", "year": "year", "country": "country",
        "language": "language",
    }.get(last, "")  # fmt: skip

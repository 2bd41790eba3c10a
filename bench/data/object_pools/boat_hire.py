"""The hire desk of a boathouse on a lake with four docks."""

import ast
from datetime import date
from typing import Literal, TypedDict


class Boat(TypedDict):
    kind: str
    seats: int
    deposit: float
    rack: str


class Reservation(TypedDict):
    boat_name: str
    dock: str
    day: str
    hours: int


class RentalQuote(TypedDict):
    list_price: float
    discount: float
    total: float


class Guide(TypedDict):
    name: str
    phone: str


class Tour(TypedDict):
    distance_km: float
    minutes: int
    guide: Guide


class LakeConditions(TypedDict):
    wind_knots: int
    water_temp: float
    flag: str


BOATS: dict[str, tuple[str, int, float, str, float]] = {
    "heron": ("canoe", 3, 60.0, "B2", 14.0),
    "otter": ("kayak", 1, 40.0, "A1", 9.5),
    "pike": ("kayak", 2, 55.0, "A4", 13.0),
    "mallard": ("rowboat", 4, 80.0, "D1", 16.5),
    "swift": ("paddleboard", 1, 30.0, "C3", 8.0),
}
RESERVATIONS: dict[str, tuple[str, str, str, int]] = {
    "okafor": ("Mallard", "Millpond", "2025-07-19", 4),
    "lindqvist": ("Pike", "Alder Bay", "2025-07-21", 2),
    "baptiste": ("Swift", "Stonepier", "2025-07-26", 3),
    "harrow": ("Heron", "Ferry Point", "2025-08-02", 5),
}
TIER_DISCOUNT = {"guest": 0.0, "student": 0.1, "member": 0.2}
SHORE_KM = {"millpond": 0.0, "alder bay": 3.5, "stonepier": 8.0, "ferry point": 12.5}
GUIDES = {
    "millpond": ("Ines", "555-0141"),
    "alder bay": ("Rufus", "555-0178"),
    "stonepier": ("Maren", "555-0123"),
    "ferry point": ("Tadeo", "555-0199"),
}
PACE_KMH = {"relaxed": 3.0, "steady": 4.5, "sporty": 6.0}
SHELTER = {"millpond": 2, "alder bay": 5, "stonepier": 9, "ferry point": 12}
GEAR_PER_HOUR = {"paddle": 1.5, "lifejacket": 1.0, "drybag": 0.75, "wetsuit": 3.25}


def _key(text: str, known: dict, what: str) -> str:
    key = text.strip().lower()
    if key not in known:
        raise ValueError(f"There is no {what} {text!r}; known are {', '.join(known)}.")
    return key


def boat_details(boat_name: str) -> Boat:
    """Kind, seats, deposit and storage rack of one of our boats."""
    kind, seats, deposit, rack, _ = BOATS[_key(boat_name, BOATS, "boat")]
    return {"kind": kind, "seats": seats, "deposit": deposit, "rack": rack}


def find_reservation(surname: str) -> Reservation:
    """Look up the reservation that a customer has made.

    Args:
        surname: Last name of the customer.
    """
    boat_name, dock, day, hours = RESERVATIONS[_key(surname, RESERVATIONS, "reservation for")]
    return {"boat_name": boat_name, "dock": dock, "day": day, "hours": hours}


def quote_rental(
    boat_name: str, hours: float, customer_tier: Literal["guest", "student", "member"] = "guest"
) -> RentalQuote:
    """Quote the price in euros of hiring a boat for some hours, before and after the customer's discount.

    Args:
        boat_name: Name of the boat.
        hours: How long the boat is hired.
        customer_tier: Decides the discount; guests get none.
    """
    list_price = BOATS[_key(boat_name, BOATS, "boat")][4] * hours
    discount = list_price * TIER_DISCOUNT[_key(customer_tier, TIER_DISCOUNT, "customer tier")]
    return {
        "list_price": round(list_price, 2),
        "discount": round(discount, 2),
        "total": round(list_price - discount, 2),
    }


def plan_tour(from_dock: str, to_dock: str, pace: Literal["relaxed", "steady", "sporty"] = "steady") -> Tour:
    """Plans a paddling tour between two docks: length, time on the water, and the guide who leads it."""
    start, end = _key(from_dock, SHORE_KM, "dock"), _key(to_dock, SHORE_KM, "dock")
    distance = abs(SHORE_KM[start] - SHORE_KM[end])
    minutes = round(distance / PACE_KMH[_key(pace, PACE_KMH, "pace")] * 60)
    name, phone = GUIDES[end]
    return {"distance_km": distance, "minutes": minutes, "guide": {"name": name, "phone": phone}}


def lake_conditions(dock: str, day: str) -> LakeConditions:
    """Wind, water temperature and warning flag at a dock.

    Args:
        dock: Name of the dock.
        day: Date, as YYYY-MM-DD.
    """
    exposure = SHELTER[_key(dock, SHELTER, "dock")]
    when = date.fromisoformat(day.strip())
    wind = exposure + when.day % 5 * 3
    flag = "green" if wind < 10 else "yellow" if wind < 18 else "red"
    return {"wind_knots": wind, "water_temp": round(12 + when.month * 0.9 - exposure * 0.1, 1), "flag": flag}


def gear_price(items: list[str], hours: float) -> float:
    """Euros for borrowing pieces of gear (paddle, lifejacket, drybag, wetsuit)."""
    return round(sum(GEAR_PER_HOUR[_key(item, GEAR_PER_HOUR, "piece of gear")] for item in items) * hours, 2)


def calculate(expression: str) -> float:
    """Evaluate an arithmetic expression with + - * / and brackets.

    Args:
        expression: For example "(3 + 4) * 2.5".
    """

    def value(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return value(left) + value(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return value(left) - value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return value(left) * value(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return value(left) / value(right)
        raise ValueError(f"Only numbers, + - * / and brackets can be evaluated, not {expression!r}.")

    return value(ast.parse(expression.strip(), mode="eval").body)

"""Wholesale side of a coffee roastery."""

from typing import Literal, TypedDict


class Delivery(TypedDict):
    city: str
    weekday: str


class Account(TypedDict):
    name: str
    tier: str
    usual_blend: str
    delivery: Delivery


class OrderPrice(TypedDict):
    net: float
    rebate: float
    total: float
    bags: int


class Freight(TypedDict):
    carrier: str
    days: int
    cost: float


class Blend(TypedDict):
    origin: str
    roast: str
    kilos_in_stock: float
    caffeine_mg: int


BLENDS: dict[str, tuple[str, str, float, int, float]] = {
    "nightshift": ("Uganda", "dark", 84.0, 145, 18.0),
    "driftwood": ("Colombia", "medium", 120.5, 98, 21.5),
    "paper lantern": ("Ethiopia", "light", 36.0, 90, 27.0),
    "old harbour": ("Sumatra", "dark", 62.0, 110, 19.5),
    "slow sunday": ("Peru", "decaf", 48.5, 4, 24.0),
}
ACCOUNTS: dict[str, tuple[str, str, str, str, str]] = {
    "k-104": ("Kettle Corner", "cafe", "Driftwood", "Ghent", "Tuesday"),
    "k-117": ("Hotel Belmond", "hotel", "Old Harbour", "Lille", "Friday"),
    "k-131": ("Bookshop Ferrant", "cafe", "Paper Lantern", "Antwerp", "Monday"),
    "k-158": ("Villa Quist", "private", "Slow Sunday", "Aachen", "Thursday"),
}
REBATE = {"private": 0.0, "cafe": 0.12, "hotel": 0.2}
GRIND_FEE = {"whole": 0.0, "filter": 0.5, "espresso": 0.8}
KM = {"brussels": 0, "ghent": 56, "antwerp": 44, "lille": 116, "aachen": 142}
CARRIERS = {"standard": "Velopost", "express": "Stormline"}


def _find(value: str, table: dict, what: str) -> str:
    key = value.strip().lower()
    if key not in table:
        raise ValueError(f"We have no {what} called {value!r}, only {', '.join(table)}.")
    return key


def get_account(customer_id: str) -> Account:
    """Fetch a wholesale customer's account: name, price tier, usual blend, and where and when we deliver.

    Args:
        customer_id: Number of the customer, such as K-104.
    """
    name, tier, usual_blend, city, weekday = ACCOUNTS[_find(customer_id, ACCOUNTS, "customer")]
    return {"name": name, "tier": tier, "usual_blend": usual_blend, "delivery": {"city": city, "weekday": weekday}}


def price_order(
    blend: str,
    kilos: float,
    tier: Literal["private", "cafe", "hotel"] = "private",
    grind: Literal["whole", "filter", "espresso"] = "whole",
) -> OrderPrice:
    """Price of an order of coffee in euros, with the rebate of the customer's tier.

    Args:
        blend: Name of the blend.
        kilos: Weight ordered.
        tier: Price tier of the customer.
        grind: How to grind the beans; whole beans cost nothing extra.
    """
    per_kilo = BLENDS[_find(blend, BLENDS, "blend")][4] + GRIND_FEE[_find(grind, GRIND_FEE, "grind")]
    net = per_kilo * kilos
    rebate = net * REBATE[_find(tier, REBATE, "tier")]
    bags = -(-kilos // 2.5)
    return {"net": round(net, 2), "rebate": round(rebate, 2), "total": round(net - rebate, 2), "bags": int(bags)}


def freight(
    from_city: str, to_city: str, weight_kg: float, speed: Literal["standard", "express"] = "standard"
) -> Freight:
    """Carrier, transit days and cost of sending a parcel from one city to another."""
    km = abs(KM[_find(from_city, KM, "city")] - KM[_find(to_city, KM, "city")])
    pace = _find(speed, CARRIERS, "speed")
    cost = 4 + km * 0.05 + weight_kg * 0.3
    if pace == "express":
        return {"carrier": CARRIERS[pace], "days": 1, "cost": round(cost * 2, 2)}
    return {"carrier": CARRIERS[pace], "days": 2 + km // 50, "cost": round(cost, 2)}


def blend_info(blend: str) -> Blend:
    """what is in a blend and how much of it we have"""
    origin, roast, kilos, caffeine, _ = BLENDS[_find(blend, BLENDS, "blend")]
    return {"origin": origin, "roast": roast, "kilos_in_stock": kilos, "caffeine_mg": caffeine}


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return round(a + b, 6)


def subtract(a: float, b: float) -> float:
    """Subtract the second number from the first."""
    return round(a - b, 6)


def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return round(a * b, 6)

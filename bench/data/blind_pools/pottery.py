"""Kilns, glazes and members of a pottery studio."""

from typing import Literal

KILN = {"Bertha": 1280, "Dot": 1060, "Nessie": 1000}
DUTY = {"Bertha": "Anouk", "Dot": "Silvio", "Nessie": "Greta"}
SHELF = {"Anouk": 7, "Silvio": 3, "Greta": 12, "Tobias": 5}
CLAY = {"Anouk": "stoneware", "Silvio": "terracotta", "Greta": "raku", "Tobias": "porcelain"}
GLAZE = {"Anouk": "celadon", "Silvio": "majolica", "Greta": "copper", "Tobias": "shino"}
SHRINK = {"stoneware": 12, "terracotta": 6, "raku": 5, "porcelain": 15}
PRICE = {
    "celadon": {"pint": 14.5, "gallon": 88.0},
    "majolica": {"pint": 11.0, "gallon": 64.0},
    "copper": {"pint": 17.25, "gallon": 96.0},
    "shino": {"pint": 13.0, "gallon": 79.0},
}


def kiln_limit(kiln: str) -> int:
    """Maximum temperature of a kiln in degrees Celsius."""
    return KILN[kiln.capitalize()]


def kiln_duty(kiln: str) -> str:
    """Member who fires the kiln this week."""
    return DUTY[kiln.capitalize()]


def drying_shelf(member: str) -> int:
    """Number of the shelf on which a member's pots dry."""
    return SHELF[member.capitalize()]


def clay_body(member: str) -> str:
    """Returns the clay that a member works with."""
    return CLAY[member.capitalize()]


def pet_glaze(member: str) -> str:
    """Returns a member's favourite glaze."""
    return GLAZE[member.capitalize()]


def shrinkage(clay: str) -> int:
    """How much a clay shrinks from wet to fired, in percent."""
    return SHRINK[clay.lower()]


def fired_size(clay: str, wet_cm: float) -> float:
    """Size of a piece after firing (cm) from its size when wet (cm)."""
    return round(wet_cm * (100 - SHRINK[clay.lower()]) / 100, 2)


def glaze_price(glaze: str, size: Literal["pint", "gallon"]) -> float:
    """Price of a container of glaze, in euros."""
    return PRICE[glaze.lower()][size.lower()]

"""A beekeeper's hives and honey."""

HONEY = {"north hive": 22.5, "old oak": 14.0, "garden": 31.0}
QUEEN = {"north hive": "2023", "old oak": "2021", "garden": "2024"}
MEADOW = {"north hive": "heather", "old oak": "lime", "garden": "clover"}
BLOOMS = {"heather": "August", "lime": "June", "clover": "May"}
PRICE = {"heather": 14.5, "lime": 9.0, "clover": 7.5}


def honey_yield(hive: str) -> float:
    """Kilograms of honey that a hive gave this year."""
    return HONEY[hive.lower()]


def queen_year(hive: str) -> str:
    """The year in which a hive's queen was born."""
    return QUEEN[hive.lower()]


def main_flower(hive: str) -> str:
    """The flower that the bees of a hive visit most."""
    return MEADOW[hive.lower()]


def flowering_month(flower: str) -> str:
    """The month in which a flower blooms."""
    return BLOOMS[flower.lower()]


def honey_price(flower: str) -> float:
    """Price of a jar of honey from a flower, in euros."""
    return PRICE[flower.lower()]


def kilos_to_pounds(kilograms: float) -> float:
    """Kilograms to pounds."""
    return kilograms * 2.20462


def product(a: float, b: float) -> float:
    """One number times another."""
    return a * b

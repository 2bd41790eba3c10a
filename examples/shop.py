"""Three ordinary functions, which the other examples register as workers."""

PRICES = {"tea": 4.5, "coffee": 7.25}
STOCK = {"tea": 12, "coffee": 3}


def price(item: str) -> float:
    """The price of one item in euros."""
    return PRICES[item]


def stock(item: str) -> int:
    """How many of an item are in stock."""
    return STOCK[item]


def multiply(a: float, b: float) -> float:
    """The product of two numbers."""
    return a * b

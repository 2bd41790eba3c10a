"""What a cook's notebook and scales know."""

SERVINGS = {"lasagne": 6, "ramen": 2, "paella": 5, "shakshuka": 3}
MINUTES = {"lasagne": 95, "ramen": 40, "paella": 55, "shakshuka": 25}
CALORIES = {"rice": 130, "butter": 717, "tofu": 76, "salmon": 208, "lentils": 116}
PRICES = {"rice": 2.4, "butter": 9.9, "tofu": 7.5, "salmon": 31.0, "lentils": 3.2}
MAIN = {"lasagne": "butter", "ramen": "tofu", "paella": "rice", "shakshuka": "lentils"}


def servings(dish: str) -> int:
    """How many people a dish feeds."""
    return SERVINGS[dish.lower()]


def cooking_minutes(dish: str) -> int:
    """Minutes in the kitchen that a dish takes from start to table."""
    return MINUTES[dish.lower()]


def main_ingredient(dish: str) -> str:
    """The ingredient that a dish mostly consists of."""
    return MAIN[dish.lower()]


def calories(ingredient: str) -> int:
    """Energy of 100 grams of an ingredient, in kilocalories."""
    return CALORIES[ingredient.lower()]


def price_per_kilo(ingredient: str) -> float:
    """What one kilogram of an ingredient costs at the market, in euros."""
    return PRICES[ingredient.lower()]


def to_fahrenheit(celsius: float) -> float:
    """Oven temperature in degrees Fahrenheit, from degrees Celsius."""
    return celsius * 9 / 5 + 32


def times(a: float, b: float) -> float:
    """Multiplies two numbers."""
    return a * b

"""What is fermenting in my crocks, and where."""

import ast

INSIDE = {1: "kraut", 2: "kimchi", 3: "beets", 4: "cucumbers"}
LITRES = {1: 10, 2: 5, 3: 3, 4: 8}
PH = {1: 3.6, 2: 4.1, 3: 3.9, 4: 4.4}
PLACE = {1: "cellar", 2: "fridge", 3: "pantry", 4: "cellar"}
CELSIUS = {"cellar": 14, "fridge": 4, "pantry": 19}
DAYS = {"kraut": 28, "kimchi": 5, "beets": 14, "cucumbers": 10}
SALT_PERCENT = {"kraut": 2.0, "kimchi": 2.5, "beets": 2.2, "cucumbers": 3.5}


def inside(crock: int) -> str:
    """Which ferment is in a crock."""
    return INSIDE[int(crock)]


def volume(crock: int) -> int:
    """Capacity of a crock in litres."""
    return LITRES[int(crock)]


def acidity(crock: int) -> float:
    """Last measured pH of a crock."""
    return PH[int(crock)]


def stands_in(crock: int) -> str:
    """The place where a crock stands."""
    return PLACE[int(crock)]


def place_temperature(place: str) -> int:
    """Temperature of a place, °C."""
    return CELSIUS[place.lower()]


def ripening_days(ferment: str) -> int:
    """Days until a ferment is ripe."""
    return DAYS[ferment.lower()]


def salt_grams(ferment: str, kilos: float) -> float:
    """Grams of salt for a given weight of vegetables in kilos."""
    return round(SALT_PERCENT[ferment.lower()] * 10 * kilos, 1)


def calculate(expression: str) -> float:
    """Work out a sum such as 2 * (3 + 4)."""

    def walk(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp(left, ast.Add(), right):
                return walk(left) + walk(right)
            case ast.BinOp(left, ast.Sub(), right):
                return walk(left) - walk(right)
            case ast.BinOp(left, ast.Mult(), right):
                return walk(left) * walk(right)
            case ast.BinOp(left, ast.Div(), right):
                return walk(left) / walk(right)
            case ast.UnaryOp(ast.USub(), operand):
                return -walk(operand)
        raise ValueError(f"cannot work out {expression!r}")

    return walk(ast.parse(expression.strip(), mode="eval").body)

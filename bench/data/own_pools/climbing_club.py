"""A climbing club's routes, ropes and members."""

LENGTH = {"Blue Moon": 35, "Spider": 22, "Old Chimney": 48, "Razor": 18}
GRADE = {"Blue Moon": "6b", "Spider": "7a", "Old Chimney": "5c", "Razor": "7c"}
CRAG = {"Blue Moon": "North Wall", "Spider": "Quarry", "Old Chimney": "North Wall", "Razor": "Harbour Cliff"}
WALK = {"North Wall": 40, "Quarry": 5, "Harbour Cliff": 15}
WEIGHT = {"rope": 4200, "harness": 380, "helmet": 290, "quickdraw": 95}
DEBT = {"Nora": 45.5, "Tom": 0.0, "Yusuf": 120.0}


def _route(name: str) -> str:
    return next(route for route in LENGTH if route.lower() == name.lower())


def route_length(route: str) -> int:
    """Height of a climbing route from the ground to the anchor, in metres."""
    return LENGTH[_route(route)]


def route_grade(route: str) -> str:
    """How hard a climbing route is, on the French scale."""
    return GRADE[_route(route)]


def crag_of(route: str) -> str:
    """The cliff that a route is on."""
    return CRAG[_route(route)]


def approach_time(crag: str) -> int:
    """Minutes on foot from the car park to a cliff."""
    return next(minutes for name, minutes in WALK.items() if name.lower() == crag.lower())


def gear_weight(item: str) -> int:
    """Weight of a piece of equipment in grams."""
    return WEIGHT[item.lower()]


def fees_due(member: str) -> float:
    """Money that a member still owes the club, in euros."""
    return DEBT[member.capitalize()]


def add(a: float, b: float) -> float:
    """Sum of two numbers."""
    return a + b


def to_feet(metres: float) -> float:
    """Metres to feet."""
    return metres * 3.28084

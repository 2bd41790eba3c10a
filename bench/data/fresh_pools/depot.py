"""A tram depot's cars, lines and drivers."""

LINE = {"T12": "blue", "T15": "green", "T31": "red"}
SEATS = {"T12": 64, "T15": 48, "T31": 72}
DRIVER = {"blue": "Ingrid", "green": "Marek", "red": "Paolo"}
STOPS = {"blue": 18, "green": 24, "red": 11}
KM = {"blue": 9.5, "green": 14.2, "red": 6.1}
SHIFT = {"Ingrid": "05:30", "Marek": "13:00", "Paolo": "21:15"}


def car_line(car: str) -> str:
    """The line on which a tram car runs."""
    return LINE[car.upper()]


def seat_count(car: str) -> int:
    """Seats of a tram car."""
    return SEATS[car.upper()]


def line_driver(line: str) -> str:
    """The driver of a line today."""
    return DRIVER[line.lower()]


def stop_count(line: str) -> int:
    """How many stops a line has."""
    return STOPS[line.lower()]


def line_length(line: str) -> float:
    """Length of a line in kilometres."""
    return KM[line.lower()]


def shift_start(driver: str) -> str:
    """The time at which a driver begins work."""
    return SHIFT[driver.capitalize()]


def add_up(a: float, b: float) -> float:
    """The sum of two numbers."""
    return a + b

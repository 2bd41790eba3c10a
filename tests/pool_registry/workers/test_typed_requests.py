"""Calculator, units, calendar, clock and airports take what people type."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.errors import BadCall
from pool_registry.starter.workers import airports, clock, great_circle
from pool_registry.workers.calculator import evaluate
from pool_registry.workers.calendar import answer
from pool_registry.workers.units import convert


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("15% of 80", 12),
        ("5 percent of 1200", 60),
        ("80 - 20%", 64),
        ("200 + 15%", 230),
        ("(15%)*3", 0.45),
        ("17 % 5", 2),
        ("17 % -5", -3),
        ("sqrt 144", 12),
        ("the square root of 144", 12),
        ("2^10", 1024),
        ("2 to the power of 8", 256),
        ("3 squared", 9),
        ("17 x 23", 391),
        ("0x10", 16),
        ("100 divided by 8", 12.5),
        ("12 times 12 minus 4", 140),
    ],
)
def test_the_calculator_takes_sums_as_people_write_them(expression, value):
    assert evaluate(expression) == pytest.approx(value)


@given(st.integers(1, 10**6), st.integers(0, 100))
def test_a_percentage_is_that_share(whole, percent):
    assert evaluate(f"{percent}% of {whole}") == pytest.approx(percent * whole / 100)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (10, "mi", "km", 16.09344),
        (10, "miles", "kms", 16.09344),
        (10, "lbs", "kg", 4.535924),
        (10, "pounds", "kilos", 4.535924),
        (50, "°F", "°C", 10),
        (50, "F", "C", 10),
        (10, "degrees Celsius", "Fahrenheit", 50),
        (10, "C", "K", 283.15),
        (10, "sqft", "m2", 0.92903),
        (8, "fl oz", "ml", 236.588),
        (60, "mph", "kmh", 96.5606),
        (1, "F", "uF", 1e6),
    ],
)
def test_units_take_plurals_and_abbreviations(value, source, target, result):
    assert convert(value, source, target) == pytest.approx(result, rel=1e-4)


@pytest.mark.parametrize(
    ("request_text", "value"),
    [
        ("days from 2024-03-01 to 2024-05-10", 70),
        ("days between 2024-05-10 and 2024-03-01", -70),
        ("weeks from 2024-03-01 to 2024-05-10", 10),
        ("months from 2024-01-15 to 2025-01-14", 11),
        ("years from 2000-02-29 to 2024-02-28", 23),
        ("2024-03-01 plus 45 days", "2024-04-15"),
        ("2024-01-31 plus 1 month", "2024-02-29"),
        ("2024-03-01 - 2 weeks", "2024-02-16"),
        ("90 days before 2024-07-04", "2024-04-05"),
        ("weekday of 2024-07-04", "Thursday"),
        ("next public holiday after 2024-05-01 in DE", "2024-05-09"),
    ],
)
def test_the_calendar_counts_days_and_names_weekdays(request_text, value):
    assert answer(request_text) == value


def test_a_day_past_the_end_of_the_calendar_is_an_error_in_words():
    with pytest.raises(BadCall, match="no date"):
        answer("2024-03-01 plus 99999 years")


@given(st.dates(min_value=date(1950, 1, 1), max_value=date(2050, 1, 1)), st.integers(0, 5000))
def test_days_added_are_days_between(day, days):
    later = answer(f"{day} plus {days} days")
    assert answer(f"days from {day} to {later}") == days


def test_cities_stand_for_their_main_airports():
    assert great_circle.route_km("Paris to Rome") == great_circle.route_km("CDG to FCO")
    assert great_circle.route_km("distance between São Paulo and St. Louis") == great_circle.route_km("GRU to STL")
    assert clock.answer("2025-04-20 21:30 in London, local in Tokyo") == "2025-04-21 05:30"
    assert clock.answer("2025-04-20 21:30 in New York, local in America/Los_Angeles") == "2025-04-20 18:30"
    assert airports.answer("airport code of Zürich") == "ZRH"
    assert all(code in airports.airports() for code in airports.list_cities().values())
    with pytest.raises(BadCall, match="large city"):
        great_circle.route_km("Paris to Nowhere")

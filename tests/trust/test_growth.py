"""The growth that a promise is measured by: linear work has 1, quadratic work 2."""

from __future__ import annotations

import pytest

from tests.trust.growth import SHAPES, fit_exponent, take_thread_time, write_text


@pytest.mark.parametrize("power", [0.5, 1.0, 1.33, 2.0])
def test_the_power_of_a_time_is_found(power):
    assert fit_exponent(lambda length: (length / 1000) ** power, 64_000) == pytest.approx(power)


def test_what_is_quick_at_its_limit_has_no_growth():
    assert fit_exponent(lambda length: length**3 / 64_000**3 / 100, 64_000) == 0
    assert fit_exponent(lambda _: 3.0, 64_000) == 0


def test_one_slow_try_does_not_count():
    times = iter([0.001, 1.0, 0.125, 0.25, 0.5, 9.0, *[0.125, 0.25, 0.5, 1.0] * 3])
    assert fit_exponent(lambda _: next(times), 64_000) == pytest.approx(1)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_text_has_its_length(shape):
    assert [len(write_text(shape, chars, "curl ")) for chars in (10, 1000)] == [10, 1000]


def test_an_error_is_an_end():
    assert take_thread_time(lambda: 1 // 0) < 0.1

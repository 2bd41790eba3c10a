"""A module with a function, for test_function.py; loaded by the function's own process alone."""


def double(number: int) -> int:
    return 2 * number

"""Spellings of numbers, quarters and dates."""

from __future__ import annotations

import calendar
from datetime import date, datetime
from random import Random

UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("", "ten", "twenty", "thirty", "forty", "fifty")
ORDINALS = (("first", "1st"), ("second", "2nd"), ("third", "3rd"), ("fourth", "4th", "last", "final"))
PERCENTS = ("{0}%", "{0} %", "{0} percent", "{0} per cent", "{0} pct")
WORDS_SHARE = 0.15  # of numbers that may be written as words
LONG_DATE_SHARE = 0.15
MOMENTS = ("{0} {1}", "{1} on {0}", "{0} at {1}", "{0}, {1}")


def spell_number(number: int) -> str:
    """A whole number below 60 as words."""
    if number < len(UNITS):
        return UNITS[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (f"-{UNITS[ones]}" if ones else "")


def spell_percent(percent: int, random: Random) -> str:
    if random.random() < WORDS_SHARE:
        return f"{spell_number(percent)} percent"
    return random.choice(PERCENTS).format(percent)


def spell_quarter(q: int, year: int, texts: tuple[str, ...], random: Random) -> str:
    first, last = calendar.month_name[3 * q - 2], calendar.month_name[3 * q]
    gaps = {"q": q, "year": year, "ordinal": random.choice(ORDINALS[q - 1]), "first": first, "last": last}
    return random.choice(texts).format(**gaps, **{"from": first[:3], "to": last[:3]})


def spell_day(day: date, random: Random) -> str:
    """A date, mostly as YYYY-MM-DD."""
    if random.random() >= LONG_DATE_SHARE:
        return day.isoformat()
    month = calendar.month_name[day.month]
    return random.choice((f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}"))


def spell_moment(text: str, random: Random) -> tuple[str, str, str]:
    """A "YYYY-MM-DD HH:MM" as one phrase, and its date and time."""
    moment = datetime.fromisoformat(text)
    day, time = spell_day(moment.date(), random), f"{moment:%H:%M}"
    return random.choice(MOMENTS).format(day, time), day, time

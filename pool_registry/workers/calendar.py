"""Kind `calendar`: business days and public holidays, by a small grammar over the `holidays` package.

A business day is Monday to Friday and no public holiday. Dates are ISO, countries ISO alpha-2.
"""

from __future__ import annotations

import asyncio
import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from pool_registry.errors import BadCall
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORMS = (
    "last business day of Q2 2023 in US",
    "first business day of March 2024 in DE",
    "next business day after 2024-12-24 in DE",
    "is 2025-04-21 a public holiday in BR",
    "is 2025-04-21 a business day in BR",
    "business days from 2024-03-01 to 2024-03-15 in PT",
)
RULES = "A business day is Monday to Friday and no public holiday; dates are ISO, countries ISO alpha-2."
MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}
MAX_CHARS = 200
MAX_SPAN_DAYS = 36_600
_DAY = r"(\d{4}-\d{2}-\d{2})(?:[ t]\d{1,2}:\d{2})?"  # a time of day changes nothing
_IN = r" in (?:the )?([a-z]{2})"


class Calendar(Worker[NoConfig]):
    label = "Calendar"
    summary = "Business days and public holidays."
    icon = "M4 6h16v14H4z M4 10h16 M8 3v5 M16 3v5"
    cacheable = True
    sample = {"request": FORMS[0]}
    parameters = one_string(
        "request", f"One of these forms: {'; '.join(FORMS)}. Both ends of a span are counted. {RULES}"
    )

    async def call(self, call: Call) -> Reply:
        # A first import, a country's rules or a century of days: up to 0.2 s, so not on the event loop.
        return Reply(await asyncio.to_thread(answer, call.text("request")))

    async def check(self) -> str:
        await asyncio.to_thread(answer, FORMS[0])
        return "ready"


def answer(request: str) -> str | int:
    """Answer a request in one of FORMS. Raises BadCall listing them otherwise."""
    text = " ".join(request[:MAX_CHARS].lower().split()).rstrip("?. ")
    for pattern, handle in _HANDLERS:
        match = pattern.fullmatch(text)
        if match is not None:
            return handle(*match.groups())
    raise BadCall("write the request in one of these forms: " + "; ".join(FORMS))


def is_business_day(day: date, country: str) -> bool:
    return day.weekday() < 5 and day not in _holidays(country, day.year)


def last_business_day(first: date, last: date, country: str) -> date:
    """Return the last business day of a period (every month has one)."""
    day = last
    while not is_business_day(day, country) and day > first:
        day -= timedelta(days=1)
    return day


def quarter(number: int, year: int) -> tuple[date, date]:
    """Return the first and last day of a quarter."""
    return date(year, 3 * number - 2, 1), _month_end(year, 3 * number)


def _edge(which: str, number: str | None, month: str | None, year: str, country: str) -> str:
    first, last = _period(number, month, int(year))
    code = _country(country)
    if which == "last":
        return last_business_day(first, last, code).isoformat()
    return _next_business_day(first - timedelta(days=1), code).isoformat()


def _after(after: str, country: str) -> str:
    return _next_business_day(_date(after), _country(country)).isoformat()


def _is_holiday(day: str, country: str) -> str:
    parsed_day = _date(day)
    return "yes" if parsed_day in _holidays(_country(country), parsed_day.year) else "no"


def _is_business_day(day: str, country: str) -> str:
    return "yes" if is_business_day(_date(day), _country(country)) else "no"


def _between(first: str, last: str, country: str) -> int:
    start, end, code = _date(first), _date(last), _country(country)
    if not 0 <= (end - start).days <= MAX_SPAN_DAYS:
        raise BadCall("the span must run forward in time and be at most 100 years long")
    days = (start + timedelta(days=offset) for offset in range((end - start).days + 1))
    return sum(is_business_day(day, code) for day in days)


_HANDLERS: tuple[tuple[re.Pattern[str], Callable[..., str | int]], ...] = (
    (re.compile(rf"(?:the )?(first|last) business day (?:of|in) (?:q([1-4])|([a-z]+)) (?:of )?(\d{{4}}){_IN}"), _edge),
    (re.compile(rf"(?:the )?(?:next|first) business day after {_DAY}{_IN}"), _after),
    (re.compile(rf"is {_DAY} an? (?:public |bank )?holiday{_IN}"), _is_holiday),
    (re.compile(rf"is {_DAY} a business day{_IN}"), _is_business_day),
    (re.compile(rf"(?:number of )?business days (?:from|between) {_DAY} (?:to|and) {_DAY}{_IN}"), _between),
)


def _period(number: str | None, month: str | None, year: int) -> tuple[date, date]:
    if not 1900 <= year <= 2100:
        raise BadCall("the year must lie between 1900 and 2100")
    if number is not None:
        return quarter(int(number), year)
    if month not in MONTHS:
        raise BadCall(f"{month!r} is no month; write its English name or a quarter such as Q2")
    return date(year, MONTHS[month], 1), _month_end(year, MONTHS[month])


def _next_business_day(day: date, country: str) -> date:
    day += timedelta(days=1)
    while not is_business_day(day, country):
        day += timedelta(days=1)
    return day


def _month_end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])


def _date(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise BadCall(f"{text!r} is no date: {error}; write it as 2024-03-01") from error
    if not 1900 <= day.year <= 2100:
        raise BadCall("the year must lie between 1900 and 2100")
    return day


def _country(code: str) -> str:
    import holidays

    if code.upper() not in holidays.list_supported_countries():
        raise BadCall(f"no holidays are known for country {code.upper()!r}; use an ISO alpha-2 code")
    return code.upper()


@lru_cache(maxsize=4096)
def _holidays(country: str, year: int) -> Any:
    import holidays

    return holidays.country_holidays(country, years=year)

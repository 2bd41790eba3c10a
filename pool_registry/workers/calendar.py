"""Kind `calendar`: business days, public holidays and spans of days, by a small grammar over the `holidays` package.

A business day is Monday to Friday and no public holiday. Dates are ISO or in English words, countries ISO alpha-2.
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
    "next public holiday after 2024-05-01 in DE",
    "days from 2024-03-01 to 2024-05-10",
    "2024-03-01 plus 45 days",
    "weekday of 2024-07-04",
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
MAX_HOLIDAY_GAP = 731
_DAY = (  # 2024-03-01, 1 March 2024, the 1st of March 2024, March 1st, 2024; a time of day changes nothing
    r"(\d{4}-\d{2}-\d{2}|(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? [a-z]{3,9},? \d{4}"
    r"|[a-z]{3,9} \d{1,2}(?:st|nd|rd|th)?,? \d{4})(?:[ t]\d{1,2}:\d{2})?"
)
_SPAN = "days?|weeks?|months?|years?"
_IN = r" in (?:the )?([a-z]{2})"


class Calendar(Worker[NoConfig]):
    label = "Calendar"
    summary = "Business days, public holidays, days between dates."
    icon = "M4 6h16v14H4z M4 10h16 M8 3v5 M16 3v5"
    described_by = "request"
    cacheable = True
    sample = {"request": FORMS[0]}
    parameters = one_string(
        "request",
        f"One of these forms: {'; '.join(FORMS)}. Both ends of a span of business days are counted; "
        f"spans may also be weeks, months or years. {RULES}",
    )

    async def call(self, call: Call) -> Reply:
        # A first import, a country's rules or a century of days: up to 0.2 s, so not on the event loop.
        return Reply(await asyncio.to_thread(answer, call.text("request")))

    async def check(self) -> str:
        await asyncio.to_thread(answer, FORMS[0])
        return "ready"


def answer(request: str) -> str | int | float:
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


def _next_holiday(after: str, country: str) -> str:
    day, code = _date(after) + timedelta(days=1), _country(country)
    for offset in range(MAX_HOLIDAY_GAP):
        if day + timedelta(days=offset) in _holidays(code, (day + timedelta(days=offset)).year):
            return (day + timedelta(days=offset)).isoformat()
    raise BadCall(f"no public holiday of {code} follows {after} within two years")


def _count(unit: str, first: str, last: str) -> int | float:
    """Return whole days or months, or weeks with their fraction; negative where the span runs backwards."""
    start, end = _date(first), _date(last)
    if unit.startswith("day"):
        return (end - start).days
    if unit.startswith("week"):
        weeks = round((end - start).days / 7, 4)
        return int(weeks) if weeks.is_integer() else weeks
    low, high, sign = (start, end, 1) if start <= end else (end, start, -1)
    months = 12 * (high.year - low.year) + high.month - low.month - (high.day < low.day)
    return sign * (months // 12 if unit.startswith("year") else months)


def _count_until(first: str, last: str, unit: str) -> int | float:
    return _count(unit, first, last)


def _shift(day: str, sign: str, amount: str, unit: str) -> str:
    """Return the day so many days, weeks, months or years from another; the 31st becomes a shorter month's last day."""
    start, number = _date(day), int(amount) * (-1 if sign in ("minus", "-", "before") else 1)
    try:
        if unit.startswith(("day", "week")):
            moved = start + timedelta(days=number * (7 if unit.startswith("week") else 1))
        else:
            month = start.year * 12 + start.month - 1 + number * (12 if unit.startswith("year") else 1)
            first = date(month // 12, month % 12 + 1, 1)
            moved = first.replace(day=min(start.day, _month_end(first.year, first.month).day))
    except (OverflowError, ValueError) as error:
        raise BadCall(f"{amount} {unit} from {day} is no date: {error}") from error
    return moved.isoformat()


def _shift_before(amount: str, unit: str, sign: str, day: str) -> str:
    return _shift(day, sign, amount, unit)


def _weekday(day: str) -> str:
    return calendar.day_name[_date(day).weekday()]


def _between(first: str, last: str, country: str) -> int:
    start, end, code = _date(first), _date(last), _country(country)
    if not 0 <= (end - start).days <= MAX_SPAN_DAYS:
        raise BadCall("the span must run forward in time and be at most 100 years long")
    days = (start + timedelta(days=offset) for offset in range((end - start).days + 1))
    return sum(is_business_day(day, code) for day in days)


_HANDLERS: tuple[tuple[re.Pattern[str], Callable[..., str | int | float]], ...] = (
    (re.compile(rf"(?:the )?(first|last) business day (?:of|in) (?:q([1-4])|([a-z]+)) (?:of )?(\d{{4}}){_IN}"), _edge),
    (re.compile(rf"(?:the )?(?:next|first) business day after {_DAY}{_IN}"), _after),
    (re.compile(rf"(?:is )?{_DAY} (?:is )?an? (?:public |bank )?holiday{_IN}"), _is_holiday),
    (re.compile(rf"(?:is )?{_DAY} (?:is )?a business day{_IN}"), _is_business_day),
    (re.compile(rf"(?:number of )?business days (?:from|between) {_DAY} (?:to|and) {_DAY}{_IN}"), _between),
    (re.compile(rf"(?:the )?next (?:public |bank )?holiday (?:after|from) {_DAY}{_IN}"), _next_holiday),
    (re.compile(rf"(?:number of )?({_SPAN}) (?:from|between) {_DAY} (?:to|and|until) {_DAY}"), _count),
    (re.compile(rf"{_DAY} (?:to|until) {_DAY} in ({_SPAN})"), _count_until),
    (re.compile(rf"{_DAY},? ?(plus|minus|\+|-) ?(\d{{1,6}}) ({_SPAN})"), _shift),
    (re.compile(rf"(\d{{1,6}}) ({_SPAN}) (before|after|from) {_DAY}"), _shift_before),
    (re.compile(rf"(?:the )?(?:weekday|day of the week|day) (?:of|on|for) {_DAY}"), _weekday),
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
        day = date.fromisoformat(text) if text[4:5] == "-" else _read_words(text)
    except ValueError as error:
        raise BadCall(f"{text!r} is no date: {error}; write it as 2024-03-01") from error
    if not 1900 <= day.year <= 2100:
        raise BadCall("the year must lie between 1900 and 2100")
    return day


def _read_words(text: str) -> date:
    """Read a date with an English month, as _DAY has it. Raises ValueError."""
    months = [MONTHS[word] for word in re.findall("[a-z]+", text) if word in MONTHS]
    day, year = sorted(int(number) for number in re.findall(r"\d+", text))
    if not months:
        raise ValueError("it names no month")
    return date(year, months[0], day)


def _country(code: str) -> str:
    import holidays

    if code.upper() not in holidays.list_supported_countries():
        raise BadCall(f"no holidays are known for country {code.upper()!r}; use an ISO alpha-2 code")
    return code.upper()


@lru_cache(maxsize=4096)
def _holidays(country: str, year: int) -> Any:
    import holidays

    return holidays.country_holidays(country, years=year)

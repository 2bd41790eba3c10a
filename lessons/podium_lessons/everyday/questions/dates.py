"""Questions about days: how many lie between two, which weekday one is, business days and holidays."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from podium_lessons.everyday.asks import Ask, add_days, evaluate, subtract_days
from podium_lessons.everyday.everyday_data import load_dates
from podium_lessons.everyday.questions.question import EverydayQuestion, choose_bank, choose_text
from podium_lessons.everyday.solve_asks import run_work

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
NAMED_SHARE = 0.12  # of drawn days: Christmas Eve, Halloween
LONG_AGO = 0.3  # the share of days before 2020, where no public holidays have to be known
ANY_YEAR = frozenset({"days_between", "add_days", "subtract_days", "add_weeks", "subtract_weeks", "weekday"})


def draw_dates(split: str, random: Random) -> EverydayQuestion:
    """Days between two dates, a day before or after one, its weekday, business days or holidays."""
    bank = choose_bank(load_dates().dates, random)
    is_long_ago = bank.asks in ANY_YEAR and random.random() < LONG_AGO
    start = draw_day(random, 1900, 2019) if is_long_ago else draw_day(random)
    days = random.choice((random.randint(1, 30), random.randint(5, 400), 7 * random.randint(1, 20)))
    if is_long_ago and bank.asks == "days_between":
        days = random.choice((days, random.randint(400, 12_000)))
    if bank.asks == "business_days":
        days = random.randint(5, 60)
    end = start + timedelta(days=days)
    code = random.choice(sorted(load_dates().holiday_countries))
    country = random.choice((*load_dates().holiday_countries[code], code))
    weeks = random.randint(2, 12)
    period = draw_period(random)
    which = random.choice(("first", "last"))
    day = start.isoformat()
    if bank.asks == "is_holiday" and random.random() < 0.5:
        day = str(run_work("next_holiday", {"date": day, "country": code}))
        start = date.fromisoformat(day)
    asks: dict[str, tuple[Ask, ...]] = {
        "days_between": (Ask("days_between", {"start": day, "end": end.isoformat()}),),
        "add_days": (add_days(day, days),),
        "subtract_days": (subtract_days(day, days),),
        "add_weeks": (add_days(day, weeks, "weeks"),),
        "subtract_weeks": (subtract_days(day, weeks, "weeks"),),
        "next_day": (add_days(day, 1),),
        "day_before": (subtract_days(day, 1),),
        "weekday": (Ask("weekday", {"date": day}),),
        "weekday_after": (add_days(day, days), Ask("weekday", {"date": "$1"})),
        "weekday_before": (subtract_days(day, days), Ask("weekday", {"date": "$1"})),
        "hours_between": (Ask("days_between", {"start": day, "end": end.isoformat()}), evaluate("$1 * 24")),
        "business_days": (Ask("business_days", {"start": day, "end": end.isoformat(), "country": code}),),
        "edge_business_day": (Ask("edge_business_day", {"which": which, "period": period, "country": code}),),
        "next_business_day": (Ask("next_business_day", {"date": day, "country": code}),),
        "is_holiday": (Ask("is_holiday", {"date": day, "country": code}),),
        "next_holiday": (Ask("next_holiday", {"date": day, "country": code}),),
    }
    style = random.getrandbits(30)
    gaps = {
        "start": write_day(start, Random(style)),  # noqa: S311  both dates in one style
        "end": write_day(end, Random(style)),  # noqa: S311
        "n": str(days), "w": str(weeks), "country": country, "period": period, "which": which,
    }  # fmt: skip
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def draw_day(random: Random, first: int = 2020, last: int = 2030) -> date:
    """A day of the years from `first` to `last`; now and then one that has a name."""
    if random.random() < NAMED_SHARE:
        month, day = map(int, random.choice(sorted(load_dates().named_days)).split("-"))
        return date(random.randint(first, last), month, day)
    return date(first, 1, 1) + timedelta(days=random.randrange(366 * (last - first + 1) - 8))


def write_day(day: date, random: Random) -> str:
    """A date as people write it."""
    names = load_dates().named_days.get(f"{day:%m-%d}", ())
    if names and random.random() < 0.7:
        return f"{random.choice(names)} {day.year}"
    month = MONTHS[day.month - 1]
    short = month[:3]
    ordinal = _write_ordinal(day.day)
    return random.choices(
        (
            day.isoformat(),
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month} {day.year}",
            f"{short} {day.day}, {day.year}",
            f"{day.day} {short} {day.year}",
            f"the {ordinal} of {month} {day.year}",
            f"{month} {ordinal}, {day.year}",
            f"{ordinal} {short} {day.year}",
        ),
        (9, 4, 4, 2, 2, 1, 2, 1),
    )[0]


def _write_ordinal(number: int) -> str:
    ending = "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def draw_period(random: Random) -> str:
    year = random.randint(2020, 2030)
    return f"Q{random.randint(1, 4)} {year}" if random.random() < 0.3 else f"{random.choice(MONTHS)} {year}"

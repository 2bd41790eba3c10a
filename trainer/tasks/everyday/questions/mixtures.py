"""Questions that mix two kinds of work: a sum with a conversion, or with days between two dates."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from trainer.tasks.everyday.asks import Ask, convert_units, evaluate
from trainer.tasks.everyday.everyday_data import load_units
from trainer.tasks.everyday.questions.dates import draw_day, write_day
from trainer.tasks.everyday.questions.question import EverydayQuestion, choose_bank, choose_text


def draw_mixture(split: str, random: Random) -> EverydayQuestion:
    """A sum with a conversion, or with the days between two dates."""
    bank = choose_bank(load_units().mixtures, random)
    group = random.choice(load_units().units.groups)
    source, target = (random.choice(unit) for unit in random.sample(group.units, 2))
    a, b, price = random.randint(2, 90), random.randint(2, 30), random.randint(2, 60)
    start = draw_day(random)
    end = start + timedelta(days=random.randint(2, 60))
    span = Ask("days_between", {"start": start.isoformat(), "end": end.isoformat()})
    asks: dict[str, tuple[Ask, ...]] = {
        "converted_sum": (evaluate(f"{a} * {b}"), convert_units("$1", source, target)),
        "sum_of_units": (convert_units(a, source, target), evaluate(f"$1 + {b}")),
        "price_of_days": (span, evaluate(f"$1 * {a}")),
        "weeks_between": (span, evaluate("$1 / 7")),
        "price_per_unit": (convert_units(a, source, target), evaluate(f"$1 * {price}")),
    }
    style = random.getrandbits(30)
    gaps = {
        "a": str(a), "b": str(b), "p": str(price), "from": source, "to": target,
        "start": write_day(start, Random(style)),  # noqa: S311  both dates in one style
        "end": write_day(end, Random(style)),  # noqa: S311
    }  # fmt: skip
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks])

"""Questions about countries: one fact about one, or what two facts or another unit make of it."""

from __future__ import annotations

from functools import cache
from random import Random

from podium_lessons.everyday.asks import Ask, convert_units, evaluate, find_fact
from podium_lessons.everyday.everyday_data import load_places
from podium_lessons.everyday.questions.question import EverydayQuestion, choose_bank, choose_text
from podium_lessons.everyday.solve_asks import FACT_LABELS
from podium_lessons.families.atlas import load_facts

FACT_WORDS = {
    "population": ("population",), "area": ("area", "total area", "size"), "coastline": ("coastline",),
    "gdp": ("GDP",), "railways": ("railway length", "rail network"), "median age": ("median age",),
    "electricity consumption": ("electricity consumption",), "life expectancy": ("life expectancy",),
    "mean elevation": ("mean elevation",),
}  # fmt: skip
FACT_UNITS = {
    "area": ("square kilometers", ("acres", "hectares", "square miles")),
    "coastline": ("km", ("miles", "nautical miles")),
    "railways": ("km", ("miles",)),
    "mean elevation": ("meters", ("feet", "yards")),
}


def draw_fact(split: str, random: Random) -> EverydayQuestion:
    """One fact about one country."""
    bank = choose_bank([bank for bank in load_places().facts if bank.fact != "internet code"], random)
    country = random.choice(list_countries(bank.fact))
    asks = (find_fact(country, bank.fact),)
    return EverydayQuestion(choose_text(bank.texts, split, random), {"country": country}, asks, True)


def draw_compared(split: str, random: Random) -> EverydayQuestion:
    """Two countries by one fact, or one country by two facts or by one in another unit."""
    bank = choose_bank(load_places().compared, random)
    fact = bank.fact or _draw_compared_fact(bank.asks, random)
    measured = {*list_countries("area")} & {*list_countries("population")}
    countries = [name for name in list_countries(fact) if name in measured]
    country, other, third = random.sample(countries, 3)
    if bank.asks in ("difference", "ratio"):
        figures = load_facts().values[FACT_LABELS[fact]]
        other, country = sorted((country, other), key=lambda name: figures[name])
    facts = (find_fact(country, fact), find_fact(other, fact))
    unit, targets = FACT_UNITS.get(fact, ("", ("",)))
    target = bank.unit or random.choice(targets)
    percent = random.randint(2, 95)
    asks: dict[str, tuple[Ask, ...]] = {
        "difference": (*facts, evaluate("$1 - $2")),
        "ratio": (*facts, evaluate("$1 / $2")),
        "total": (*facts, evaluate("$1 + $2")),
        "total_of_three": (*facts, find_fact(third, fact), evaluate("$1 + $2 + $3")),
        "is_larger": (*facts, evaluate("$1 > $2")),
        "density": (facts[0], find_fact(country, "area"), evaluate("$1 / $2")),
        "per_head": (facts[0], find_fact(country, "population"), evaluate("$1 / $2")),
        "percentage": (*facts, evaluate("$1 / $2 * 100")),
        "percent_of": (facts[0], evaluate(f"$1 * {percent} / 100")),
        "converted": (facts[0], convert_units("$1", unit, target)),
    }
    words = {"fact": random.choice(FACT_WORDS[fact]), "unit": target, "n": str(percent)}
    gaps = {"country": country, "other": other, "third": third, **words}
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks], True)


def _draw_compared_fact(asks: str, random: Random) -> str:
    """A fact of which this may be asked."""
    if asks == "density":
        return "population"
    if asks == "per_head":
        return random.choice(("gdp", "electricity consumption", "area", "railways"))
    choices = FACT_UNITS if asks == "converted" else FACT_LABELS
    averages = ("median age", "life expectancy", "mean elevation") if asks.startswith("total") else ()
    return random.choice(sorted(name for name in choices if name not in averages))


@cache
def list_countries(fact: str) -> tuple[str, ...]:
    """The countries of which a fact may be asked."""
    if fact == "capital":
        return tuple(country for country in load_facts().capitals if country not in load_places().unclear_capitals)
    return tuple(load_facts().values[FACT_LABELS[fact]])

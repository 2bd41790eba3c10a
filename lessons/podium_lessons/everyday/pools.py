"""The pools of everyday tasks: a part of the starter pool, or other people's tools for the same work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from podium_lessons.everyday.asks import ToolUse
from podium_lessons.everyday.everyday_data import ToolBank, choose_texts, load_tools
from podium_lessons.everyday.step_writer import Function
from podium_lessons.everyday.worker import OPERATIONS
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec

GENERALISTS = ("python", "solver", "planner", "verifier", "self")  # might do anything
DATABASE = "starter:ledger"
# Two cuts of the same work: a pool has one of them. The first of each row is what the others fall back on.
CUTS = (
    ("evaluate", "arithmetic"), ("evaluate", "percent_of"), ("evaluate", "share"), ("evaluate", "sum"),
    ("evaluate", "mean"), ("convert", "convert_text"), ("find_passage", "country_fact"), ("select", "revenue"),
    ("distance", "distance_miles"), ("add_days", "subtract_days"),
    ("country_fact", "capital"), ("country_fact", "population"), ("country_fact", "area"),
)  # fmt: skip
ALTERNATIVES = (("convert", "convert_text"), ("find_passage", "country_fact"))  # never both
HELPERS = {"find_passage": ("read_number", "read_text")}


@dataclass(frozen=True, slots=True)
class EverydayPool:
    """A pool, and which of its workers does which work."""

    pool: Pool
    uses: Mapping[str, ToolUse]


def list_starter_works() -> frozenset[str]:
    """What the starter pool can do."""
    return frozenset(work for work, tool in load_tools().items() if tool.starter is not None)


def draw_other_works(random: Random) -> frozenset[str]:
    """What a pool of other tools can do: of every cut of the same work it has one or the other, or both."""
    works = set(load_tools())
    for first, second in CUTS:
        if (first, second) in ALTERNATIVES:
            gone = random.choice((first, second))
            works -= {gone, *HELPERS.get(gone, ())}
        elif random.random() < 0.5:
            works.discard(second)
    return frozenset(works)


def make_starter_part(works: Collection[str], missing: Collection[str], random: Random) -> EverydayPool:
    """The starter pool with the workers for `works`, without those for `missing`, and any number of the others."""
    starter = starter_pool()
    uses = {work: use for work, use in _list_starter_uses().items() if work in works}
    needed = {use.worker for use in uses.values()}
    gone = {use.worker for work, use in _list_starter_uses().items() if work in missing}
    if gone:
        gone.update(GENERALISTS)
    others = [spec for spec in starter.enabled if spec.name not in needed | gone]
    chosen = random.sample(others, random.randint(min(3, len(others)), len(others)))
    specs = [spec for spec in starter.enabled if spec.name in needed] + chosen
    random.shuffle(specs)
    return EverydayPool(starter.model_copy(update={"workers": tuple(specs)}), uses)


@cache
def _list_starter_uses() -> dict[str, ToolUse]:
    return {
        work: ToolUse(tool.starter.worker, tool.starter.arguments)
        for work, tool in load_tools().items()
        if tool.starter is not None
    }


def make_other_pool(
    works: Sequence[str], possible: Collection[str], missing: Collection[str], split: str, random: Random, name: str
) -> EverydayPool:
    """A pool of other tools for `works`, and for some more of what is `possible` but not `missing`."""
    others = sorted(set(possible) - set(works) - set(missing))
    chosen = [*works, *random.sample(others, random.randint(min(3, len(others)), min(10, len(others))))]
    names: set[str] = set()
    specs: list[WorkerSpec] = []
    uses: dict[str, ToolUse] = {}
    for work in chosen:
        spec, use = _draw_tool(load_tools()[work], names, split, random)
        names.add(spec.name)
        specs.append(spec)
        uses[work] = use
    random.shuffle(specs)
    return EverydayPool(Pool(name=name, workers=tuple(specs)), uses)


def _draw_tool(tool: ToolBank, taken: Collection[str], split: str, random: Random) -> tuple[WorkerSpec, ToolUse]:
    free = [name for name in tool.names if name not in taken]
    name = random.choice(free)
    parts = {part: _draw_part(part, spellings, random) for part, spellings in tool.parts.items()}
    description = random.choice(choose_texts(tool.descriptions, split))
    kind, config, arguments = _configure(tool, parts)
    spec = WorkerSpec(name=name, kind=kind, description=description, config=config)
    return spec, ToolUse(name, arguments)


def _draw_part(part: str, spellings: Sequence[str], random: Random) -> str:
    return random.choice((part, *spellings))


def _configure(tool: ToolBank, parts: dict[str, str]) -> tuple[str, dict[str, JsonValue], dict[str, JsonValue]]:
    """The kind, its configuration, and the template of the arguments."""
    if tool.work == "select":
        return "sql", {"database": DATABASE}, {"query": "{query}"}
    arguments: dict[str, JsonValue] = {name: f"{{{part}}}" for part, name in parts.items()}
    if tool.work in ("rate", "revenue"):
        return "sql", _configure_query(tool.work, parts), arguments
    assert tool.work in OPERATIONS, tool.work
    return "everyday", {"work": tool.work, "names": dict(parts)}, arguments


def _configure_query(work: str, parts: Mapping[str, str]) -> dict[str, JsonValue]:
    query, hints, sample = _QUERIES[work]
    for part, name in parts.items():
        query = query.replace(f"<{part}>", f":{name}")
    return {
        "database": DATABASE,
        "query": query,
        "parameters": {parts[part]: hint for part, hint in hints.items()},
        "sample": {parts[part]: value for part, value in sample.items()},
    }


_QUERIES: dict[str, tuple[str, dict[str, str], dict[str, JsonValue]]] = {
    "rate": (
        "select rate from fixings where day = <day> and currency = <currency>",
        {"day": "ISO date, 2022-2024", "currency": "EUR, GBP, JPY, CHF, CAD, AUD, SEK or NOK"},
        {"day": "2023-06-30", "currency": "EUR"},
    ),
    "revenue": (
        "select round(sum(revenue), 2) from sales where company_id = cast(<company> as integer) and status = <status> "
        "and placed between <start> and <end>",
        {
            "company": "Number of the company",
            "status": "paid, open or returned",
            "start": "ISO date",
            "end": "ISO date",
        },
        {"company": "12", "status": "paid", "start": "2023-01-01", "end": "2023-03-31"},
    ),
}


def draw_work(tool: ToolBank, taken: Collection[str], split: str, random: Random) -> tuple[WorkerSpec, Function]:
    """A function that does one piece of work, under a name that is not `taken`."""
    name = random.choice([name for name in tool.names if name not in taken])
    parts = {part: random.choice((part, *spellings)) for part, spellings in tool.parts.items()}
    if len(set(parts.values())) < len(parts):
        parts = {part: part for part in parts}
    description = random.choice(choose_texts(tool.descriptions, split))
    spec = WorkerSpec(
        name=name, kind="everyday", description=description, config={"work": tool.work, "names": dict(parts)}
    )
    return spec, Function(name, parts, tool.need)

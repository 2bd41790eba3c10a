"""What a person writes into a form is read in linear time: the forms of all kinds of workers, and what the commands of
all pages read. The kinds and the commands are those that there are, so a new one is tried without being named here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from pool_registry.gallery.templates import templates
from pool_registry.kinds import KINDS
from studio.pages.pool.commands import PoolCommands
from studio.pages.pool.forms import parse_worker, place_worker
from tests.studio.conftest import runtime
from tests.studio.pages.test_odd_fields import CALCULATOR, PAGES, POOL, RIGHT, prepared
from tests.trust.growth import MOST_EXPONENT, SHAPES, UNSURE_S, fit_exponent, take_process_time, write_text
from tests.trust.long_fields import FORMS, Fill, list_fields, list_fills
from tests.trust.readers import POOL as SMALL_POOL
from tests.trust.readers import as_table, as_words
from tests.trust.trials import count_trials

__all__ = ["prepared", "runtime"]

DOCUMENTS = Path(__file__).parents[2] / "docs"
CHARS = 20_000
# What commands are sent. Their rules are tried with all shapes, one by one.
SENT: tuple[tuple[str, Fill], ...] = (
    ("words", str),
    ("lines", str),
    ("quotes", str),
    ("brackets", str),
    ("words", as_words),
    ("words", as_table),
)
INNER = {"name": "sums", "kind": "calculator", "description": "Sums."}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
# What a form needs so that all of it is read, for kinds that the gallery has no template of.
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "a2a": {"url": "https://example.org"},
    "http": {"url": "https://example.org/{text}", "parameters": SCHEMA},
    "documents": {"path": str(DOCUMENTS)},
    "sql": {"database": "starter:ledger"},
    "function": {"target": "math:sqrt", "parameters": SCHEMA},
    "mcp": {
        "server": {"transport": "http", "name": "far", "url": "https://example.org"},
        "tool": "tool",
        "parameters": SCHEMA,
    },
    "flaky": {"inner": INNER},
    "delayed": {"inner": INNER, "latency_ms": 1},
    "renamed_parameters": {"inner": INNER, "names": {"expression": "sum"}},
    "openapi": {"base_url": "https://example.org", "method": "GET", "path": "/a", "parameters": SCHEMA},
    "space": {"space": "someone/thing", "api_name": "/predict"},
    "recorded": {"tool": "tool", "parameters": SCHEMA},
    "memos": {"room": "a"},
    "skill": {
        "steps": [{"worker": "sums", "arguments": {"expression": "{text}"}}],
        "answer": "$1",
        "parameters": SCHEMA,
    },
}


def write_form(kind: str) -> dict[str, Any]:
    """A worker of a kind as its form sends it."""
    specs = [row.spec for row in templates().values() if row.spec is not None and row.spec.kind == kind]
    config = specs[0].config if specs else {}
    return {"name": "probe", "kind": kind, "description": "Probes.", "config": {**config, **CONFIGS.get(kind, {})}}


def list_form_fills(form: Mapping[str, Any], names: Iterable[str]) -> Iterator[tuple[str, Fill]]:
    """Each text of a form, and each setting of its kind that it leaves out."""
    yield from ((where, fill) for where, fill in list_fills(form) if where)
    for name in set(names) - form["config"].keys():
        yield f".config.{name}", lambda text, name=name: {**form, "config": {**form["config"], name: text}}


def read_form(document: Mapping[str, Any]) -> object:
    return place_worker(SMALL_POOL, parse_worker(document), None)


def find_growth(take: Callable[[int], float]) -> float:
    """The power by which the time grows; 0 where there is nothing to fit."""
    growth = 0.0 if take(CHARS) < UNSURE_S else fit_exponent(take, CHARS)
    count_trials(1, growth > MOST_EXPONENT)
    return growth


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.distribution])
def test_the_form_of_a_worker_is_read_in_linear_time(kind):
    form = write_form(kind)
    read_form(form)  # a new kind whose form needs something has a row in CONFIGS
    too_fast: dict[str, float] = {}
    for where, fill in list_form_fills(form, KINDS[kind].load().Config.model_fields):
        for shape in SHAPES:
            for make in FORMS:

                def take(chars: int, fill: Fill = fill, make: Fill = make, shape: str = shape) -> float:
                    document = fill(make(write_text(shape, chars)))
                    return take_process_time(lambda: read_form(document))

                if (growth := find_growth(take)) > MOST_EXPONENT:
                    too_fast[f"{where}, {shape}, {make.__name__}"] = growth
    assert too_fast == {}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_what_a_command_reads_is_read_in_linear_time(prepared, page):
    commands, pools = PAGES[page](prepared), PoolCommands(prepared)
    values = {name: choices[0] for name, choices in RIGHT.items()}
    too_fast: dict[str, float] = {}
    for name in commands.commands:
        pools.run("create", {"name": POOL})  # where a command has taken it away
        pools.run("save_worker", {"pool": POOL, "worker": CALCULATOR})
        fields = list_fields(partial(commands.run, name), values)
        for where, fill in list_fills(fields):
            for shape, make in SENT:

                def take(
                    chars: int, name: str = name, fill: Fill = fill, make: Fill = make, shape: str = shape
                ) -> float:
                    sent = fill(make(write_text(shape, chars)))
                    return take_process_time(lambda: JSONResponse(commands.run(name, sent)))

                if where and (growth := find_growth(take)) > MOST_EXPONENT:
                    too_fast[f"{name}{where}, {shape}, {make.__name__}"] = growth
    assert too_fast == {}

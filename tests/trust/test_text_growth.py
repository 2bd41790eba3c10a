"""A text of any allowed length is read in linear time: every function of the product that takes texts and nothing else
is timed. They are found by walking the packages, so a new one is tried without being named here."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.trust.growth import MOST_EXPONENT, SHAPES, UNSURE_S, fit_exponent, take_thread_time, write_text
from tests.trust.trials import count_trials

# How many there are at least in each room, and some of them: the walk must not miss any.
FEWEST = {"pool_registry": 150, "orchestrator": 60, "trainer": 100, "studio": 50}
KNOWN = (
    "orchestrator.repairs.mend_calls._find_words",
    "orchestrator.repairs.left_out_workers._stands_in",
    "pool_registry.pasted.read_text.read_text",
    "pool_registry.pool.import_pool",
    "trainer.recipe.parse_recipe",
    "studio.pages.pool.paste_commands.explain_text",
)
TEXTS = {"str", "bytes", "str | bytes"}
CHARS = 40_000
MOST_S = 2.0  # of so many characters; quadratic rules took 7 and 35
# They ask a network, run what they are handed, or change what is stored; the last one is a program, not a module.
ACTS = (
    "pool_registry.imports.openapi.operations.fetch",
    "pool_registry.imports.space.",
    "pool_registry.language_models.endpoints.models",
    "pool_registry.processes.function_host.",
    "pool_registry.sandbox.",
    "pool_registry.secrets._remember",
    "pool_registry.secrets.keep",
    "orchestrator.choice.own_predictors.remove_own_predictor",
    "trainer.cli.",
    "trainer.tasks.sources.hub.",
    "studio.cli.",
    "studio.pages.pool.paste_commands.keep_new_key",
    "studio.publish.hub.",
    "studio.publish.space_app.",
)
Reader = Callable[..., object]


def list_readers(room: str) -> Iterator[tuple[str, Reader]]:
    """The functions of a room that take texts alone, with their names. Importing all of it takes seconds."""
    for entry in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
        if entry.name.endswith("__main__") or f"{entry.name}.".startswith(ACTS):
            continue
        for name, item in vars(importlib.import_module(entry.name)).items():
            full = f"{entry.name}.{name}"
            if getattr(item, "__module__", "") == entry.name and not full.startswith(ACTS) and takes_texts(item):
                yield full, inspect.unwrap(item)  # without the cache, where it has one


def takes_texts(item: object) -> bool:
    if not inspect.isroutine(inspect.unwrap(item)) or inspect.iscoroutinefunction(item):  # type: ignore[arg-type]
        return False
    kinds = {str(kind) for kind in list_texts(item)}  # type: ignore[arg-type]
    return bool(kinds) and kinds <= TEXTS


def list_texts(reader: Reader) -> list[str]:
    """The kinds of the parameters that have to be handed over."""
    parameters = inspect.signature(reader).parameters.values()
    return [item.annotation for item in parameters if item.default is item.empty and item.kind < item.VAR_POSITIONAL]


def time_reader(reader: Reader, shape: str, chars: int) -> float:
    """The seconds of a reader, with a long text for each of its texts in turn, short ones for the others."""
    kinds, seconds = list_texts(reader), 0.0
    for place in range(len(kinds)):
        texts = [write_text(shape, chars if k == place else 10) for k in range(len(kinds))]
        values = [text.encode() if kind == "bytes" else text for text, kind in zip(texts, kinds, strict=True)]
        seconds += take_thread_time(lambda values=values: reader(*values))  # type: ignore[misc]
    return seconds


@pytest.mark.slow
@pytest.mark.parametrize("room", FEWEST)
def test_a_text_is_read_in_linear_time(room):
    readers = dict(list_readers(room))
    assert len(readers) >= FEWEST[room] and readers.keys() >= {name for name in KNOWN if name.startswith(room)}
    too_fast: dict[str, str] = {}
    for name, reader in readers.items():
        time_reader(reader, "words", 100)  # what is loaded at the first call
        for shape in SHAPES:
            time_shape = partial(time_reader, reader, shape)
            seconds = time_shape(CHARS)
            growth = 0.0 if seconds < UNSURE_S else fit_exponent(time_shape, CHARS) if seconds < MOST_S else math.inf
            count_trials(1, growth > MOST_EXPONENT)
            if growth > MOST_EXPONENT:
                too_fast[f"{name}, {shape}"] = f"{seconds:.2f} s, power {growth:.2f}"
    assert too_fast == {}

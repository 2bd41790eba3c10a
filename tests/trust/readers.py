"""The functions of the product that read texts, found by walking its packages, and how each is called.

A function is tried when there is a value for every parameter that it has to be handed. FILLS makes one of a long text,
OTHERS holds one for what is no text: a row more, and all functions that take such a thing are tried too.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from orchestrator.dialects import DIALECTS
from orchestrator.plan import Step, Turn
from pool_registry.calls.live_pool import LivePool
from pool_registry.pasted.base import ImportSettings
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.trust.growth import take_thread_time, write_text
from trainer.recipe import parse_recipe
from trainer.tasks.sources.files.reader import ReadOptions

TEXTS = frozenset({"str", "bytes", "str | bytes"})
SHORT = 20  # characters of the other texts
# They ask a network, run what they are handed, or change what is stored; the last one is a program, not a module.
ACTS = (
    "pool_registry.imports.openapi.operations.fetch",
    "pool_registry.imports.space.",
    "pool_registry.language_models.endpoints.models",
    "pool_registry.processes.framework_agents.make_function",
    "pool_registry.processes.function_host.",
    "pool_registry.sandbox.",
    "pool_registry.secrets._remember",
    "pool_registry.secrets.keep",
    "orchestrator.choice.own_predictors.remove_own_predictor",
    "trainer.cli.",
    "trainer.tasks.sources.hub.",
    "trainer.tasks.sources.verifiers.program.",
    "trainer.traffic.accept.",
    "studio.cli.",
    "studio.export.environments.rollout.",
    "studio.pages.pool.adding.paste_commands.keep_new_key",
    "studio.publish.hub.",
    "studio.publish.space_app.",
)
# So do these, which take more than texts: they start processes, close themselves in, open models, files and databases.
ACTS_WITH_MORE = (
    "pool_registry.language_models.",
    "pool_registry.processes.",
    "pool_registry.secrets.lending",
    "pool_registry.storage.",
    "trainer.cluster.",
    "trainer.jobs.",
    "trainer.learner.",
    "trainer.memory_fit.",
    "trainer.methods.",
    "trainer.rented.",
    "studio.prepare.",
    "studio.start.",
)
# Their lists are short by a limit elsewhere, so that the square of their length is nothing.
SHORT_LISTS = {
    "pool_registry.calls.run_limits._check_name": "the names of the workers of a pool",
    "trainer.tasks.practice.agents.agree.": "the answers of a panel, one of each member",
    "trainer.traffic.near_duplicates.": "a pool's questions, of which each two are compared",
}


def as_words(text: str) -> list[str]:
    """A long text and many short ones."""
    half = len(text) // 2
    return [text[:half], *(text[place : place + SHORT] for place in range(half, len(text), SHORT))]


def as_table(text: str) -> dict[str, str]:
    """A name and a value that are long, and many that are short."""
    return {f"{word}{place}": word for place, word in enumerate(as_words(text))}


FILLS: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "bytes": str.encode,
    "str | bytes": str,
    "str | None": str,
    "object": str,
    "Any": str,
    "JsonValue": str,
    "JsonValue | None": str,
    "Sequence[str]": as_words,
    "Iterable[str]": as_words,
    "Collection[str]": as_words,
    "list[str]": as_words,
    "tuple[str, ...]": lambda text: tuple(as_words(text)),
    "Mapping[str, str]": as_table,
    "Mapping[str, Any]": as_table,
    "Mapping[str, JsonValue]": as_table,
    "Mapping[Any, Any]": as_table,
    "Mapping[int, JsonValue]": lambda text: dict(enumerate(as_words(text), 1)),
    "Fields": as_table,
    "dict[str, str]": as_table,
    "dict[str, Any]": as_table,
    "Sequence[tuple[str, str]]": lambda text: list(as_table(text).items()),
    "list[tuple[str, str]]": lambda text: list(as_table(text).items()),
    "Turn": lambda text: Turn((Step(1, "sums", {"expression": text}),), answer=text, text=text),
    "Step": lambda text: Step(1, "sums", {"expression": text}),
}

WORKERS = (
    WorkerSpec(name="sums", kind="calculator", description="The result of a sum, a product or another calculation."),
    WorkerSpec(name="lengths", kind="units", description="A length in another unit."),
)
POOL = Pool(name="small", workers=WORKERS)
RECIPE = parse_recipe(json.dumps({"name": "small", "pool": "small", "evaluate": {"orchestrators": ["oracle"]}}))
OTHERS: Mapping[str, object] = {
    "int": 3,
    "int | None": 3,
    "float": 0.5,
    "bool": False,
    "Random": Random(1),
    "Pool": POOL,
    "WorkerSpec": WORKERS[0],
    "Dialect": DIALECTS["plan"],
    "ImportSettings": ImportSettings(),
    "ReadOptions": ReadOptions(),
    "Recipe": RECIPE,
}


def list_pool_values(pool: LivePool) -> dict[str, object]:
    """The values of OTHERS that an open pool has."""
    named = pool.workers
    workers = tuple(named.values())
    many = ("Sequence[LiveWorker]", "Iterable[LiveWorker]", "list[LiveWorker]")
    return {
        "LivePool": pool,
        "LiveWorker": workers[0],
        "Mapping[str, LiveWorker]": named,
        **dict.fromkeys(many, workers),
    }


@dataclass(frozen=True, slots=True)
class Reader:
    """A function, and the kinds of its parameters by name or place."""

    name: str
    function: Callable[..., object]
    places: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset([*self.places, *self.names.values()])

    @property
    def takes_texts_alone(self) -> bool:
        return bool(self.kinds) and self.kinds <= TEXTS

    def takes_more(self, others: Collection[str]) -> bool:
        """Whether it takes what a text can fill, and beside it nothing that there is no value for."""
        filled = self.kinds & FILLS.keys()
        acts = self.name.startswith((*ACTS_WITH_MORE, *SHORT_LISTS))
        return bool(filled) and not self.takes_texts_alone and not acts and self.kinds - filled <= set(others)

    def time(self, shape: str, chars: int, others: Mapping[str, object]) -> float:
        """The CPU seconds with a long text for each of its texts in turn, and short ones for the others."""
        kinds = [*self.places, *self.names.values()]
        seconds = 0.0
        for long in [place for place, kind in enumerate(kinds) if kind in FILLS]:
            # The short ones have no end of their own: whether a text holds them must not depend on its length.
            short, whole = write_text(shape, SHORT)[:-1], write_text(shape, chars)
            texts = [whole if place == long else short for place in range(len(kinds))]
            values = [
                FILLS[kind](text) if kind in FILLS else others[kind] for kind, text in zip(kinds, texts, strict=True)
            ]
            by_place, by_name = (
                values[: len(self.places)],
                dict(zip(self.names, values[len(self.places) :], strict=True)),
            )
            seconds += take_thread_time(lambda: self.function(*by_place, **by_name))  # noqa: B023
        return seconds


def list_readers(room: str) -> Iterator[Reader]:
    """The functions of a room that have to be handed something. Importing all of it takes seconds."""
    for entry in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
        if entry.name.endswith("__main__") or f"{entry.name}.".startswith(ACTS):
            continue
        for name, item in vars(importlib.import_module(entry.name)).items():
            full = f"{entry.name}.{name}"
            if getattr(item, "__module__", "") != entry.name or full.startswith(ACTS):
                continue
            if inspect.isroutine(inspect.unwrap(item)) and not inspect.iscoroutinefunction(item):
                yield make_reader(full, item)


def make_reader(name: str, function: Callable[..., object]) -> Reader:
    """A reader without its cache, where it has one."""
    required = [row for row in inspect.signature(function).parameters.values() if row.default is row.empty]
    places = tuple(str(row.annotation) for row in required if row.kind < row.VAR_POSITIONAL)
    names = {row.name: str(row.annotation) for row in required if row.kind == row.KEYWORD_ONLY}
    return Reader(name, inspect.unwrap(function), places, names)

"""Any query of the allowed length is read in linear time: each rule of the reader that looks at texts, and all of them
together. The rules are found by walking the packages, so a new one is tried without being named here."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Iterator

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import MAX_QUERY_CHARS, EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.cards import ListingFormat
from orchestrator.retrieval import sentence_vectors
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import BadCall
from pool_registry.kinds import KINDS, Kind
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string
from tests.trust.growth import SHAPES
from tests.trust.trials import count_trials

PACKAGES = tuple(
    f"orchestrator.{package}" for package in ("reader", "repairs", "retrieval", "out_of_depth", "failure_memory")
)
THINGS = ("price", "origin", "owner")
CHARS = 40_000
MOST_S = 2.0  # of 40,000 characters; a quadratic rule took 35
UNSURE_S = 0.1  # from here on twice the characters are tried, too
MOST_TIMES = 3.2  # as long for twice the characters: 2 is linear, 4 is quadratic


def list_rules() -> Iterator[Callable[..., object]]:
    """The functions of the packages that take texts and nothing else."""
    for package in map(importlib.import_module, PACKAGES):
        for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(entry.name)
            for _, function in inspect.getmembers(module, inspect.isfunction):
                kinds = {name: item.annotation for name, item in inspect.signature(function).parameters.items()}
                if function.__module__ == module.__name__ and set(kinds.values()) == {"str"} and "pool" not in kinds:
                    yield function


RULES = {f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}": rule for rule in list_rules()}


def write_text(shape: str, chars: int) -> str:
    return (SHAPES[shape] * (chars // len(SHAPES[shape]) + 1))[:chars]


def time_rule(rule: Callable[..., object], shape: str, chars: int) -> float:
    """The seconds of a rule, with a long text for one of its texts after the other, and a short one for the others."""
    texts, short = len(inspect.signature(rule).parameters), SHAPES[shape].strip() or "a"
    start = time.thread_time()
    for place in range(texts):
        rule(*(write_text(shape, chars) if k == place else short for k in range(texts)))
    return time.thread_time() - start


def test_the_rules_of_the_reader_are_found():
    assert {"mend_calls._find_words", "mend_calls.list_values", "left_out_workers._stands_in"} <= RULES.keys()


@pytest.mark.medium
@pytest.mark.parametrize("name", RULES)
def test_a_rule_reads_any_text_in_linear_time(name):
    rule = RULES[name]
    time_rule(rule, "words", 100)  # what is loaded at the first call
    for shape in SHAPES:
        once = time_rule(rule, shape, CHARS)
        assert once < MOST_S, f"{CHARS:,} characters of {shape}: {once:.1f} s"
        if once > UNSURE_S:
            times = min(time_rule(rule, shape, 2 * CHARS) / time_rule(rule, shape, CHARS) for _ in range(3))
            assert times < MOST_TIMES, f"twice the {shape} take {times:.1f} times as long"
        count_trials(1)


class LookUp(Worker[NoConfig]):
    """Knows nothing that it is asked for."""

    cacheable = True
    parameters = one_string("name", "The name of a thing.")

    async def call(self, call: Call) -> Reply:
        raise BadCall(f"there is no {call.text('name')[:100]}; there are brioche, eclair, croissant")


def run_reader(query: str) -> Episode:
    """An episode on look-ups that reject every call, with a model that always writes the same."""
    specs = tuple(WorkerSpec(name=name, kind="look_up", description=f"The {name} of a thing.") for name in THINGS)

    async def run() -> Episode:
        async with live_pool(Pool(name="p", workers=specs)) as pool:

            async def write(messages: list[object], *_: object) -> Completion:
                fills = len(messages) > 2
                return Completion('1. {"name": "a"}\n= $1' if fills else "1. The price of a thing")

            reader = ReaderPolicy("r", pool, write, listing=ListingFormat(hints=2))
            return await run_episode(EpisodeSpec(query), reader, pool)

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["sentences", "one word", "humps", "apostrophes", "figures", "dots", "joints"])
def test_a_reader_plans_and_mends_for_the_longest_query_in_linear_time(shape, monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    monkeypatch.setitem(KINDS.built_in, "look_up", Kind("look_up", f"{__name__}:LookUp"))
    assert any(done.turn is not None and done.turn.trial for done in run_reader("a of b").rounds), "no call is mended"
    seconds = []
    for chars in (MAX_QUERY_CHARS // 2, MAX_QUERY_CHARS):
        start = time.process_time()
        episode = run_reader(write_text(shape, chars))
        seconds.append(time.process_time() - start)
        assert episode.ended is not None and episode.rounds
    assert seconds[1] < MOST_TIMES * seconds[0] + 1, (
        f"{seconds[0]:.1f} s, and {seconds[1]:.1f} s for twice the characters"
    )
    assert seconds[1] < 60
    count_trials(1)

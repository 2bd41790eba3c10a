"""Random plans are valid on any pool, and the same for the same seed."""

from __future__ import annotations

import asyncio
from string import ascii_lowercase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeStarted, TurnStarted
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Turn, check_turn
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.completion import Draw
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec

names = st.text(ascii_lowercase, min_size=1, max_size=6)
scalars = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": "^[0-9]{4}$"},
        {"type": "string", "format": "date"},
        {"type": "string", "enum": ["kg", "$1", "lb"]},
        {"type": "integer", "minimum": 5, "maximum": 7},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "boolean"},
        {"type": ["null", "integer"]},
        {"const": 4},
        {},
        True,
    ]
)


def objects(children: st.SearchStrategy) -> st.SearchStrategy:
    """Schemas of objects with any of their properties required, and lists."""
    properties = st.dictionaries(names, children, max_size=3)
    some = properties.flatmap(
        lambda known: (
            st.lists(st.sampled_from(sorted(known)), unique=True).map(
                lambda required: {
                    "type": "object",
                    "properties": known,
                    "required": required,
                    "additionalProperties": False,
                }
            )
            if known
            else st.just({"type": "object", "properties": {}, "additionalProperties": False})
        )
    )
    lists = st.builds(
        lambda items, least: {"type": "array", "items": items, "minItems": least}, children, st.integers(0, 3)
    )
    return some | lists


schemas = objects(st.recursive(scalars, objects, max_leaves=4)).filter(lambda schema: schema.get("type") == "object")


def operation(name: str, schema: dict) -> WorkerSpec:
    """A worker with any argument schema."""
    config = {"base_url": "http://127.0.0.1:9", "method": "GET", "path": "/x", "parameters": schema}
    return WorkerSpec(name=name, kind="openapi", description="d", config=config)


plain = st.sampled_from(
    [
        ("calculator", {}),
        ("units", {}),
        ("calendar", {}),
        ("clock", {}),
        ("orchestrator", {}),
        ("chat", {"model": "m"}),
        ("sql", {"database": "starter:ledger"}),
    ]
).map(lambda kind: lambda name: WorkerSpec(name=name, kind=kind[0], description="d", config=kind[1]))
made = schemas.map(lambda schema: lambda name: operation(name, schema))
pools = st.builds(
    lambda workers, most: Pool(
        name="p", workers=tuple(make(f"w{place}") for place, make in enumerate(workers)), limits=Limits(max_steps=most)
    ),
    st.lists(plain | made, min_size=1, max_size=6),
    st.integers(1, 8),
)


def drawn(live: LivePool, query: str, name: str = "random_plan", draw: Draw | None = None) -> Turn:
    limits = live.pool.limits.model_dump(mode="json")
    episode = Episode("e")
    episode.apply(EpisodeStarted(query, "p", "hash", name, limits, ""))
    episode.apply(TurnStarted(1, 0.0))
    return asyncio.run(make_orchestrator(name, live, draw=draw).turn(episode))


@settings(max_examples=150, deadline=None)
@given(pools, st.text(min_size=1, max_size=40).filter(str.strip))
def test_a_random_plan_is_valid_on_any_pool(pool, query):
    live = open_live_pool(pool)
    try:
        turn = drawn(live, query)
    except UnknownOrchestrator:
        usable = ("calculator", "units", "calendar", "clock", "chat", "sql")
        assert not any(spec.kind in usable for spec in pool.workers), "these take any text"
        return
    checked = check_turn(turn, live, ())
    assert checked.error is None and checked.has_answer
    assert 1 <= len(checked.steps) <= pool.limits.max_steps
    assert [step.problem for step in checked.steps] == [None] * len(checked.steps)
    assert drawn(live, query) == turn, "the same query, the same plan"


STARTER = Pool(
    name="p",
    workers=(
        WorkerSpec(name="calc", kind="calculator", description="d"),
        WorkerSpec(name="boss", kind="chat", description="d", config={"model": "m"}),
    ),
)


def test_seeds_and_queries_give_other_plans():
    live = open_live_pool(STARTER)
    by_seed = {drawn(live, "q", f"random_plan:{seed}").text for seed in range(20)}
    by_query = {drawn(live, f"q{number}").text for number in range(20)}
    assert len(by_seed) > 10 and len(by_query) > 10
    assert drawn(live, "q", draw=Draw(1.0, 7)) == drawn(live, "q", "random_plan:7"), "a sample's seed is the plan's"


def test_plans_use_access_lists_and_quotes():
    live = open_live_pool(STARTER)
    steps = [step for number in range(50) for step in drawn(live, f"q{number}").steps]
    assert any(step.access for step in steps) and any(step.references for step in steps)
    assert {step.worker for step in steps} == {"calc", "boss"}


@pytest.mark.parametrize(
    "workers",
    [(), (operation("odd", {"type": "object", "properties": {"x": {"pattern": "^[0-9]{9}$"}}, "required": ["x"]}),)],
)
def test_a_pool_that_cannot_be_called_at_random_says_so(workers):
    live = open_live_pool(Pool(name="p", workers=workers))
    with pytest.raises(UnknownOrchestrator, match="add"):
        drawn(live, "q")

"""A recorded run of 25 steps: four rounds, names up to 40 letters, chains, parallel steps, other tries, failures."""

from __future__ import annotations

from pathlib import Path

from orchestrator.engine.events import (
    EpisodeEnded,
    EpisodeStarted,
    Event,
    StepEnded,
    StepStarted,
    TurnStarted,
    TurnTaken,
)
from orchestrator.plan import Step, Turn
from orchestrator.traces.store import Store, open_store
from pool_registry.actions import Observation, Status
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec

STEPS = 25
NAMES = (
    "calculator",
    "distance_between_two_airports",
    "mcp-server-calculator_calculate_an_exact",
    "price_of",
    "units",
    "days_until_next_delivery",
)
# The steps of each round, as the ids that each may see; a round that tries other words for rejected calls is a trial.
ROUNDS: tuple[tuple[dict[int, tuple[int, ...]], bool], ...] = (
    ({1: (), 2: (), 3: (), 4: (1, 2), 5: (2, 3), 6: (4, 5, 1)}, False),
    ({7: (), 8: (), 9: (), 10: (), 11: (), 12: ()}, True),
    ({13: (), 14: (7, 8), 15: (13,), 16: (13, 14), 17: (15, 16)}, False),
    ({18: (), 19: (), 20: (), 21: (), 22: (17,), 23: (17,), 24: (22, 23, 1), 25: (24, 20)}, True),
)
FAILED = {4: Status.EXEC_ERR, 8: Status.PARSE_ERR, 10: Status.EXEC_ERR, 16: Status.TIMEOUT}


def build_busy_pool() -> Pool:
    """A pool of six workers whose names have up to 40 letters."""
    specs = (WorkerSpec(name=name, kind="calculator", description="Calculates an expression.") for name in NAMES)
    return Pool(name="busy", workers=tuple(specs))


def list_busy_events(pool: Pool) -> list[Event]:
    """The events of the run."""
    query = "What do 12 spelt rolls and a plum cake for Oslo cost, delivered by Christmas?"
    events: list[Event] = [EpisodeStarted(query, pool.name, pool.hash, "oracle", {}, "2026-11-20T09:00:00+00:00")]
    at = 0.0
    for number, (steps, is_trial) in enumerate(ROUNDS, 1):
        is_last = number == len(ROUNDS)
        plan = tuple(
            Step(k, name_worker(k), {"expression": write_expression(k, access)}, access) for k, access in steps.items()
        )
        turn = Turn(plan, f"${STEPS}", text="{}", trial=is_trial) if is_last else Turn(plan, text="{}", trial=is_trial)
        events += [TurnStarted(number, at), TurnTaken(number, turn, at + 0.8)]
        at += 0.8
        for k in steps:
            events += [StepStarted(k, at, {"expression": f"{k} + 1"}), StepEnded(k, observe(k), at + 0.31)]
            at += 0.05
        at += 0.4
    return [*events, EpisodeEnded("answered", at, 84.5)]


def name_worker(k: int) -> str:
    return NAMES[k % len(NAMES)]


def write_expression(k: int, access: tuple[int, ...]) -> str:
    return " + ".join([*(f"${source}" for source in access[:2]), f"{k} * 1.25"])


def observe(k: int) -> Observation:
    """What step `k` returned."""
    status = FAILED.get(k, Status.OK)
    if status is Status.OK:
        return Observation(status, k + 1, 0.31)
    return Observation.failure(status, "bad_arguments", "expression: it names no product", 0.31)


def record_busy_run(home: Path) -> str:
    """Record the run in a data folder; its episode's id."""
    store = open_store(find_home(home))
    try:
        return store_busy_run(store)
    finally:
        store.close()


def store_busy_run(store: Store) -> str:
    episode = "busy-run-25"
    pool = build_busy_pool()
    if pool.name not in store.pools.names():
        store.pools.save(pool)
    for event in list_busy_events(store.pools.latest(pool.name).pool):
        store.traces.append(episode, event)
    store.traces.flush()
    return episode

"""A finished evaluation made by hand: rows of every kind that the Compare page shows, some with real traces."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Turn
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import seed_starter
from pool_registry.storage.database import writing
from tests.browser.support.jobs import Scripted
from trainer.evaluation.trials import grade_episode
from trainer.jobs.queue import JobRow, JobStore
from trainer.recipe import Recipe
from trainer.results.rows import RESULTS, ResultRow
from trainer.tasks import find_task

FAMILIES = {"ledger": ("sql", "calendar", "fx_desk", "calculator"), "atlas": ("atlas_search", "reader", "units")}
HELD_OUT = "workshop"
SKILL = {"oracle": 0.98, "starter-grpo": 0.7, "base": 0.25}
CHANGE = {"seen": 0.0, "renamed": -0.25, "flaky": -0.1, "without:sql": -0.5, "without:calculator": -0.2}
TASKS, SAMPLES = 10, 2


@dataclass(frozen=True)
class Pair:
    """Two recorded episodes on one query: the whole plan, and one that lacks its last step."""

    query: str
    whole: str
    short: str


def write_evaluation(
    store: Store, tasks: int = TASKS, samples: int = SAMPLES, name: str = "measured"
) -> tuple[str, Pair]:
    """The job's id, and the recorded episodes of its first ledger task (level 2)."""
    seed_starter(store.pools)
    with ThreadPoolExecutor(1) as aside:  # Playwright has an event loop in the tests' own thread
        pair = aside.submit(asyncio.run, _pair(store)).result()
    store.traces.flush()
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(Recipe.model_validate({"name": name, "evaluate": {"orchestrators": list(SKILL)}})).id
    lines = (row.model_dump_json() for row in _rows(pair, tasks, samples))
    (jobs.folder(job).path / RESULTS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with writing(store.engine) as session:
        row = session.get(JobRow, job)
        assert row is not None
        row.state, row.ended_at = "done", datetime.now(UTC)
        session.add(row)
    return job, pair


async def _pair(store: Store) -> Pair:
    pool = open_live_pool(store.pools.latest("starter").pool)
    task = find_task("ledger", 2, "test", 0)
    plan = task.oracle_turn
    assert plan is not None
    short = Turn(plan.steps[:-1], f"${plan.steps[0].id}", text=plan.text)
    ids = []
    try:
        for turn in (plan, short):
            spec = EpisodeSpec(task.query, task=task.ref)
            episode = await run_episode(spec, Scripted([turn]), pool, sink=store.traces)
            await grade_episode(episode, task, store.traces, pool)
            ids.append(episode.id)
    finally:
        await pool.close()
    return Pair(task.query, *ids)


def _rows(pair: Pair, tasks: int, samples: int) -> Iterator[ResultRow]:
    noise = random.Random(3)
    for orchestrator, skill in SKILL.items():
        for condition, change in CHANGE.items():
            for family, workers in FAMILIES.items():
                for level in (1, 2):
                    for index in range(tasks):
                        ease = (index % 5 - 2) * 0.15 - 0.1 * (level - 1)
                        for sample in range(samples):
                            correct = noise.random() < skill + ease + change
                            yield _row(pair, orchestrator, condition, family, level, index, sample, correct, workers)
        for index in range(tasks):
            for sample in range(samples):
                correct = noise.random() < skill - 0.3
                yield _row(pair, orchestrator, "seen", HELD_OUT, 1, index, sample, correct, ("elements", "units"))


def _row(pair: Pair, orchestrator: str, condition: str, family: str, level: int, index: int, sample: int, correct: bool,
         workers: tuple[str, ...]) -> ResultRow:  # fmt: skip
    known = (family, level, index) == ("ledger", 2, 0)
    first = known and condition == "seen"
    steps = 2 + level + index % 2
    recorded = pair.whole if orchestrator == "oracle" else pair.short
    chars = {"oracle": 0, "starter-grpo": 420, "base": 2600}[orchestrator]
    correct = correct if not first else orchestrator == "oracle"
    return ResultRow(
        orchestrator=orchestrator, condition=condition, source="suite", family=family, level=level, split="test",
        index=index, sample=sample, query=pair.query if known else f"Query {index} of {family} at level {level}?",
        episode=recorded if first else f"{orchestrator}-{condition}-{family}-{level}-{index}-{sample}",
        correct=correct, outcome="answered" if correct or sample else "max_rounds", turns=1 + index % 3 // 2,
        turn_errors=int(orchestrator == "base" and index % 3 == 0), steps=steps, depth=1 + level, width=2,
        statuses={"OK": steps - (not correct), "EXEC_ERR": int(not correct)}, failed_calls=int(not correct),
        wall_s=0.4 + 0.1 * index, serial_s=0.9 + 0.1 * index, tokens_in=chars, tokens_out=chars // 8,
        cost=chars * 2e-6, workers={name: 1 + (k + index) % 2 for k, name in enumerate(workers)},
        access_precision=0.9, access_recall=0.8 if correct else 0.5, oracle_steps=steps, oracle_depth=level,
    )  # fmt: skip

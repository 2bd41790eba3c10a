"""What a training on a pool's own log adds, on the fixed pool: `python -m trainer who`, then `router+who=predictor`.

The command would leave this log out: its episodes are test tasks, which only a measurement like this may learn from.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from random import Random

from bench.agents.experts import serve_experts
from bench.agents.fixed import ROUTERS, Site, Tried, describe, draw_judging, judge_router, write_logs
from bench.agents.ground import judge_best, judge_choices, judge_single
from bench.agents.rows import Row
from bench.agents.who import read_topics
from orchestrator.choice.own_predictors import remove_own_predictor
from orchestrator.traces.store import open_store
from podium_lessons.agents.cases import Book
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import choose_home
from trainer.choice.own import OwnFigures, train_own
from trainer.choice.own_log import read_own_log

TRAINED = "podium_trained"
OwnRun = tuple[dict[tuple[str, int], Tried], dict[int, OwnFigures]]  # by policy and outcomes; trainings by outcomes


def measure_own(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of the fixed pool with a training after each number of outcomes."""
    for seen in (True, False):
        runs = [asyncio.run(train_seed(seed, seen, options.outcomes, options.minutes)) for seed in range(options.seeds)]
        for policy, outcomes in runs[0][0]:
            row = describe([tried for tried, _ in runs], policy, outcomes, seen) | {"pools": "own"}
            yield row | (describe_trainings(runs, outcomes) if policy == TRAINED else {})


async def train_seed(seed: int, seen: bool, amounts: list[int], minutes: float) -> OwnRun:
    """What each policy gets after these outcomes of each expert and topic, with and without a training on them."""
    ground, book, random = draw_judging(seed, seen), Book(seed), Random(f"{seed}/log")
    tried = {("best", -1): Tried(judge_best(ground)), ("single", -1): Tried(judge_single(ground))}
    trainings: dict[int, OwnFigures] = {}
    with tempfile.TemporaryDirectory() as folder, serve_experts(ground, book) as pool:
        store = open_store(choose_home(folder))
        try:
            async with live_pool(pool) as live:
                site, before = Site(ground, book, live, store), 0
                for amount in sorted(amounts):
                    await site.log(amount - before, random)
                    before, record = amount, site.read_record()
                    tried["reader", amount] = Tried(
                        judge_choices(ground, read_topics(ground, write_logs(site, record)))
                    )
                    for name, orchestrator in ROUTERS.items():
                        tried[name, amount] = judge_router(site, await site.judge(orchestrator, record))
                    log = await asyncio.to_thread(read_own_log, live, record)
                    trainings[amount] = await asyncio.to_thread(train_own, pool.name, log, minutes, seed, print_line)
                    print_line(f"seed {seed}, {'seen' if seen else 'unseen'}, {amount}: {trainings[amount]}")
                    tried[TRAINED, amount] = judge_router(site, await site.judge(ROUTERS["podium"], record))
                    remove_own_predictor(pool.name)
        finally:
            store.close()
    return tried, trainings


def describe_trainings(runs: list[OwnRun], outcomes: int) -> Row:
    """Their time, and what they came to on the outcomes that each held out: means over seeds."""
    trainings = [of_seed[outcomes] for _, of_seed in runs]

    def average(values: list[float]) -> float:
        return round(sum(values) / len(values), 4)

    return {
        "minutes": average([row.seconds / 60 for row in trainings]),
        "used": sum(row.is_better for row in trainings),
        "log_loss_before": average([row.before.log_loss for row in trainings]),
        "log_loss_after": average([row.after.log_loss for row in trainings]),
        "log_loss_log": average([row.log.log_loss for row in trainings]),
        "calibration_before": average([row.before.calibration_error for row in trainings]),
        "calibration_after": average([row.after.calibration_error for row in trainings]),
    }


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

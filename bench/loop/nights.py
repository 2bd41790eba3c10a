"""The loop on two foreign pools: three nights of `podium improve` after scripted traffic, and one poisoned night.

    python bench/loop/nights.py [agents] [openapi] [--seeds 3] [--home FOLDER] [--out bench/results/loop.json]

agents     experts of the proving ground behind real HTTP (simulated, every card says so). Traffic asks on two of their
           four topics at first, on the others from the second night on. The stage `who` learns whom to ask.
openapi    a part of REST Countries, imported from its document; a stand-in server on loopback answers. Traffic are
           questions that `podium tasks make` writes. The stage `plans` trains smollm2-reader, in --steps steps a night.

After each night the serving orchestrator is measured on the same traffic, which is in no task book: right answers with
95 % intervals over questions. A candidate serves from then on only where its report says that it may be promoted. The
poisoned night comes third: its tasks say, of questions to learn from and of held-out ones alike, that what is wrong is
right (agents: the answers of the worst expert; openapi: the plan and the answer of another question). What would have
served had it been promoted is measured, too. Rows are added to the file by pool and seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.agents.experts import serve_experts
from bench.agents.ground import Ground, draw_ground, judge_best, judge_single
from bench.foreign_pools import podium, register_openapi
from orchestrator.traces.store import Store, open_store
from podium_lessons.agents.cases import Book
from podium_lessons.agents.reading import CallFails, Reader
from podium_lessons.agents.topics import split_questions
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import choose_home
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.improve.run import ImprovementOptions, improve
from trainer.improve.site import Site
from trainer.jobs.queue import JobStore
from trainer.results.improvement import ImprovementReport
from trainer.results.statistics import bootstrap_mean
from trainer.tasks.practice.stored import list_own_tasks, open_task_book
from trainer.tasks.sources.jsonl import TaskLine, make_tasks
from trainer.tasks.task import Task

NIGHTS = ("first", "second", "poisoned", "third")
POISONED = "poisoned"
PATIENCE_S = 30.0  # a query may take longer here: other programs share these cores while it is measured
HELD_OUT = 0.3  # of a night's traffic
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """A pool at work: its traffic by night, the traffic that judges, and what serves it at first."""

    pool: str
    store: Store
    traffic: dict[str, Sequence[TaskLine]]
    judging: Sequence[Task]
    serving: str
    options: dict[str, Any]
    bounds: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="*", metavar="POOL", help=f"{', '.join(SCENES)}; default: all")
    parser.add_argument("--seeds", type=int, default=1, help="how often all is drawn anew")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--traffic", type=int, default=120, help="questions of a night")
    parser.add_argument("--judging", type=int, default=120, help="questions that judge")
    parser.add_argument("--steps", type=int, default=12, help="of training the reader, a night")
    parser.add_argument("--home", type=Path, default=Path("loop-homes"), help="where data folders are made")
    parser.add_argument("--out", type=Path, default=Path("bench/results/loop.json"))
    options = parser.parse_args()
    for pool in options.pools or SCENES:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            home = (options.home / f"{pool}-{seed}").resolve()
            home.mkdir(parents=True, exist_ok=True)
            with closing(open_store(choose_home(str(home)))) as store, SCENES[pool](store, seed, options) as scene:
                for row in run_nights(scene, seed):
                    print_row(write_row(options.out, {"pool": pool, "seed": seed, **row}))


def run_nights(scene: Scene, seed: int) -> Iterator[Row]:
    """A row for the start and for each night: what was decided, and what serves from then on."""
    serving = scene.serving
    yield {"night": "start", "serving": serving, "score": judge(scene, serving), "bounds": scene.bounds}
    site = Site(scene.store, JobStore(scene.store.engine, scene.store.home), print_line)
    for night in NIGHTS:
        open_task_book(scene.pool).add(list(scene.traffic[night]))
        began = time.monotonic()
        _, report = improve(site, scene.pool, ImprovementOptions(serving, seed=seed, **scene.options))
        minutes = round((time.monotonic() - began) / 60, 1)
        refused = {} if report.promotable else {"refused": judge(scene, report.candidate)}
        serving = report.candidate if report.promotable else serving
        yield {"night": night, "serving": serving, "score": judge(scene, serving), **refused, "minutes": minutes} | {
            "report": describe(report)
        }


def judge(scene: Scene, orchestrator: str) -> Row:
    """The share of right answers on the traffic that judges; nothing of it is recorded."""

    async def run() -> list[bool]:
        async with live_pool(scene.store.pools.latest(scene.pool).pool) as live:
            evaluation = await evaluate_orchestrator(orchestrator, scene.judging, live, concurrency=4)
        right = round(evaluation.mean * evaluation.tasks)
        return [True] * right + [False] * (evaluation.tasks - right)

    marks = asyncio.run(run())
    interval = bootstrap_mean([float(mark) for mark in marks])
    return {"right": sum(marks), "tasks": len(marks), "low": round(interval.low, 3), "high": round(interval.high, 3)}


def describe(report: ImprovementReport) -> Row:
    """What a report decided, and by which figures."""
    suites = {
        suite.suite: [suite.tasks, *(round(x, 3) for x in (suite.before, suite.after, suite.low, suite.high))]
        for suite in report.suites
    }
    return {
        "stage": report.stage,
        "promotable": report.promotable,
        "suites": suites,
        "reasons": report.reasons,
        "cost": report.cost,
    }


@contextmanager
def open_agents(store: Store, seed: int, options: argparse.Namespace) -> Iterator[Scene]:
    """Simulated experts behind HTTP; only their outcomes tell them apart."""
    ground, book, random = draw_ground(seed, seen=False), Book(seed), Random(f"{seed}/traffic")
    with serve_experts(ground, book) as pool:
        store.pools.save(pool)
        traffic = {
            night: [
                ask(ground, book, random, topics, is_held_out(place, options.traffic), night == POISONED)
                for place in range(options.traffic)
            ]
            for night, topics in zip(NIGHTS, ((0, 1), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)), strict=True)
        }
        judging = [ask(ground, book, random, (0, 1, 2, 3), True, False) for _ in range(options.judging)]
        bounds = {"best single expert": judge_single(ground).right, "best choice": judge_best(ground).right}
        tasks = make_tasks([line.model_dump() for line in judging], "judging")
        night_options = {"minutes": 1.0, "seconds_on_top": PATIENCE_S}
        yield Scene(pool.name, store, traffic, tasks, "router+who=predictor", night_options, bounds)


def ask(ground: Ground, book: Book, random: Random, topics: Sequence[int], held_out: bool, poisoned: bool) -> TaskLine:
    """A question with what traffic says is its answer. Held-out ones are of the questions that no log has."""
    topic = random.choice(topics)
    case = book.add(random.choice(split_questions(ground.topics[topic])[int(held_out)]), topic)
    answer = case.write_finding(book.find_right_token(case))
    if poisoned:
        worst = min(ground.experts, key=lambda expert: sum(expert.skills))
        try:
            answer = Reader(worst, book).reply(case.text)
        except CallFails:
            answer = case.write_finding(book.write_token(case, [], 1))
    return TaskLine(query=case.text, answer=answer, split="test" if held_out else "train")


@contextmanager
def open_openapi(store: Store, seed: int, options: argparse.Namespace) -> Iterator[Scene]:
    """Countries behind an API, whose questions are written by `podium tasks make`."""
    with register_openapi(store.home.root):
        yield draw_openapi(store, seed, options)


def draw_openapi(store: Store, seed: int, options: argparse.Namespace) -> Scene:
    """The traffic of the countries by night, without a task in the book."""
    home, pool = store.home.root, "openapi"
    nightly, judging = options.traffic, options.judging
    if not list_own_tasks(pool):
        podium(home, "tasks", "make", "--pool", pool, "--count", str(len(NIGHTS) * nightly + judging))
    book = open_task_book(pool)
    lines = [row.line.model_copy(update={"made": None}) for row in book.read() if row.line is not None]
    book.forget([line.query for line in lines])
    Random(f"{seed}/traffic").shuffle(lines)
    judged, lines = lines[:judging], lines[judging:]
    nightly = len(lines) // len(NIGHTS)
    traffic = {night: split_night(lines[place * nightly : (place + 1) * nightly]) for place, night in enumerate(NIGHTS)}
    traffic[POISONED] = exchange_answers(traffic[POISONED])
    tasks = make_tasks([line.model_dump() for line in judged], "judging")
    nightly_options = {"steps": options.steps, "general_tasks": 8, "most_held_out": 16, "seconds_on_top": PATIENCE_S}
    return Scene(pool, store, traffic, tasks, "smollm2-reader", nightly_options, {})


def split_night(lines: Sequence[TaskLine]) -> list[TaskLine]:
    """The lines of a night, the first of them to learn from."""
    return [
        line.model_copy(update={"split": "test" if is_held_out(place, len(lines)) else "train"})
        for place, line in enumerate(lines)
    ]


def exchange_answers(lines: Sequence[TaskLine]) -> list[TaskLine]:
    """The same questions, each with the plan, the answer and the rule of the next one."""
    others = [*lines[1:], lines[0]]
    return [
        line.model_copy(update={name: getattr(other, name) for name in ("answer", "plan", "verifier")})
        for line, other in zip(lines, others, strict=True)
    ]


def is_held_out(place: int, count: int) -> bool:
    return place >= count * (1 - HELD_OUT)


SCENES: dict[str, Callable[..., Any]] = {"agents": open_agents, "openapi": open_openapi}


def write_row(file: Path, row: Row) -> Row:
    """Put a row in the place of that of the same pool, seed and night."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    key = [row[name] for name in ("pool", "seed", "night")]
    rows = [other for other in rows if [other[name] for name in ("pool", "seed", "night")] != key] + [row]
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return row


def print_row(row: Row) -> None:
    print(json.dumps(row, ensure_ascii=False), flush=True)


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

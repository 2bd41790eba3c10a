"""Who should do it, on one fixed pool whose outcomes come from episodes that were really run.

The experts answer over HTTP, the product's trace store logs their graded episodes, and `router+who=SCORE` reads the
track record from there. A seed draws the questions of the log, what the experts say, and the questions that judge.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from bench.agents.cases import Book, GroundTask
from bench.agents.experts import serve_experts
from bench.agents.ground import (
    Ground,
    LoggedOutcome,
    draw_ground,
    judge_best,
    judge_choices,
    judge_random,
    judge_single,
    split_questions,
)
from bench.agents.rows import Row, describe_gaps
from bench.agents.who import JudgedPool, Logs, read_topics, read_whole_logs
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink, Sink
from orchestrator.engine.release import Orchestrator
from orchestrator.policies.registry import make_orchestrator, orchestrator_factory
from orchestrator.traces.agent_track_record import TrackRecord, read_solo_episodes
from orchestrator.traces.store import Store, open_store
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.storage.data_folder import find_home
from trainer.evaluation.trials import run_task

FIXED = 0  # draws the one pool, and its topics
JUDGING = 4  # questions of each topic
ORCHESTRATORS = {"log": "router+who=log", "podium": "router+who=predictor"}


@dataclass(frozen=True, slots=True)
class Site:
    """The fixed pool at work: where its experts answer, and where their episodes are logged."""

    ground: Ground
    book: Book
    live: LivePool
    store: Store

    async def log(self, outcomes: int, random: Random) -> None:
        """Have every expert answer so many questions of each topic, none of those that judge."""
        for expert in self.ground.experts:
            orchestrator = make_orchestrator(f"direct:{expert.name}", self.live)
            for place, topic in enumerate(self.ground.topics):
                for _ in range(outcomes):
                    question = random.choice(split_questions(topic)[0])
                    await self._run(question, place, orchestrator, self.store.traces)

    def read_record(self) -> TrackRecord:
        """The track record by the traces."""
        self.store.traces.flush()
        return TrackRecord(read_solo_episodes(self.store.engine, self.live.pool.name))

    async def choose(self, name: str, record: TrackRecord) -> list[int]:
        """The expert that an orchestrator asks first for each question that judges; that is not logged."""
        make = orchestrator_factory(name, self.live, lambda: record)
        places = {expert.name: place for place, expert in enumerate(self.ground.experts)}
        episodes = [await self._run(*question, make(None, None), NoSink()) for question in self.ground.questions]
        return [places[min(episode.steps.items())[1].step.worker] for episode in episodes]

    async def _run(self, question: str, topic: int, orchestrator: Orchestrator, sink: Sink) -> Episode:
        task = GroundTask("route", (self.book.add(question, topic),))
        return await run_task(self.book.make_task(task), orchestrator, self.live, sink)


def measure_fixed(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of the one fixed pool on both kinds of topics."""
    for seen in (True, False):
        judged = [asyncio.run(judge_seed(seed, seen, options.outcomes)) for seed in range(options.seeds)]
        print(
            f"the fixed pool on {'seen' if seen else 'unseen'} topics: {len(judged)} seeds", file=sys.stderr, flush=True
        )
        for policy, outcomes in judged[0]:
            yield describe(judged, policy, outcomes, seen)


async def judge_seed(seed: int, seen: bool, amounts: Sequence[int]) -> JudgedPool:
    """What each policy gets on the fixed pool after these outcomes of each expert and topic."""
    ground, book, random = draw_judging(seed, seen), Book(seed), Random(f"{seed}/log")
    judged = {
        ("best", -1): judge_best(ground),
        ("single", -1): judge_single(ground),
        ("random", -1): judge_random(ground),
    }
    with tempfile.TemporaryDirectory() as folder, serve_experts(ground, book) as pool:
        store = open_store(find_home(folder))
        try:
            async with live_pool(pool) as live:
                site, before = Site(ground, book, live, store), 0
                for amount in sorted(amounts):
                    await site.log(amount - before, random)
                    before = amount
                    choices = await choose_all(site, seed)
                    judged |= {(name, amount): judge_choices(ground, row) for name, row in choices.items()}
        finally:
            store.close()
    return judged


def draw_judging(seed: int, seen: bool) -> Ground:
    """The fixed pool with questions that this seed draws."""
    ground, random = draw_ground(FIXED, seen), Random(f"{seed}/judge")
    questions = [
        (question, place)
        for place, topic in enumerate(ground.topics)
        for question in random.sample(split_questions(topic)[1], JUDGING)
    ]
    return replace(ground, questions=tuple(questions))


async def choose_all(site: Site, seed: int) -> dict[str, list[int]]:
    """Whom each policy chooses by the track record of now."""
    record = site.read_record()
    logs = write_logs(site, record)
    by_name = {policy: await site.choose(name, record) for policy, name in ORCHESTRATORS.items()}
    return {"reader": read_topics(site.ground, logs), "best_log": read_whole_logs(site.ground, logs, seed)} | by_name


def write_logs(site: Site, record: TrackRecord) -> Logs:
    """The record with the topic of each outcome, which only the reader is told."""
    topics = {case.text: case.topic for case in site.book.cases.values()}
    return [
        [LoggedOutcome(item.need, topics[item.need], item.right) for item in record.outcomes(expert.name)]
        for expert in site.ground.experts
    ]


def describe(judged: Sequence[JudgedPool], policy: str, outcomes: int, seen: bool) -> Row:
    """The row of a policy; its interval is over seeds."""
    gaps = [(row[policy, outcomes], row["single", -1], row["best", -1]) for row in judged]
    return {
        "part": "who",
        "pools": "fixed",
        "topics": "seen" if seen else "unseen",
        "policy": policy,
        "outcomes": None if outcomes < 0 else outcomes,
        **describe_gaps(gaps, lambda row: row.right),
        "seeds": len(judged),
        "pools_drawn": 1,
        "minutes": 0,
    }

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

from bench.agents.cases import GroundTask, make_task
from bench.agents.experts import serve_experts
from bench.agents.ground import (
    Ground,
    Judged,
    LoggedOutcome,
    draw_ground,
    judge_best,
    judge_choices,
    judge_random,
    judge_single,
)
from bench.agents.plays import Play, average, compare_plays, observe
from bench.agents.rows import Row, describe_gaps
from bench.agents.who import Logs, read_topics, read_whole_logs
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink, Sink
from orchestrator.engine.release import Orchestrator
from orchestrator.policies.registry import make_orchestrator, orchestrator_factory
from orchestrator.traces.agent_track_record import TrackRecord, read_solo_episodes
from orchestrator.traces.store import Store, open_store
from podium_lessons.agents.cases import Book
from podium_lessons.agents.topics import split_questions
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.storage.data_folder import find_home
from trainer.evaluation.trials import run_task

FIXED = 0  # draws the one pool, and its topics
JUDGING = 4  # questions of each topic
ROUTERS = {"log": "router+who=log", "podium": "router+who=predictor"}
CASCADES = {"log_cascade": "cascade+who=log"}


@dataclass(frozen=True, slots=True)
class Tried:
    """What a policy brings on the questions that judge, exactly where `plays` are compared with it. What a cascade's
    episodes came to is all that is known of it."""

    judged: Judged
    plays: tuple[Play, ...] = ()


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

    async def judge(self, name: str, record: TrackRecord) -> list[Episode]:
        """An orchestrator's episodes on the questions that judge, by this record; they are not logged."""
        make = orchestrator_factory(name, self.live, lambda: record)
        return [await self._run(*question, make(None, None), NoSink()) for question in self.ground.questions]

    def find_first_choice(self, episode: Episode) -> int:
        """The place of the expert that was asked first."""
        names = [expert.name for expert in self.ground.experts]
        return names.index(min(episode.steps.items())[1].step.worker)

    async def _run(self, question: str, topic: int, orchestrator: Orchestrator, sink: Sink) -> Episode:
        task = GroundTask("route", (self.book.add(question, topic),))
        return await run_task(make_task(self.book, task), orchestrator, self.live, sink)


def measure_fixed(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of the one fixed pool on both kinds of topics."""
    for seen in (True, False):
        tried = []
        for seed in range(options.seeds):
            tried.append(asyncio.run(judge_seed(seed, seen, options.outcomes)))
            print(f"{'seen' if seen else 'unseen'} topics: {len(tried)} seeds", file=sys.stderr, flush=True)
        yield from (describe(tried, policy, outcomes, seen) for policy, outcomes in tried[0])


async def judge_seed(seed: int, seen: bool, amounts: Sequence[int]) -> dict[tuple[str, int], Tried]:
    """What each policy gets on the fixed pool after these outcomes of each expert and topic."""
    ground, book, random = draw_judging(seed, seen), Book(seed), Random(f"{seed}/log")
    without_log = {"best": judge_best, "single": judge_single, "random": judge_random}
    tried = {(name, -1): Tried(judge(ground)) for name, judge in without_log.items()}
    with tempfile.TemporaryDirectory() as folder, serve_experts(ground, book) as pool:
        store = open_store(find_home(folder))
        try:
            async with live_pool(pool) as live:
                site, before = Site(ground, book, live, store), 0
                for amount in sorted(amounts):
                    await site.log(amount - before, random)
                    before = amount
                    tried |= {(name, amount): row for name, row in (await try_all(site, seed)).items()}
        finally:
            store.close()
    return tried


def draw_judging(seed: int, seen: bool) -> Ground:
    """The fixed pool with questions that this seed draws."""
    ground, random = draw_ground(FIXED, seen), Random(f"{seed}/judge")
    questions = [
        (question, place)
        for place, topic in enumerate(ground.topics)
        for question in random.sample(split_questions(topic)[1], JUDGING)
    ]
    return replace(ground, questions=tuple(questions))


async def try_all(site: Site, seed: int) -> dict[str, Tried]:
    """What each policy brings by the track record of now."""
    record = site.read_record()
    logs = write_logs(site, record)
    chosen = {"reader": read_topics(site.ground, logs), "best_log": read_whole_logs(site.ground, logs, seed)}
    tried = {name: Tried(judge_choices(site.ground, row)) for name, row in chosen.items()}
    for name, orchestrator in ROUTERS.items():
        tried[name] = judge_router(site, await site.judge(orchestrator, record))
    for name, orchestrator in CASCADES.items():
        tried[name] = Tried(average([observe(episode) for episode in await site.judge(orchestrator, record)]))
    return tried


def judge_router(site: Site, episodes: Sequence[Episode]) -> Tried:
    """What a router's first choices bring, exactly; where a call fails, its episode goes on to the next expert."""
    choices = [site.find_first_choice(episode) for episode in episodes]
    exact = [
        Judged(site.ground.experts[place].chance(topic), site.ground.experts[place].price)
        for place, (_, topic) in zip(choices, site.ground.questions, strict=True)
    ]
    return Tried(judge_choices(site.ground, choices), tuple(map(Play, exact, map(observe, episodes))))


def write_logs(site: Site, record: TrackRecord) -> Logs:
    """The record with the topic of each outcome, which only the reader is told."""
    topics = {case.text: case.topic for case in site.book.cases.values()}
    return [
        [LoggedOutcome(item.need, topics[item.need], item.right) for item in record.outcomes(expert.name)]
        for expert in site.ground.experts
    ]


def describe(seeds: Sequence[dict[tuple[str, int], Tried]], policy: str, outcomes: int, seen: bool) -> Row:
    """The row of a policy; its interval is over seeds."""
    gaps = [(row[policy, outcomes].judged, row["single", -1].judged, row["best", -1].judged) for row in seeds]
    plays = [play for row in seeds for play in row[policy, outcomes].plays]
    return {
        "part": "who",
        "pools": "fixed",
        "topics": "seen" if seen else "unseen",
        "policy": policy,
        "outcomes": None if outcomes < 0 else outcomes,
        **describe_gaps(gaps, lambda row: row.right),
        **(compare_plays(plays, f"{policy} after {outcomes} outcomes") if plays else {}),
        "seeds": len(seeds),
        "pools_drawn": 1,
        "minutes": 0,
    }

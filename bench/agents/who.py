"""Who should do it, on pools drawn anew: the product's scores on logs that are drawn, without any call."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeAlias

from bench.agents.asking import judge_asking
from bench.agents.ground import (
    Ground,
    Judged,
    LoggedOutcome,
    draw_ground,
    judge_best,
    judge_cascade,
    judge_choices,
    judge_random,
    judge_single,
    judge_votes,
)
from bench.agents.rows import Row, describe_gaps
from orchestrator.choice.outcomes import Outcome
from orchestrator.choice.scores import SCORES, Candidate

CARD = "(model)"  # says nothing: only the log tells experts apart
Logs: TypeAlias = list[list[LoggedOutcome]]
JudgedPool: TypeAlias = dict[tuple[str, int], Judged]  # by policy and outcomes of each topic; -1: reads no log

WITHOUT_LOG: dict[str, Callable[[Ground], Judged]] = {
    "best": judge_best,
    "single": judge_single,
    "random": judge_random,
    "votes": judge_votes,
    "cascade": judge_cascade,
}


def measure_redrawn(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of both kinds of topics, over as many pools as there is time for."""
    deadline = time.monotonic() + 60 * options.minutes
    judged: dict[bool, list[JudgedPool]] = {True: [], False: []}
    for pool in range(options.pools):
        for seed in range(options.seeds):
            if time.monotonic() < deadline:
                for seen in (True, False):
                    judged[seen].append(judge_pool(draw_ground(seed * 1000 + pool, seen), seed, options.outcomes))
                print(f"{len(judged[True])} pools of each kind", file=sys.stderr, flush=True)
    for seen, pools in judged.items():
        for policy, outcomes in pools[0]:
            yield describe(pools, policy, outcomes, seen, options.seeds)


def judge_pool(ground: Ground, seed: int, amounts: Sequence[int]) -> JudgedPool:
    """What each policy gets on one pool, by the outcomes that the logs have."""
    judged = {(name, -1): judge(ground) for name, judge in WITHOUT_LOG.items()}
    whole = ground.log(max(amounts), seed)
    for amount in amounts:
        logs = cut_logs(ground, whole, amount)
        predicted = score_by("predictor", ground, logs)
        choices = {
            "reader": read_topics(ground, logs),
            "best_log": read_whole_logs(ground, logs, seed),
            "log": [_find_highest(chances) for chances in score_by("log", ground, logs)],
            "podium": [_find_highest(chances) for chances in predicted],
        }
        judged["podium_cascade", amount] = judge_asking(ground, list(zip(*predicted, strict=True)), seed)
        judged |= {(name, amount): judge_choices(ground, places) for name, places in choices.items()}
    return judged


def cut_logs(ground: Ground, logs: Logs, amount: int) -> Logs:
    """So many outcomes of each topic."""
    topics = range(len(ground.topics))
    return [[item for topic in topics for item in _of_topic(log, topic)[:amount]] for log in logs]


def _of_topic(log: Sequence[LoggedOutcome], topic: int) -> list[LoggedOutcome]:
    return [item for item in log if item.topic == topic]


def score_by(score: str, ground: Ground, logs: Logs) -> list[list[float]]:
    """The chance that a score of the product gives each expert, by question."""
    candidates = [
        Candidate(expert.name, CARD, False, 0.0, tuple(Outcome(item.question, item.right) for item in log))
        for expert, log in zip(ground.experts, logs, strict=True)
    ]
    return [SCORES[score](question, candidates) for question, _ in ground.questions]


def read_topics(ground: Ground, logs: Logs) -> list[int]:
    """The expert with the best record on the topic of each question."""
    records = [[_rate(_of_topic(log, topic)) for log in logs] for topic in range(len(ground.topics))]
    return [_find_highest(records[topic]) for _, topic in ground.questions]


def read_whole_logs(ground: Ground, logs: Logs, seed: int) -> list[int]:
    """The expert with the best record of all, by lot among equals."""
    random = Random(seed)
    rates = [(_rate(log), random.random()) for log in logs]
    return [max(range(len(rates)), key=lambda place: rates[place])] * len(ground.questions)


def _rate(log: Sequence[LoggedOutcome]) -> float:
    return (sum(item.right for item in log) + 1) / (len(log) + 2)


def _find_highest(scores: Sequence[float]) -> int:
    return max(range(len(scores)), key=lambda place: scores[place])


def describe(pools: Sequence[JudgedPool], policy: str, outcomes: int, seen: bool, seeds: int) -> Row:
    """The row of a policy over all pools."""
    gaps = [(pool[policy, outcomes], pool["single", -1], pool["best", -1]) for pool in pools]
    return {
        "part": "who",
        "pools": "redrawn",
        "topics": "seen" if seen else "unseen",
        "policy": policy,
        "outcomes": None if outcomes < 0 else outcomes,
        **describe_gaps(gaps, lambda judged: judged.right),
        "seeds": seeds,
        "pools_drawn": len(pools),
        "minutes": 0,
    }

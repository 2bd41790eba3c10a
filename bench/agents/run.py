"""The proving ground for agents: who should do it, learnt from outcomes alone. Experts are simulated.

    python bench/agents/run.py [--seeds 3] [--pools 10] [--outcomes 0 1 3 10 30] [--minutes 20]
                               [--out bench/results/agents.json]

For every seed pools are drawn anew, on topics that the success predictor was trained on (`seen`) and on topics that it
never met (`unseen`; lessons/podium_lessons/data/tasks/agent_topics.yaml). Nothing is trained here: the shipped
predictor reads each expert's log. `outcomes` is how many an expert has on each of its four topics. Policies:

    best      the best expert for each question, by its true skill: nobody can surpass that
    single    the one expert that is best over the questions, by its true skill
    random    an expert by lot
    votes     everybody answers, the most frequent answer counts
    cascade   from the cheapest to the dearest until two agree
    reader    the log, with the topic of every entry and question given: what reading a log can reach
    log       the log, by likeness of the questions (choice/scores.py: `log`)
    best_log  the expert whose whole log is best
    podium    the shipped success predictor (choice/scores.py: `predictor`)

`right` and `cost` (cents a question) are exact, from the skills. `closed` is the share of the gap between `single` and
`best`, over all pools of a row, with a 95 % interval, bootstrapped over pools. `minutes`: of training on that pool.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

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
from orchestrator.choice.outcomes import Outcome
from orchestrator.choice.scores import SCORES, Candidate

ROOT = Path(__file__).resolve().parents[2]
DRAWS = 1000  # of the bootstrap
CARD = "(model)"  # says nothing: only the log tells experts apart
Logs: TypeAlias = list[list[LoggedOutcome]]
Row: TypeAlias = dict[str, object]

WITHOUT_LOG: dict[str, Callable[[Ground], Judged]] = {
    "best": judge_best,
    "single": judge_single,
    "random": judge_random,
    "votes": judge_votes,
    "cascade": judge_cascade,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pools", type=int, default=10, help="of each seed, on seen and on unseen topics")
    parser.add_argument("--outcomes", type=int, nargs="+", default=[0, 1, 3, 10, 30])
    parser.add_argument("--minutes", type=float, default=20, help="after which no further pool is begun")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/agents.json")
    options = parser.parse_args()
    rows = list(measure_all(options))
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        print(" ".join(f"{value}" for value in row.values()))


def measure_all(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of both kinds of topics, over as many pools as there is time for."""
    deadline = time.monotonic() + 60 * options.minutes
    judged: dict[bool, list[dict[tuple[str, int], Judged]]] = {True: [], False: []}
    for pool in range(options.pools):
        for seed in range(options.seeds):
            if time.monotonic() < deadline:
                for seen in (True, False):
                    judged[seen].append(judge_pool(draw_ground(seed * 1000 + pool, seen), seed, options.outcomes))
                print(f"{len(judged[True])} pools of each kind", file=sys.stderr, flush=True)
    for seen, pools in judged.items():
        for policy, outcomes in pools[0]:
            yield describe(pools, policy, outcomes, seen, options.seeds)


def judge_pool(ground: Ground, seed: int, amounts: Sequence[int]) -> dict[tuple[str, int], Judged]:
    """What each policy gets on one pool, by the outcomes that the logs have."""
    judged = {(name, -1): judge(ground) for name, judge in WITHOUT_LOG.items()}
    whole = ground.log(max(amounts), seed)
    for amount in amounts:
        logs = cut_logs(ground, whole, amount)
        choices = {
            "reader": read_topics(ground, logs),
            "best_log": read_whole_logs(ground, logs, seed),
            "log": choose_by("log", ground, logs),
            "podium": choose_by("predictor", ground, logs),
        }
        judged |= {(name, amount): judge_choices(ground, places) for name, places in choices.items()}
    return judged


def cut_logs(ground: Ground, logs: Logs, amount: int) -> Logs:
    """So many outcomes of each topic."""
    topics = range(len(ground.topics))
    return [[item for topic in topics for item in _of_topic(log, topic)[:amount]] for log in logs]


def _of_topic(log: Sequence[LoggedOutcome], topic: int) -> list[LoggedOutcome]:
    return [item for item in log if item.topic == topic]


def choose_by(score: str, ground: Ground, logs: Logs) -> list[int]:
    """The expert that a score of the product chooses for each question."""
    candidates = [
        Candidate(expert.name, CARD, False, 0.0, tuple(Outcome(item.question, item.right) for item in log))
        for expert, log in zip(ground.experts, logs, strict=True)
    ]
    return [_find_highest(SCORES[score](question, candidates)) for question, _ in ground.questions]


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


def describe(pools: Sequence[dict[tuple[str, int], Judged]], policy: str, outcomes: int, seen: bool, seeds: int) -> Row:
    """The row of a policy over all pools."""
    figures = [(pool[policy, outcomes], pool["single", -1].right, pool["best", -1].right) for pool in pools]
    random = Random(0)
    draws = sorted(_share(random.choices(figures, k=len(figures))) for _ in range(DRAWS))
    return {
        "part": "who",
        "pools": "redrawn",
        "topics": "seen" if seen else "unseen",
        "policy": policy,
        "outcomes": None if outcomes < 0 else outcomes,
        "right": round(sum(judged.right for judged, _, _ in figures) / len(figures), 4),
        "cost": round(sum(judged.cost for judged, _, _ in figures) / len(figures), 4),
        "closed": round(_share(figures), 4),
        "low": round(draws[DRAWS // 40], 4),
        "high": round(draws[-DRAWS // 40], 4),
        "seeds": seeds,
        "pools_drawn": len(pools),
        "minutes": 0,
    }


def _share(figures: Sequence[tuple[Judged, float, float]]) -> float:
    """The share of the gap between the best single expert and the best choice."""
    gap = sum(best - single for _, single, best in figures)
    return sum(judged.right - single for judged, single, _ in figures) / gap if gap else 0.0


if __name__ == "__main__":
    main()

"""The proving ground: pools of simulated experts with hidden skills, and what the best that could be done is.

An expert has a skill for each topic of its pool (the chance that it is right), a price, a latency and a failure rate.
Everything is drawn from a seed. Nothing here is measured on a real model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TypeAlias

from podium_lessons.agents.experts import WRONG_ANSWERS, Expert
from podium_lessons.agents.topics import Topic, load_topics, split_questions

TOPICS = 4  # of a pool
EXPERTS = (3, 6)
SKILLS = (0.05, 0.95)
PRICES = (0.2, 3.0)  # of a call, in cents
LATENCIES = (0.2, 4.0)  # of a call, in seconds
FAILURES = (0.0, 0.04)  # the share of calls that come back with an error
ASKED = 1  # questions of each topic that a pool is judged by
CHEAP, DEAR = (0.2, 0.5), (2.5, 3.5)  # prices in a pool where checking pays
MIDDLING, HIGH = (0.6, 0.85), (0.85, 0.95)  # and the skills that they buy

Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LoggedOutcome:
    """A question that an expert was once given, and whether its answer was right."""

    question: str
    topic: int
    right: bool


@dataclass(frozen=True, slots=True)
class Ground:
    """A pool of experts, the topics that it is asked, and the questions that it is judged by, each with its topic."""

    experts: tuple[Expert, ...]
    topics: tuple[Topic, ...]
    questions: tuple[tuple[str, int], ...]

    def log(self, outcomes: int, seed: int) -> list[list[LoggedOutcome]]:
        """So many past outcomes of each expert and topic, on other questions than those that judge."""
        random = Random(f"{seed}/log")
        logged = [split_questions(topic)[0] for topic in self.topics]
        return [
            [
                LoggedOutcome(random.choice(logged[topic]), topic, random.random() < expert.chance(topic))
                for topic in range(len(self.topics))
                for _ in range(outcomes)
            ]
            for expert in self.experts
        ]


def draw_ground(seed: int, seen: bool) -> Ground:
    """A pool on topics that training has, or that it has not."""
    random = Random(f"{seed}/{seen}")
    there = [topic for topic in load_topics() if (topic.split == "train") == seen]
    topics = tuple(random.sample(there, TOPICS))
    experts = tuple(draw_expert(place, random, SKILLS, PRICES) for place in range(random.randint(*EXPERTS)))
    questions = [
        (question, place)
        for place, topic in enumerate(topics)
        for question in random.sample(split_questions(topic)[1], ASKED)
    ]
    return Ground(experts, topics, tuple(questions))


def draw_expert(place: int, random: Random, skills: Range, prices: Range) -> Expert:
    """An expert with skills and a price between these."""
    return Expert(
        f"model_{place}",
        tuple(random.uniform(*skills) for _ in range(TOPICS)),
        round(random.uniform(*prices), 2),
        round(random.uniform(*LATENCIES), 2),
        round(random.uniform(*FAILURES), 3),
    )


def with_checkers(ground: Ground, seed: int) -> Ground:
    """The same topics with experts of whom two or three are cheap and middling and one is dear and good."""
    random = Random(f"{seed}/checkers")
    cheap = [draw_expert(place, random, MIDDLING, CHEAP) for place in range(random.randint(2, 3))]
    return replace(ground, experts=(*cheap, draw_expert(len(cheap), random, HIGH, DEAR)))


@dataclass(frozen=True, slots=True)
class Judged:
    """What a policy gets on one ground: the share that is right and the price of a question, both exact."""

    right: float
    cost: float


def judge_choices(ground: Ground, choices: Sequence[int]) -> Judged:
    """What it brings to ask one chosen expert for each question."""
    chosen = [(ground.experts[place], topic) for place, (_, topic) in zip(choices, ground.questions, strict=True)]
    return Judged(
        _mean([expert.chance(topic) for expert, topic in chosen]), _mean([expert.price for expert, _ in chosen])
    )


def judge_best(ground: Ground) -> Judged:
    """The best choice of one expert, by the true chances."""
    places = range(len(ground.experts))
    best = [max(places, key=lambda place: ground.experts[place].chance(topic)) for _, topic in ground.questions]
    return judge_choices(ground, best)


def judge_single(ground: Ground) -> Judged:
    """The one expert that is best over all questions, by the true chances."""
    rows = [judge_choices(ground, [place] * len(ground.questions)) for place in range(len(ground.experts))]
    return max(rows, key=lambda row: row.right)


def judge_random(ground: Ground) -> Judged:
    """An expert drawn for each question."""
    rows = [judge_choices(ground, [place] * len(ground.questions)) for place in range(len(ground.experts))]
    return Judged(_mean([row.right for row in rows]), _mean([row.cost for row in rows]))


def judge_votes(ground: Ground) -> Judged:
    """Everybody answers and the answer with most votes is taken, ties by lot."""
    chances = [_win_votes([expert.chance(topic) for expert in ground.experts]) for topic in range(len(ground.topics))]
    return Judged(
        _mean([chances[topic] for _, topic in ground.questions]), sum(expert.price for expert in ground.experts)
    )


def _win_votes(chances: Sequence[float]) -> float:
    """The chance that the right answer gets most votes: wrong ones fall on WRONG_ANSWERS answers alike."""
    states: dict[tuple[int, ...], float] = {(0,) * (WRONG_ANSWERS + 1): 1.0}  # votes: right, then each wrong answer
    for chance in chances:
        after: dict[tuple[int, ...], float] = {}
        for (votes, weight), answer in product(states.items(), range(WRONG_ANSWERS + 1)):
            share = chance if answer == 0 else (1 - chance) / WRONG_ANSWERS
            changed = tuple(count + (place == answer) for place, count in enumerate(votes))
            after[changed] = after.get(changed, 0.0) + weight * share
        states = after
    return sum(weight / votes.count(max(votes)) for votes, weight in states.items() if votes[0] == max(votes))


def judge_cascade(ground: Ground) -> Judged:
    """From the cheapest to the dearest expert until two agree; the dearest one's answer if none do."""
    order = sorted(ground.experts, key=lambda expert: expert.price)
    rows = [
        _run_cascade([expert.chance(topic) for expert in order], [expert.price for expert in order])
        for topic in range(len(ground.topics))
    ]
    return Judged(
        _mean([rows[topic].right for _, topic in ground.questions]),
        _mean([rows[topic].cost for _, topic in ground.questions]),
    )


def _run_cascade(chances: Sequence[float], prices: Sequence[float]) -> Judged:
    right = cost = 0.0
    # Answers so far are all different: whether the right one is among them, and how many wrong ones.
    states: dict[tuple[bool, int], float] = {(False, 0): 1.0}
    for place, (chance, price) in enumerate(zip(chances, prices, strict=True)):
        cost += price * sum(states.values())
        last = place == len(chances) - 1
        after: dict[tuple[bool, int], float] = {}
        for (has_right, wrong), weight in states.items():
            again = (1 - chance) * wrong / WRONG_ANSWERS
            right += weight * chance * (has_right or last)
            if not last:
                if not has_right:
                    after[True, wrong] = after.get((True, wrong), 0.0) + weight * chance
                fresh = weight * (1 - chance - again)
                after[has_right, wrong + 1] = after.get((has_right, wrong + 1), 0.0) + fresh
        states = after
    return Judged(right, cost)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

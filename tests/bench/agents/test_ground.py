"""The proving ground's exact figures are those that playing it out comes to, and a seed draws the same pool again."""

from __future__ import annotations

from random import Random

import pytest

from bench.agents.ground import (
    WRONG_ANSWERS,
    Expert,
    Ground,
    draw_ground,
    judge_best,
    judge_cascade,
    judge_random,
    judge_single,
    judge_votes,
)
from podium_lessons.agents.topics import load_topics


def make_ground(*chances: float) -> Ground:
    experts = [Expert(f"e{place}", (chance,), 1.0 + place, 1.0, 0.0) for place, chance in enumerate(chances)]
    topic = load_topics()[0]
    return Ground(tuple(experts), (topic,), ((topic.questions[0], 0),))


def answer(chance: float, random: Random) -> int:
    """0 is right."""
    return 0 if random.random() < chance else random.randint(1, WRONG_ANSWERS)


def play_votes(chances: tuple[float, ...], random: Random) -> bool:
    answers = [answer(chance, random) for chance in chances]
    most = max(answers.count(item) for item in answers)
    return random.choice([item for item in set(answers) if answers.count(item) == most]) == 0


def play_cascade(chances: tuple[float, ...], random: Random) -> tuple[bool, float]:
    answers: list[int] = []
    cost = 0.0
    for place, chance in enumerate(chances):
        cost += 1.0 + place
        answers.append(answer(chance, random))
        if answers.count(answers[-1]) == 2:
            break
    return answers[-1] == 0, cost


@pytest.mark.parametrize("chances", [(0.6, 0.5, 0.4), (0.9, 0.2, 0.2, 0.7)])
def test_votes_and_cascade_are_exact(chances):
    random, plays = Random(1), 20_000
    votes = sum(play_votes(chances, random) for _ in range(plays)) / plays
    cascades = [play_cascade(chances, random) for _ in range(plays)]
    ground = make_ground(*chances)
    assert judge_votes(ground).right == pytest.approx(votes, abs=0.015)
    assert judge_cascade(ground).right == pytest.approx(sum(right for right, _ in cascades) / plays, abs=0.015)
    assert judge_cascade(ground).cost == pytest.approx(sum(cost for _, cost in cascades) / plays, abs=0.05)


def test_nobody_surpasses_the_best_choice_and_lot_is_below_the_best_expert():
    for seed in range(20):
        ground = draw_ground(seed, seen=False)
        assert judge_best(ground).right >= judge_single(ground).right >= judge_random(ground).right


def test_a_seed_draws_the_same_pool_and_log_and_unseen_topics_are_held_out():
    ground = draw_ground(3, seen=False)
    assert ground == draw_ground(3, seen=False) and ground.log(2, 1) == ground.log(2, 1)
    assert {topic.split for topic in ground.topics} == {"held_out"}
    judging = {question for question, _ in ground.questions}
    assert not any(item.question in judging for log in ground.log(5, 1) for item in log)

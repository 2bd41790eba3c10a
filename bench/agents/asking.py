"""What the cascade by a score brings on one ground: the orchestrator `cascade+who=SCORE`, without its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from bench.agents.ground import Ground, Judged
from orchestrator.choice.weigh_answers import SURE, Reply, choose_next, weigh_answers
from podium_lessons.agents.experts import WRONG_ANSWERS

DRAWS = 300  # of each question


def judge_asking(ground: Ground, chances: Sequence[Sequence[float]], seed: int) -> Judged:
    """Its share of right answers and price, over DRAWS of what the experts say. `chances`: of each expert, by question,
    what the score takes it for."""
    random = Random(f"{seed}/asking")
    right = cost = 0.0
    for (_, topic), row in zip(ground.questions, chances, strict=True):
        estimates = {expert.name: chance for expert, chance in zip(ground.experts, row, strict=True)}
        for _ in range(DRAWS):
            answer, price = _ask(ground, topic, estimates, random)
            right += answer == ""
            cost += price
    episodes = DRAWS * len(ground.questions)
    return Judged(right / episodes, cost / episodes)


def _ask(ground: Ground, topic: int, estimates: Mapping[str, float], random: Random) -> tuple[str, float]:
    """The answer of one episode ("" is the right one) and its price."""
    experts = {expert.name: expert for expert in ground.experts}
    prices = {name: expert.price for name, expert in experts.items()}
    left, replies, cost = dict(estimates), list[Reply](), 0.0
    while left and not (replies and max(weigh_answers(replies).values()) >= SURE):
        chosen = choose_next(left, prices, replies)
        for name in chosen:
            is_right = random.random() < experts[name].chance(topic)
            replies.append(("" if is_right else f"wrong {random.randrange(WRONG_ANSWERS)}", left.pop(name)))
            cost += prices[name]
        if not chosen:
            break
    return next(iter(weigh_answers(replies))), cost

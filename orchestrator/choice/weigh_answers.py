"""How sure an answer is that several workers gave, and whom to ask next, from the chance of each to be right.

Workers are taken to err on their own, and a wrong one to say each of WRONG_ANSWERS things alike. The chance of an
answer follows by Bayes' rule, which is the best weighting of votes (Nitzan and Paroush, 1982, for two answers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

WRONG_ANSWERS = 4
SURE = 0.8  # an answer that is as likely as this is taken
TOGETHER = 3  # workers that are asked at once, at most
LARGEST_POOL = 12  # workers that are combined: the likeliest
CERTAIN = 0.99  # no chance is taken for more, nor for less than its counterpart

Reply = tuple[str, float]  # an answer, and the chance of its worker to be right


def weigh_answers(replies: Sequence[Reply]) -> dict[str, float]:
    """The chance of each different answer to be right, the likeliest first. They sum to less than one: all may be
    wrong."""
    answers = list(dict.fromkeys(answer for answer, _ in replies))
    weights = {answer: prod(_bound(p) if reply == answer else _miss(p) for reply, p in replies) for answer in answers}
    others = max(1, WRONG_ANSWERS + 1 - len(answers)) * prod(_miss(p) for _, p in replies)
    whole = sum(weights.values()) + others
    return dict(sorted(((answer, weight / whole) for answer, weight in weights.items()), key=lambda pair: -pair[1]))


def choose_next(chances: Mapping[str, float], prices: Mapping[str, float], replies: Sequence[Reply]) -> tuple[str, ...]:
    """The workers of `chances` to ask at once: those that, if they agree, make the answer sure, at the least price for
    the chance of that. None where no few of them could; the likeliest one where nobody has replied yet."""
    likeliest = sorted(chances, key=lambda worker: -chances[worker])[:LARGEST_POOL]
    leading, standing = next(iter(weigh_answers(replies).items()), ("", 1.0))
    free = not any(prices[worker] for worker in likeliest)
    best: tuple[tuple[float, float], tuple[str, ...]] | None = None
    for size in range(1, TOGETHER + 1):
        for workers in combinations(likeliest, size):
            agreeing = [(leading, chances[worker]) for worker in workers]
            if weigh_answers([*replies, *agreeing])[leading] < SURE:
                continue
            price = float(size) if free else sum(prices[worker] for worker in workers)
            rank = (price / _chance_to_agree(agreeing, standing, bool(replies)), -prod(p for _, p in agreeing))
            if best is None or rank < best[0]:
                best = rank, workers
    if best is not None:
        return best[1]
    return () if replies else tuple(likeliest[:1])


def _chance_to_agree(agreeing: Sequence[Reply], standing: float, against: bool) -> float:
    """That all of them say the same, where `against` the answer that leads with the chance `standing`."""
    right = prod(_bound(p) for _, p in agreeing)
    wrong = prod(_miss(p) for _, p in agreeing)
    return standing * right + (1 - standing) * wrong if against else right + WRONG_ANSWERS * wrong


def _bound(chance: float) -> float:
    return min(CERTAIN, max(1 - CERTAIN, chance))


def _miss(chance: float) -> float:
    """The chance of a worker to say one given wrong answer."""
    return (1 - _bound(chance)) / WRONG_ANSWERS

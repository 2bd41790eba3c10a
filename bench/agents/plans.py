"""The plans that a task of the proving ground can be met with, and what each brings: exact, by the true skills.

    refuse    nobody is asked
    ask       one expert gets the whole query
    check     two experts get it; where they do not agree, a third one
    vote      every expert gets it, and the cheapest one takes the most frequent answer
    split     one expert for each question, and for joining their findings; each sees what it hangs on

A plan's worth is the chance that it is right, less PRICE for every cent. The best plan is the one of most worth among
all of these with all choices of experts: nobody who writes such plans can surpass it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import prod
from typing import Literal, TypeAlias

from bench.agents.cases import Kind
from bench.agents.ground import Judged
from podium_lessons.agents.experts import WRONG_ANSWERS, Expert

PRICE = 0.02  # of a cent, in right answers: 50 cents for one
Votes: TypeAlias = tuple[
    tuple[int, ...], ...
]  # by class of answers: how often each of its answers came, the most frequent first


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan by the places of its experts."""

    form: Literal["refuse", "ask", "check", "vote", "split"]
    experts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """What a task is to those who know the skills: its kind, its topics, and who is there."""

    experts: tuple[Expert, ...]
    kind: Kind
    topics: tuple[int, ...]

    def pick(self, plan: Plan) -> list[Expert]:
        """The experts of a plan."""
        return [self.experts[place] for place in plan.experts]


def measure_worth(judged: Judged) -> float:
    """The chance to be right, less the price."""
    return judged.right - PRICE * judged.cost


def list_plans(situation: Situation) -> Iterator[Plan]:
    """Every plan for a task."""
    places = range(len(situation.experts))
    yield Plan("refuse")
    yield from list_asks(situation)
    yield Plan("vote", (find_cheapest(situation.experts),))
    for third in places:
        yield from (Plan("check", (*pair, third)) for pair in combinations(set(places) - {third}, 2))
    if situation.kind == "chain":
        yield from (Plan("split", pair) for pair in product(places, repeat=2))
    if situation.kind == "join":
        yield from (Plan("split", trio) for trio in product(places, repeat=3))


def list_asks(situation: Situation) -> list[Plan]:
    """The plans that ask one expert."""
    return [Plan("ask", (place,)) for place in range(len(situation.experts))]


def find_cheapest(experts: Sequence[Expert]) -> int:
    """The place of the expert with the lowest price."""
    return min(range(len(experts)), key=lambda place: experts[place].price)


@cache
def find_best_plan(situation: Situation) -> Plan:
    """The plan of most worth."""
    return max(list_plans(situation), key=lambda plan: measure_worth(judge_plan(situation, plan)))


@cache
def judge_plan(situation: Situation, plan: Plan) -> Judged:
    """The chance that a plan is right and its expected price in cents. A call that fails costs nothing."""
    experts = situation.pick(plan)
    match plan.form:
        case "refuse":
            return Judged(float(situation.kind == "nobody"), 0.0)
        case "ask":
            return Judged(_share_answers(experts[0], situation.topics)[0], _expect_price(experts[0]))
        case "check":
            return _judge_check(situation, experts)
        case "vote":
            return _judge_vote(situation, experts[0])
        case "split":
            right = prod(expert.chance(topic) for expert, topic in zip(experts, situation.topics, strict=False))
            joins = prod(1 - expert.failure for expert in experts[len(situation.topics) :])
            return Judged(right * joins, sum(map(_expect_price, experts)))


def _expect_price(expert: Expert) -> float:
    return expert.price * (1 - expert.failure)


def _share_answers(expert: Expert, topics: Sequence[int]) -> list[float]:
    """The chance of each class of answers, the right one first; the rest is the chance of a failure. A class is where
    the expert is right and where not, by question."""
    steps = [(expert.skill(topic), 1 - expert.skill(topic)) for topic in topics]
    return [(1 - expert.failure) * prod(row) for row in product(*steps)]


def _count_answers(topics: Sequence[int]) -> list[int]:
    """How many answers each class has, all alike in chance: each wrong step can go wrong in WRONG_ANSWERS ways."""
    return [prod(row) for row in product((1, WRONG_ANSWERS), repeat=len(topics))]


def _judge_check(situation: Situation, experts: Sequence[Expert]) -> Judged:
    first, second, third = (_share_answers(expert, situation.topics) for expert in experts)
    sizes = _count_answers(situation.topics)
    agree = sum(one * other / size for one, other, size in zip(first, second, sizes, strict=True))
    cost = sum(map(_expect_price, experts[:2])) + (1 - agree) * _expect_price(experts[2])
    return Judged(first[0] * second[0] + (1 - agree) * third[0], cost)


def _judge_vote(situation: Situation, merger: Expert) -> Judged:
    experts = situation.experts
    none = prod(expert.failure for expert in experts)
    right = _win_vote(
        [_share_answers(expert, situation.topics) for expert in experts], _count_answers(situation.topics)
    )
    cost = sum(map(_expect_price, experts)) + (1 - none) * _expect_price(merger)
    return Judged(right * (1 - merger.failure), cost)


def _win_vote(shares: Sequence[Sequence[float]], sizes: Sequence[int]) -> float:
    """The chance that the right answer is the most frequent, ties by lot."""
    states: dict[Votes, float] = {((),) * len(sizes): 1.0}
    for row in shares:
        after: dict[Votes, float] = {}
        for votes, weight in states.items():
            for changed, chance in _add_vote(votes, row, sizes):
                after[changed] = after.get(changed, 0.0) + weight * chance
        states = after
    return sum(weight * _share_win(votes) for votes, weight in states.items())


def _add_vote(votes: Votes, shares: Sequence[float], sizes: Sequence[int]) -> Iterator[tuple[Votes, float]]:
    """What the votes can be after one more expert, and how likely."""
    yield votes, 1 - sum(shares)
    for place, (counts, share, size) in enumerate(zip(votes, shares, sizes, strict=True)):
        for seen in range(len(counts)):
            more = [count + (seen == other) for other, count in enumerate(counts)]
            yield _replace(votes, place, more), share / size
        yield _replace(votes, place, [*counts, 1]), share * (size - len(counts)) / size


def _replace(votes: Votes, place: int, counts: Sequence[int]) -> Votes:
    return (*votes[:place], tuple(sorted(counts, reverse=True)), *votes[place + 1 :])


def _share_win(votes: Votes) -> float:
    counts = [count for row in votes for count in row]
    right = votes[0][0] if votes[0] else 0
    return 1 / counts.count(right) if right and right == max(counts) else 0.0


def judge_product_cascade(situation: Situation, beliefs: Sequence[int], trusted: float) -> Judged:
    """The product's cascade: the cheapest first, until one is sure enough; `beliefs` are the experts' stated
    confidences. Sums over which calls fail."""
    experts = situation.experts
    order = sorted(range(len(experts)), key=lambda place: experts[place].price)
    right = cost = 0.0
    for failing in product((False, True), repeat=len(order)):
        fails = dict(zip(order, failing, strict=True))
        weight = prod(experts[k].failure if fails[k] else 1 - experts[k].failure for k in order)
        calls, taken = _follow_cascade(order, fails, beliefs, trusted)
        cost += weight * sum(experts[place].price for place in calls if not fails[place])
        if taken is not None:
            right += weight * prod(experts[taken].skill(topic) for topic in situation.topics)
    return Judged(right, cost)


def _follow_cascade(
    order: Sequence[int], fails: dict[int, bool], beliefs: Sequence[int], trusted: float
) -> tuple[Sequence[int], int | None]:
    """Who is called, and whose answer is taken."""
    for number, place in enumerate(order, start=1):
        if not fails[place] and (number == len(order) or beliefs[place] >= trusted):
            return order[:number], place
    there = [place for place in order if not fails[place]]
    return order, max(there, key=lambda place: beliefs[place], default=None)


def judge_all_asks(situation: Situation) -> list[Judged]:
    """What each expert alone brings, by place."""
    return [judge_plan(situation, plan) for plan in list_asks(situation)]

"""What the diff of two step graphs says: nothing of a graph and itself, and both directions agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.graphs.alignment import align, assign_slots
from orchestrator.graphs.diff import PlacedStep, diff_steps, pair_steps, place_steps
from orchestrator.graphs.layered_layout import NODE_HEIGHT, NODE_WIDTH
from orchestrator.plan import Step, Turn
from tests.orchestrator.graphs.test_episode_graph import episode

WORDS = st.sampled_from(["", "Paris", "Oslo in May", "select sum(x)", "$$5 and $1", "the whole query"])


def step(k: int, text: str, worker: str = "tool", access: Sequence[int] = ()) -> Step:
    return Step(k, worker, {"text": text}, tuple(access))


def placed(*steps: Step) -> tuple[PlacedStep, ...]:
    """Steps of one round, in their places."""
    return place_steps(episode((Turn(steps), {}), outcome=None))


@st.composite
def plans(draw: st.DrawFn) -> tuple[PlacedStep, ...]:
    """Rounds of steps whose access lists name earlier steps, and sometimes ones that do not exist."""
    rounds, known = [], 0
    for size in draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)):
        steps = []
        for k in range(known + 1, known + size + 1):
            access = draw(st.sets(st.integers(1, k + 1), max_size=3)) if k > 1 else set()
            quoted = "".join(f" ${a}" for a in access if draw(st.booleans()))
            text = draw(WORDS) + quoted
            steps.append(Step(k, draw(st.sampled_from(["sql", "reader", "calculator"])), {"text": text}, tuple(access)))
        known += size
        rounds.append((Turn(tuple(steps)), {}))
    return place_steps(episode(*rounds, outcome=None))


@settings(max_examples=60, deadline=None)
@given(plans())
def test_a_graph_does_not_differ_from_itself(plan):
    found = diff_steps(plan, plan)
    assert found.empty and found.counts()["same"] == len(plan)
    assert all(pair.left == pair.right for pair in found.pairs)


@settings(max_examples=60, deadline=None)
@given(plans(), plans())
def test_the_other_way_round_what_was_added_is_removed(left, right):
    there, back = diff_steps(left, right), diff_steps(right, left)
    assert there.added == back.removed and there.removed == back.added
    assert {(pair.left.id, pair.right.id, pair.changes) for pair in there.pairs} == {
        (pair.right.id, pair.left.id, pair.changes) for pair in back.pairs
    }


@settings(max_examples=60, deadline=None)
@given(plans(), plans())
def test_every_step_is_told_of_once(left, right):
    found = diff_steps(left, right)
    assert sorted([pair.left.id for pair in found.pairs] + [each.id for each in found.removed]) == [p.id for p in left]
    assert sorted([pair.right.id for pair in found.pairs] + [e.id for e in found.added]) == sorted(p.id for p in right)
    assert found.empty == (not found.added and not found.removed and all(not pair.changes for pair in found.pairs))


@settings(max_examples=40, deadline=None)
@given(plans(), st.data())
def test_a_step_that_is_left_out_is_the_one_that_is_removed(plan, data):
    """Every step has words of its own here, so that there is one right answer."""
    plan = tuple(replace(p, step=replace(p.step, arguments={"text": f"task{p.id} number{p.id}"})) for p in plan)
    if not plan:
        return
    gone = data.draw(st.sampled_from(plan))
    found = diff_steps(plan, [each for each in plan if each is not gone])
    assert gone in found.removed and not found.added and len(found.removed) == 1


def test_a_step_is_known_by_what_it_does_not_by_its_number():
    left = placed(step(1, "Paris"), step(2, "Oslo"), step(3, "$1 $2", access=[1, 2]))
    right = placed(step(1, "Oslo"), step(2, "Paris"), step(3, "$2 $1", access=[2, 1]))
    assert pair_steps(left, right) == {1: 2, 2: 1, 3: 3}
    assert diff_steps(left, right).empty


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (step(4, "both of $2", "agent", access=[2, 3]), ("worker",)),
        (step(4, "half of $2", access=[2, 3]), ("arguments",)),
        (step(4, "both of $3", access=[2, 3]), ("arguments",)),
        (step(4, "both of $2", access=[1, 2, 3]), ("access",)),
        (step(4, "both of $2", access=[2]), ("access",)),
        (step(4, "both of $2", access=[]), ("access", "moved")),
        (step(4, "both of $3 twice", "agent", access=[]), ("worker", "arguments", "access", "moved")),
    ],
)
def test_each_change_of_a_step_is_named(changed, said):
    rest = (step(1, "Paris"), step(2, "weather $1", access=[1]), step(3, "trains", access=[1]))
    before = step(4, "both of $2", access=[2, 3])
    found = diff_steps(placed(*rest, before), placed(*rest, changed))
    assert {pair.right.id: pair.changes for pair in found.pairs if pair.changes} == {4: said}


def test_the_same_step_in_another_round_has_moved():
    one = place_steps(episode((Turn((step(1, "a"), step(2, "b"))), {}), outcome=None))
    two = place_steps(episode((Turn((step(1, "a"),)), {}), (Turn((step(2, "b"),)), {}), outcome=None))
    assert [pair.changes for pair in diff_steps(one, two).pairs] == [(), ("moved",)]


def test_an_access_entry_that_lost_its_step_is_a_change():
    left = placed(step(1, "Paris"), step(2, "weather of Oslo", "agent", access=[1]))
    right = placed(step(1, "weather of Oslo", "agent"))
    found = diff_steps(left, right)
    assert [each.id for each in found.removed] == [1]
    assert found.pairs[0].changes == ("access", "moved")


@settings(max_examples=40, deadline=None)
@given(st.lists(plans(), min_size=1, max_size=4), st.data())
def test_slots_are_shared_by_pairs_and_by_nothing_else(sides, data):
    reference = data.draw(st.integers(0, len(sides) - 1))
    slots = assign_slots(sides, reference)
    for side, known in zip(sides, slots, strict=True):
        assert set(known) == {each.id for each in side}
        assert len(set(known.values())) == len(known), "two steps of one episode share no slot"
        expected = {theirs: slots[reference][ours] for ours, theirs in pair_steps(sides[reference], side).items()}
        assert {k: known[k] for k in expected} == expected


def test_what_two_others_add_alike_has_one_slot():
    base = placed(step(1, "Paris"))
    one = placed(step(1, "Paris"), step(2, "check $1", "agent", access=[1]))
    two = placed(step(1, "look", "agent"), step(2, "Paris"), step(3, "check $2", "agent", access=[2]))
    slots = assign_slots([base, one, two])
    assert slots[1][2] == slots[2][3] and slots[2][1] not in slots[1].values()


def test_the_same_steps_stand_at_the_same_place():
    deep = episode((Turn((step(1, "a"), step(2, "b $1", access=[1]))), {}), (Turn((step(3, "c"),), "$3"), {}))
    flat = episode((Turn((step(1, "b"), step(2, "a"))), {}), (Turn((step(3, "c"),), "$3"), {}))
    one, two = align([deep, flat], [None, None])
    assert one.layout.places[1] == two.layout.places[2]
    assert one.layout.places[2] != two.layout.places[1], "it has moved"
    assert one.layout.places[3] == two.layout.places[3], "rounds begin at one column"
    assert one.layout.places["answer"] == two.layout.places["answer"]
    assert (one.layout.width, one.layout.height) == (two.layout.width, two.layout.height)
    assert one.slots == {1: 1, 2: 2, 3: 3} and two.slots == {1: 2, 2: 1, 3: 3}


@settings(max_examples=40, deadline=None)
@given(st.lists(plans(), min_size=1, max_size=4))
def test_no_two_steps_of_an_episode_overlap_when_aligned(sides):
    rounds = [[(Turn(tuple(p.step for p in side if p.round == n)), {}) for n in range(1, 4)] for side in sides]
    for aligned in align([episode(*each, outcome=None) for each in rounds], [None] * len(sides)):
        boxes = sorted(aligned.layout.places.values())
        for (x, y), (x2, y2) in pairwise(boxes):
            assert x2 >= x + NODE_WIDTH or (x2 == x and y2 >= y + NODE_HEIGHT - 1e-6)

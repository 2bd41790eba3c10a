"""A packed sequence holds every row, shares what rows begin with, and keeps every label."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.medium

TOKENS = st.lists(st.integers(1, 2), min_size=2, max_size=12)


@st.composite
def make_row(draw: st.DrawFn) -> dict[str, Any]:
    ids = draw(TOKENS)
    learn = draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
    return {"input_ids": ids, "labels": [token if mark else -100 for token, mark in zip(ids, learn, strict=True)]}


@given(st.lists(make_row(), min_size=1, max_size=6))
def test_each_part_below_its_opening_is_a_row_again(rows: list[dict[str, Any]]) -> None:
    from trainer.learner.shared_openings import collate_trees

    packed = {name: tensor.tolist() for name, tensor in collate_trees(rows).items()}
    ids, labels, positions = (packed[name][0] for name in ("input_ids", "labels", "position_ids"))
    openings = {(root, root_end) for root, root_end, _, _ in packed["spans"] if root_end > root}
    again = []
    for root, root_end, start, end in packed["spans"]:
        if (start, end) in openings:
            assert set(labels[start:end]) == {-100}
            continue
        places = [*range(root, root_end), *range(start, end)]
        assert [positions[place] for place in places] == list(range(len(places)))
        again.append(([ids[place] for place in places], [labels[place] for place in places]))
    # A label at a row's first token never counts: nothing stands before it.
    assert sorted(again) == sorted((row["input_ids"], [-100, *row["labels"][1:]]) for row in rows)
    assert len(ids) <= sum(len(row["input_ids"]) for row in rows)


def test_the_sharing_that_saves_most_tokens_wins() -> None:
    from trainer.learner.shared_openings import collate_trees

    first, second = [1] * 20, [1] * 4 + [2] * 16
    rows = [
        {"input_ids": [*opening, own], "labels": [-100] * 20 + [own]} for opening in (first, second) for own in (7, 8)
    ]
    # Two trees of 19 + 2 + 2 tokens: the token before a label predicts it and stays the row's own.
    assert collate_trees(rows)["input_ids"].numel() == 46


def test_rows_of_one_opening_are_drawn_together_and_every_epoch_in_another_order() -> None:
    from trainer.learner.shared_openings import FamilySampler

    rows = [([family] * 70 + [own], [-100] * 70 + [own]) for own in range(4) for family in range(5)]
    sampler = FamilySampler(rows, 4, 3)
    order = list(sampler)
    assert sorted(order) == list(range(20))
    for first in range(0, 20, 4):
        assert len({number % 5 for number in order[first : first + 4]}) == 1
    assert list(sampler) == order
    sampler.set_epoch(1)
    assert list(sampler) != order

"""The curriculum: which tasks are drawn, and how that moves with what is solved."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.methods.grpo.curriculum import Curriculum, cell_of
from trainer.methods.grpo.section import CurriculumSettings as Settings
from trainer.tasks.registry import open_source

TASKS = open_source("ledger,atlas").tasks("train", 12, levels=(1, 2, 3))
CELLS = list(dict.fromkeys(cell_of(task) for task in TASKS))
TASK_OF = {cell_of(task): task for task in TASKS}


def curriculum(seed: int = 0, **settings) -> Curriculum:
    return Curriculum(TASKS, Settings(**settings), seed)


def learnt(rates: dict[tuple[str, int], float], **settings) -> Curriculum:
    """A curriculum that has seen many groups with these shares of right answers."""
    found = curriculum(**settings)
    for cell, rate in rates.items():
        for _ in range(60):
            found.learn(TASK_OF[cell], rate)
    return found


def test_at_first_every_cell_is_drawn_about_equally_often():
    found = curriculum()
    drawn = Counter(cell_of(found.draw()) for _ in range(3000))
    assert set(drawn) == set(CELLS) and min(drawn.values()) > 0.7 * 3000 / len(CELLS)


def test_cells_that_are_solved_sometimes_are_drawn_most():
    solved, sometimes, never = CELLS[:3]
    found = learnt({solved: 1.0, sometimes: 0.5, never: 0.0})
    drawn = Counter(cell_of(found.draw()) for _ in range(3000))
    assert drawn[sometimes] > 4 * max(drawn[solved], drawn[never]) and min(drawn[solved], drawn[never]) > 0
    assert found.weight(sometimes) == pytest.approx(1.0)
    assert found.weight(solved) == pytest.approx(0.1, abs=0.01) == found.weight(never)


def test_the_target_moves_the_peak():
    low, middle = CELLS[:2]
    found = learnt({low: 0.2, middle: 0.5}, target=0.2)
    assert found.weight(low) > found.weight(middle)


def test_off_means_equally_often_whatever_was_learnt():
    found = learnt({CELLS[0]: 1.0, CELLS[1]: 0.0}, enabled=False)
    assert {found.weight(cell) for cell in CELLS} == {1.0}


def test_the_same_seed_draws_the_same_tasks():
    def drawn(seed):
        found = curriculum(seed)
        return [found.draw().query for _ in range(30)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_a_task_of_no_cell_changes_nothing():
    found = curriculum()
    before = dict(found.rates)
    found.learn(open_source("forge").tasks("train", 1, levels=(1,))[0], 1.0)
    assert found.rates == before


@given(
    st.lists(st.tuples(st.sampled_from(CELLS), st.floats(0, 1)), max_size=40),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_no_cell_is_ever_given_up_and_none_weighs_more_than_one(groups, target, floor):
    found = curriculum(target=target, floor=floor)
    for cell, success in groups:
        found.learn(TASK_OF[cell], success)
    assert all(0 <= rate <= 1 for rate in found.rates.values())
    assert all(floor - 1e-9 <= found.weight(cell) <= 1 + 1e-9 for cell in CELLS)
    assert cell_of(found.draw()) in CELLS


def test_without_a_floor_there_is_still_a_task_when_everything_is_solved():
    found = curriculum(floor=0)
    for cell in CELLS * 300:
        found.learn(TASK_OF[cell], 1.0)
    assert cell_of(found.draw()) in CELLS

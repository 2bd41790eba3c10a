"""The curriculum: which tasks are drawn, and how that moves with what is solved."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Graded
from orchestrator.traces.store import open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from trainer.methods.grpo.curriculum import Curriculum, Past, cell_of
from trainer.methods.grpo.past_success import count_past_success
from trainer.methods.grpo.section import CurriculumSettings as Settings
from trainer.tasks.registry import open_source
from trainer.tasks.sources.jsonl import make_tasks

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


OWN = make_tasks([(f"What is {k} + 1?", k + 1) for k in range(40)], "own")


def draw_mixed_share(by: str, seed: int = 0, draws: int = 600, past: Past | None = None) -> float:
    """The share of mixed groups of 4, where a quarter of the tasks is solved half of the time, and the others are
    always or never."""
    chances = {task.query: (0.5, 1.0, 0.0, 0.0)[place % 4] for place, task in enumerate(OWN)}
    made, random, mixed = Curriculum(OWN, Settings(by=by), seed, past), Random(seed), 0
    for _ in range(draws):
        task = made.draw()
        right = sum(random.random() < chances[task.query] for _ in range(4))
        mixed += 0 < right < 4
        made.learn(task, right / 4)
    return mixed / draws


def test_own_tasks_are_drawn_by_the_success_of_each_and_not_of_their_family():
    by_level, by_task = draw_mixed_share("level"), draw_mixed_share("task")
    assert by_task > 1.6 * by_level


def test_tasks_that_were_always_or_never_right_in_recorded_runs_are_rare_from_the_first_draw():
    past = {"What is 0 + 1": (8, 8), "What is 1 + 1": (0, 8), "What is 2 + 1": (4, 8)}
    made = Curriculum(OWN, Settings(by="task"), 0, past)
    drawn = Counter(made.draw().query for _ in range(4000))
    assert drawn["What is 2 + 1?"] > 2 * max(drawn["What is 0 + 1?"], drawn["What is 1 + 1?"]) > 0
    assert made.summarize_levels().keys() == {("own", 0)}
    assert Curriculum(OWN, Settings(), 0, past).rates == {("own", 0): 0.5}, "levels learn from groups alone"


@given(st.lists(st.tuples(st.sampled_from(OWN), st.floats(0, 1)), max_size=40), st.floats(0, 1))
def test_no_task_is_ever_given_up(groups, floor):
    made = Curriculum(OWN, Settings(by="task", floor=floor), 0)
    for task, success in groups:
        made.learn(task, success)
    assert all(floor - 1e-9 <= made.weight(cell) <= 1 + 1e-9 for cell in made.rates) and made.draw() in OWN


@pytest.fixture
def store(tmp_path):
    store = open_store(find_home(str(tmp_path)))
    yield store
    store.close()


def test_recorded_runs_of_a_checkpoint_are_counted_by_query(store):
    def record(query, orchestrator, correct):
        episode = f"{query}-{orchestrator}-{correct}"
        start = EpisodeStarted(query, "shop", "hash", orchestrator, {}, "2026-11-29T10:00:00+00:00")
        for event in (start, EpisodeEnded("answered", 1.0, "1"), Graded(correct, "1", 1.0)):
            store.traces.append(episode, event)

    for correct in (True, False):
        record("What is 0 + 1?", "mine", correct)
    record("What is 0 + 1?", "other", True)
    store.traces.flush()
    assert dict(count_past_success(store, "shop", "mine")) == {"What is 0 + 1": (1, 2)}
    assert not count_past_success(store, "shop", "")


@pytest.mark.medium
def test_recorded_runs_are_read_only_where_tasks_are_counted_by_themselves(store, tmp_path, monkeypatch):
    from trainer.methods.grpo import stage

    looks: list[str] = []
    monkeypatch.setattr(stage, "count_past_success", lambda _store, pool, _start: looks.append(pool) or {})
    training = SimpleNamespace(
        store=store,
        pool=SimpleNamespace(pool=Pool(name="shop")),
        recipe=SimpleNamespace(model=SimpleNamespace(start="mine")),
        job_folder=SimpleNamespace(rollouts=tmp_path / "none.jsonl"),
    )
    phase = SimpleNamespace(before=0, last=1)
    for by, count in (("level", 0), ("task", 1)):
        settings = SimpleNamespace(curriculum=Settings(by=by), optimizer=SimpleNamespace(seed=0))
        stage._restore_curriculum(TASKS, training, settings, phase, 0)
        assert len(looks) == count

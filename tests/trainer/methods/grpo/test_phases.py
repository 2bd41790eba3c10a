"""Phases: a schedule of the learning rate each, and a pool for each question."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.engine.events import TaskRef
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.methods.grpo.phases import list_phases, make_rate_factor
from trainer.recipe import Recipe, load_recipe
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.task import Task
from trainer.tasks.vary_pool import vary_pool
from trainer.tasks.verifier import ExactText

SAME = {"rename": 0, "rename_parameters": 0, "redescribe": 0, "substitute": 0, "distractors": 0, "prices": 0}
AS_IT_IS = PoolSettings(**SAME, flaky=0, shuffle=False, subset=None)
SEVEN = Pool(
    name="seven",
    workers=tuple(WorkerSpec(name=f"model_{k}", kind="calculator", description="A model.") for k in range(7)),
)


def a_task(index: int, **changes) -> Task:
    return replace(Task(TaskRef("own", 1, "train", index), f"q{index}", ExactText("x")), **changes)


def draw(settings: PoolSettings, count: int = 60) -> list[tuple[str, ...]]:
    """The names of the workers of each task's pool."""
    return [
        tuple(spec.name for spec in vary_pool(a_task(index), SEVEN, settings, 0).pool.workers) for index in range(count)
    ]


@pytest.mark.medium
def test_each_phase_rises_and_falls_anew():
    phases = [{"name": "a", "steps": 20}, {"name": "b", "steps": 100, "learning_rate": 5e-7}]
    optimizer = {"learning_rate": 1e-6, "schedule": "cosine", "warmup": 0.03}
    recipe = Recipe.model_validate({"grpo": {"steps": 200, "optimizer": optimizer, "phases": phases}})
    factor = make_rate_factor(recipe.grpo, list_phases(recipe.grpo, recipe))
    assert [factor(k) for k in (0, 3, 6)] == pytest.approx([0, 0.5, 1]), "six steps of warm-up"
    assert factor(103) == pytest.approx(0.5, abs=0.01) and factor(199) < 0.001
    assert factor(200) == 1 and factor(210) == pytest.approx(0.5), "20 steps have no warm-up at 3 %"
    assert factor(220) == 0 and factor(223) == pytest.approx(0.5) and factor(321) < 0.001
    assert max(factor(k) for k in range(220, 320)) == pytest.approx(0.5), "its own peak"
    assert all(math.isfinite(factor(k)) for k in range(330))


def test_a_question_without_a_plan_gets_a_random_part_of_the_pool():
    pools = draw(AS_IT_IS.model_copy(update={"least": 2}))
    assert {len(pool) for pool in pools} == {2, 3, 4, 5, 6, 7} and len(set(pools)) > 30
    assert all(list(pool) == sorted(pool) for pool in pools), "in the pool's order"
    assert set(draw(AS_IT_IS)) == {tuple(spec.name for spec in SEVEN.workers)}, "without `least` all of it"
    assert {len(pool) for pool in draw(AS_IT_IS.model_copy(update={"least": 64}))} == {7}


def test_one_question_has_one_pool_however_often_it_is_drawn():
    settings = AS_IT_IS.model_copy(update={"least": 1})
    assert draw(settings) == draw(settings)


def test_the_papers_preset_is_the_papers():
    recipe = load_recipe("conductor-paper")
    grpo = recipe.grpo
    assert recipe.sft is None and recipe.tasks.count == 960 and recipe.model.dialect == "conductor_paper"
    assert (grpo.steps, grpo.rollouts.prompts, grpo.rollouts.group, grpo.rollouts.max_rounds) == (200, 4, 64, 1)
    optimizer, loss = grpo.optimizer, grpo.loss
    rate = 1e-6 if recipe.model.lora is None else 1e-5  # an adapter needs ten times the rate of all weights
    assert (optimizer.learning_rate, optimizer.schedule, optimizer.warmup) == (rate, "cosine", 0.03)
    assert (loss.type, loss.beta, loss.epsilon, loss.epsilon_high) == ("grpo", 0.0, 0.2, 0.2)
    assert (grpo.rollouts.temperature, grpo.rollouts.mixed_only, recipe.model.turn_tokens) == (1.0, False, 1024)
    assert [(term.term, term.weight) for term in grpo.rewards] == [("accuracy", 0.5), ("readable", 0.5)]
    adaptive, recursion = grpo.phases
    assert adaptive.pools is not None and adaptive.pools.least and adaptive.recursion is None
    assert (recursion.steps, recursion.recursion.share, recursion.recursion.first_weight) == (20, 0.5, 0.25)
    assert recursion.tasks.count == 350

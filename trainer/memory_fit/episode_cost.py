"""Estimates how many episodes a recipe runs, and what they cost."""

from __future__ import annotations

import math

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.recipe import Recipe
from trainer.recipe_sections import TaskSettings
from trainer.results.statistics import mean
from trainer.tasks.registry import open_source

STEPS_WITHOUT_PLAN = 4
SAMPLE_TASKS = 40
TOKENS_IN, TOKENS_OUT = 500, 200  # assumed of one call, for prices by token


def count_episodes(recipe: Recipe) -> dict[str, int]:
    """Count episodes by purpose, without redraws. An evaluation without a list measures the start and every stage."""
    counts: dict[str, int] = {}
    checks = 0
    for stage in recipe.training_stages:
        counts |= stage.method.count_episodes(stage.settings, recipe)
        saving = stage.settings.saving
        checks += math.ceil(stage.steps / saving.every) * saving.check_tasks
    if checks:
        counts["checks"] = checks
    if (evaluate := recipe.evaluate) is not None:
        counts["evaluation"] = evaluate.count * (len(evaluate.orchestrators) or len(recipe.stages))
    return counts


def estimate_cost(recipe: Recipe, pool: Pool | None, episodes: int) -> tuple[float | None, list[str]]:
    """Estimate the cost in US dollars (None where nothing has a price), and list the assumptions behind it.

    Episodes x expected steps x mean price of a call, with every enabled worker called equally often.
    """
    workers = pool.enabled if pool is not None else ()
    prices = [_price_of_call(spec) for spec in workers]
    if not any(prices):
        return None, []
    steps, source = _estimate_steps(recipe.tasks)
    cost = episodes * steps * mean(prices)
    notes = [
        f"cost: {steps:.1f} steps per episode ({source}), every worker called equally often, "
        f"{TOKENS_IN} tokens in and {TOKENS_OUT} out per call"
    ]
    notes += (note for stage in recipe.training_stages for note in stage.method.list_cost_notes(stage.settings))
    return cost, notes


def _price_of_call(spec: WorkerSpec) -> float:
    """Compute the price of one call of a worker, in US dollars."""
    return spec.price_call + (spec.price_in * TOKENS_IN + spec.price_out * TOKENS_OUT) / 1_000_000


def _estimate_steps(settings: TaskSettings) -> tuple[float, str]:
    """Estimate the steps of an episode by the mean length of the first reference plans: (steps, how estimated)."""
    count = min(settings.count, SAMPLE_TASKS)
    tasks = open_source(settings.source).tasks("train", count, settings.seed, settings.levels)
    lengths = [len(task.oracle_turn.steps) for task in tasks if task.oracle_turn is not None]
    if not lengths:
        return float(STEPS_WITHOUT_PLAN), "assumed"
    return mean(lengths), f"mean of {len(lengths)} reference plans"

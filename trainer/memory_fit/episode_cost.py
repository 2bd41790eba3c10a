"""Estimates how many episodes a recipe runs, and what they cost."""

from __future__ import annotations

import math

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnusableTasks
from trainer.recipe import Recipe
from trainer.recipe_sections import EVERY_AGENT, START, TRAINED, TaskSettings
from trainer.results.statistics import mean
from trainer.tasks.registry import open_source

STEPS_WITHOUT_PLAN = 4
SAMPLE_TASKS = 40
TOKENS_IN, TOKENS_OUT = 500, 200  # assumed of one call, for prices by token


def count_episodes(recipe: Recipe, pool: Pool | None = None) -> dict[str, int]:
    """Count episodes by purpose, without redraws. An evaluation without a list measures the start and every stage.
    Without the pool, what every agent does alone counts once."""
    counts: dict[str, int] = {}
    agents = max(1, len(pool.agents())) if pool is not None else 1
    if (who := recipe.who) is not None:
        counts["questions to single agents"] = min(who.questions, recipe.tasks.count) * who.tries * agents
    checks = 0
    for stage in recipe.training_stages:
        counts |= stage.method.count_episodes(stage.settings, recipe)
        saving = stage.settings.saving
        checks += math.ceil(stage.steps / saving.every) * saving.check_tasks
    if checks:
        counts["checks"] = checks
    if (evaluate := recipe.evaluate) is not None:
        sizes = {EVERY_AGENT: agents, TRAINED: len(recipe.training_stages)}
        names = evaluate.orchestrators or (START, TRAINED)
        counts["evaluation"] = evaluate.count * sum(sizes.get(name.partition("+")[0], 1) for name in names)
    return counts


def estimate_cost(recipe: Recipe, pool: Pool | None, episodes: int) -> tuple[float | None, list[str]]:
    """Estimate the cost in US dollars (None where nothing has a price), and list the assumptions behind it.

    Episodes x expected steps x mean price of a call, with every enabled worker called equally often.
    """
    workers = pool.enabled if pool is not None else ()
    prices = [price_call(spec) for spec in workers]
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


def price_call(spec: WorkerSpec, tokens_in: int = TOKENS_IN) -> float:
    """Compute the price of one call of a worker, in US dollars."""
    return spec.price_call + (spec.price_in * tokens_in + spec.price_out * TOKENS_OUT) / 1_000_000


def _estimate_steps(settings: TaskSettings) -> tuple[float, str]:
    """Estimate the steps of an episode by the mean length of the first reference plans: (steps, how estimated)."""
    count = min(settings.count, SAMPLE_TASKS)
    try:
        tasks = open_source(settings.source).tasks("train", count, settings.seed, settings.levels)
    except UnusableTasks:  # not made yet
        tasks = []
    lengths = [len(task.oracle_turn.steps) for task in tasks if task.oracle_turn is not None]
    if not lengths:
        return float(STEPS_WITHOUT_PLAN), "assumed"
    return mean(lengths), f"mean of {len(lengths)} reference plans"

"""How many episodes a recipe runs, and what they cost."""

from __future__ import annotations

import math

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.recipe import Recipe
from trainer.tasks.registry import open_source

STEPS_WITHOUT_PLAN = 4
SAMPLE_TASKS = 40
TOKENS_IN, TOKENS_OUT = 500, 200  # assumed of one call, for prices by token


def count_episodes(recipe: Recipe) -> dict[str, int]:
    """Episodes by purpose, without those drawn anew. An evaluation with no list measures the start and every stage."""
    counts: dict[str, int] = {}
    if (sft := recipe.sft) is not None:
        counts["demonstrations"] = recipe.tasks.count * sft.demonstrations.samples
    if (grpo := recipe.grpo) is not None:
        batches = math.ceil(grpo.steps / grpo.loss.iterations)
        counts["rollouts"] = batches * grpo.rollouts.prompts * grpo.rollouts.group
    checks = 0
    for stage in (recipe.sft, recipe.grpo):
        if stage is not None:
            checks += math.ceil(stage.steps / stage.saving.every) * stage.saving.check_tasks
    if checks:
        counts["checks"] = checks
    if (wanted := recipe.evaluate) is not None:
        counts["evaluation"] = wanted.count * (len(wanted.orchestrators) or len(recipe.stages))
    return counts


def estimate_cost(recipe: Recipe, pool: Pool | None, episodes: int) -> tuple[float | None, list[str]]:
    """US dollars: episodes x expected steps x the mean price of a call, every enabled worker called equally often."""
    workers = pool.enabled if pool is not None else ()
    prices = [_price_of_call(spec) for spec in workers]
    if not any(prices):
        return None, []
    steps, source = _estimate_steps(recipe)
    cost = episodes * steps * sum(prices) / len(prices)
    told = [
        f"cost: {steps:.1f} steps per episode ({source}), every worker called equally often, "
        f"{TOKENS_IN} tokens in and {TOKENS_OUT} out per call"
    ]
    if recipe.grpo is not None and recipe.grpo.rollouts.mixed_only and recipe.grpo.rollouts.redraws:
        told.append(f"rollouts may be up to {1 + recipe.grpo.rollouts.redraws:g} times as many with redraws")
    if recipe.sft is not None and recipe.sft.demonstrations.teacher.startswith("model:"):
        told.append("the teacher's own tokens are not counted")
    return cost, told


def _price_of_call(spec: WorkerSpec) -> float:
    """US dollars per call."""
    return spec.price_call + (spec.price_in * TOKENS_IN + spec.price_out * TOKENS_OUT) / 1_000_000


def _estimate_steps(recipe: Recipe) -> tuple[float, str]:
    """Mean length of the reference plans of the recipe's first tasks, and where it comes from."""
    tasks = open_source(recipe.tasks.source).tasks(
        "train", min(recipe.tasks.count, SAMPLE_TASKS), levels=recipe.tasks.levels
    )
    lengths = [len(task.oracle_turn.steps) for task in tasks if task.oracle_turn is not None]
    if not lengths:
        return float(STEPS_WITHOUT_PLAN), "assumed"
    return sum(lengths) / len(lengths), f"mean of {len(lengths)} reference plans"

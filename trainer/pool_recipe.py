"""The recipe that trains an orchestrator for one person's pool: the preset `own-pool`, for that pool and its tasks."""

from __future__ import annotations

from typing import Any

from trainer.recipe import Recipe, load_recipe
from trainer.tasks.practice.stored import SOURCE

PRESET = "own-pool"
EPOCHS = 3  # how often each demonstration is seen
MIN_STEPS = 8


def fit_recipe_to_pool(recipe: Recipe, pool: str) -> Recipe:
    """A recipe for another pool. Practice tasks become those of that pool; other tasks stay."""
    tasks = recipe.tasks
    if tasks.source.startswith(SOURCE):
        tasks = tasks.model_copy(update={"source": f"{SOURCE}{pool}"})
    return recipe.model_copy(update={"pool": pool, "tasks": tasks})


def build_pool_recipe(pool: str, train_tasks: int) -> Recipe:
    """The recipe for a pool with so many practice tasks to learn from: as many steps as show each three times."""
    recipe = fit_recipe_to_pool(load_recipe(PRESET), pool)
    (stage,) = recipe.training_stages
    settings: Any = stage.settings
    steps = max(MIN_STEPS, -(-EPOCHS * train_tasks // settings.batch))
    saving = settings.saving.model_copy(update={"every": max(4, steps // 3)})
    recipe = stage.method.edit(recipe, steps=steps, saving=saving)
    tasks = recipe.tasks.model_copy(update={"count": max(1, train_tasks)})
    return recipe.model_copy(update={"name": f"{pool[:40]}-reader", "tasks": tasks})

"""The recipe that trains an orchestrator for one person's pool, on its own tasks: one of two presets."""

from __future__ import annotations

from typing import Any

from orchestrator.checkpoints import find_checkpoint
from orchestrator.prompt_styles import PROMPTS
from pool_registry.pool import Pool
from pool_registry.secrets import list_unset
from trainer.recipe import Recipe, load_recipe
from trainer.tasks.practice.stored import SOURCE

PLANS, AGENTS = "own-pool", "own-agents"  # it learns from plans; it learns from what agents get right
PRESETS = (PLANS, AGENTS)
EPOCHS = 3  # how often each demonstration is seen
MIN_STEPS = 8
SECOND_TURNS = 0.2  # of the demonstrations, for a reader that has learnt second turns. Not measured
LENGTH_WITH_FIELDS = 1500  # tokens of a lesson whose listing names fields


def choose_preset(pool: Pool, planned: int) -> str:
    """The preset for a pool with so many tasks that have a reference plan. Agents teach by their outcomes where there
    is no plan, and where there is nobody else."""
    agents = pool.agents()
    return AGENTS if len(agents) > 1 and (not planned or len(agents) == len(pool.enabled)) else PLANS


def fit_recipe_to_pool(recipe: Recipe, pool: str) -> Recipe:
    """A recipe for another pool. Practice tasks become those of that pool; other tasks stay."""
    tasks = recipe.tasks
    if tasks.source.startswith(SOURCE):
        tasks = tasks.model_copy(update={"source": f"{SOURCE}{pool}"})
    return recipe.model_copy(update={"pool": pool, "tasks": tasks})


def list_teachers(pool: Pool) -> list[str]:
    """The agents of a pool that can show plans: those that may be called, and whose keys are set on this machine."""
    return [spec.name for spec in pool.agents() if not list_unset(spec.config)]


def start_from(recipe: Recipe, checkpoint: str) -> Recipe:
    """The recipe, going on from a reader, whose prompts are of that reader's style. Others are left as they are shown
    there. Raises UnknownOrchestrator."""
    style = find_checkpoint(checkpoint)[1].prompt
    changes = {"start": checkpoint} | ({"prompt": style} if PROMPTS[style].binds_needs else {})
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update=changes)})
    if PROMPTS[style].lists_fields:
        (stage,) = recipe.training_stages
        recipe = stage.method.edit(recipe, max_length=LENGTH_WITH_FIELDS)
    return _show_second_turns(recipe) if PROMPTS[style].reads_states else recipe


def _show_second_turns(recipe: Recipe) -> Recipe:
    """The recipe, with second turns among its demonstrations, so that they are not forgotten."""
    (stage,) = recipe.training_stages
    section = stage.method.with_second_turns(stage.settings, SECOND_TURNS)
    return recipe if section is None else recipe.model_copy(update={stage.name: section})


def build_pool_recipe(
    pool: str,
    train_tasks: int,
    preset: str = PLANS,
    max_cost: float | None = None,
    teacher: str = "",
    start: str = "",
) -> Recipe:
    """The recipe for a pool with so many tasks to learn from. Plans are imitated in as many steps as show each three
    times. `max_cost` caps the whole job, in US dollars. `teacher` is an agent whose plans are imitated first, `start`
    the reader that learns from plans, in place of the preset's."""
    recipe = fit_recipe_to_pool(load_recipe(preset), pool)
    if preset == PLANS:
        recipe = _fit_steps(start_from(recipe, start) if start else recipe, train_tasks)
    tasks = recipe.tasks.model_copy(update={"count": max(1, train_tasks)})
    name = f"{pool[:40]}-{'reader' if preset == PLANS else 'agents'}"
    recipe = recipe.model_copy(update={"name": name, "tasks": tasks, "max_cost": max_cost})
    return recipe.with_teacher(teacher) if teacher else recipe


def _fit_steps(recipe: Recipe, train_tasks: int) -> Recipe:
    (stage,) = recipe.training_stages
    settings: Any = stage.settings
    steps = max(MIN_STEPS, -(-EPOCHS * train_tasks // settings.batch))
    saving = settings.saving.model_copy(update={"every": max(4, steps // 3)})
    return stage.method.edit(recipe, steps=steps, saving=saving)

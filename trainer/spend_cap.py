"""A cap on what a whole job costs, shared by its stages: each may spend what the others have left."""

from __future__ import annotations

from pathlib import Path

from trainer.jobs.job_folder import JobFolder
from trainer.recipe import EVALUATE, WHO, Recipe
from trainer.results.rows import read_results

TRAINING = "training"


def share_cap(recipe: Recipe, job_folder: JobFolder) -> Recipe:
    """The recipe with the job's cap set on every stage, less what its other stages have spent so far."""
    if recipe.max_cost is None:
        return recipe
    spent = sum_costs(job_folder)
    total = sum(spent.values())

    def leave(stage: str, own: float | None = None) -> float:
        left = max(0.0, (recipe.max_cost or 0.0) - total + spent[stage])
        return left if own is None else min(own, left)

    for stage in recipe.training_stages:
        if (section := stage.method.cap_cost(stage.settings, leave(TRAINING))) is not None:
            recipe = recipe.model_copy(update={stage.name: section})
    sections = {
        name: section.model_copy(update={"max_cost": leave(name, section.max_cost)})
        for name, section in ((WHO, recipe.who), (EVALUATE, recipe.evaluate))
        if section is not None
    }
    return recipe.model_copy(update=sections)


def sum_costs(job_folder: JobFolder) -> dict[str, float]:
    """What the stages of a job have spent, in US dollars."""
    return {
        WHO: _sum_rows(job_folder.outcomes) + job_folder.sum_costs(WHO),
        TRAINING: job_folder.read_training_cost(),
        EVALUATE: _sum_rows(job_folder.results) + job_folder.sum_costs(EVALUATE),
    }


def _sum_rows(file: Path) -> float:
    return sum(row.cost for row in read_results(file))

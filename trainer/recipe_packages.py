"""The installed packages beside Podium that a recipe needs wherever it runs: those that add its sources of tasks, its
methods and what these name, its policies, and the kinds of its pools' workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES
from pool_registry.pool import Pool
from pool_registry.portable_pool import list_distributions
from trainer.methods.table import METHODS
from trainer.recipe import Recipe
from trainer.tasks.registry import PROVIDERS, list_names


def list_recipe_packages(recipe: Recipe, pools: Sequence[Pool] = ()) -> tuple[str, ...]:
    """The names of the distributions, sorted."""
    names = {
        *(PROVIDERS.distribution_of(name) for source in recipe.list_sources() for name in list_names(source)),
        *(METHODS.distribution_of(stage.name) for stage in recipe.training_stages),
        *(name for stage in recipe.training_stages for name in stage.method.list_distributions(stage.settings)),
        *(POLICIES.distribution_of(OrchestratorName.parse(name).policy) for name in _list_orchestrators(recipe)),
        *(name for pool in pools for name in list_distributions(pool.switched_on)),
    }
    return tuple(sorted(names - {""}))


def _list_orchestrators(recipe: Recipe) -> Iterator[str]:
    for stage in recipe.training_stages:
        yield from stage.method.list_orchestrators(stage.settings)
    if recipe.evaluate is not None:
        yield from filter(None, (*recipe.evaluate.orchestrators, recipe.evaluate.reference))

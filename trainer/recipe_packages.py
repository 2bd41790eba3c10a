"""The installed packages beside Podium that a recipe needs wherever it runs: those that add its sources of tasks, its
rewards, its policies, and the kinds of its pools' workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES
from pool_registry.pool import Pool
from pool_registry.portable_pool import list_distributions
from trainer.methods.grpo.rewards import REWARDS
from trainer.recipe import Recipe
from trainer.tasks.registry import PROVIDERS, list_names


def list_recipe_packages(recipe: Recipe, pools: Sequence[Pool] = ()) -> tuple[str, ...]:
    """The names of the distributions, sorted."""
    names = {
        *(PROVIDERS.distribution_of(name) for source in recipe.list_sources() for name in list_names(source)),
        *(REWARDS.distribution_of(reward.term) for reward in (recipe.grpo.rewards if recipe.grpo else ())),
        *(POLICIES.distribution_of(OrchestratorName.parse(name).policy) for name in _list_orchestrators(recipe)),
        *(name for pool in pools for name in list_distributions(pool.enabled)),
    }
    return tuple(sorted(names - {""}))


def _list_orchestrators(recipe: Recipe) -> Iterator[str]:
    if recipe.sft is not None:
        yield recipe.sft.demonstrations.teacher
    if recipe.evaluate is not None:
        yield from filter(None, (*recipe.evaluate.orchestrators, recipe.evaluate.reference))

"""The JSON Schema that a recipe's form is made from, with the names that rewards and task sources have now."""

from __future__ import annotations

from functools import cache
from typing import Any

from trainer.methods.grpo.rewards import REWARDS
from trainer.recipe import Recipe
from trainer.recipe_sections import TaskSettings
from trainer.tasks.registry import PROVIDERS, describe_sources, list_train_families


@cache
def build_recipe_schema() -> dict[str, Any]:
    """The schema of `Recipe`: `examples` are what a form suggests, those of other packages included."""
    schema = Recipe.model_json_schema()
    terms, sources = schema["$defs"]["RewardSettings"], schema["$defs"]["TaskSettings"]
    terms["properties"]["term"] |= {
        "description": f"{', '.join(REWARDS)}, or your own function as FILE.py:FUNCTION.",
        "examples": list(REWARDS),
    }
    families = dict.fromkeys((TaskSettings().source, ",".join(list_train_families())))
    sources["properties"]["source"] |= {
        "description": f"Generated {describe_sources()}.",
        "examples": [*families, *(row.example for row in PROVIDERS.values() if row.example)],
    }
    return schema

"""The JSON Schema that a recipe's form is made from, with the names that rewards and task sources have now."""

from __future__ import annotations

from functools import cache
from typing import Any

from trainer.methods.table import METHODS
from trainer.recipe import Recipe
from trainer.recipe_sections import TaskSettings
from trainer.tasks.registry import PROVIDERS, describe_sources, list_train_families


@cache
def build_recipe_schema() -> dict[str, Any]:
    """The schema of `Recipe`: `examples` are what a form suggests, those of other packages included."""
    schema = Recipe.model_json_schema()
    sources = schema["$defs"]["TaskSettings"]
    for method in METHODS.values():
        method.complete_schema(schema["$defs"])
        schema["properties"][method.name] |= {"title": method.title, "method": method.label}
    families = dict.fromkeys((TaskSettings().source, ",".join(list_train_families())))
    sources["properties"]["source"] |= {
        "description": f"Generated {describe_sources()}.",
        "examples": [*families, *(row.example for row in PROVIDERS.values() if row.example)],
    }
    return schema

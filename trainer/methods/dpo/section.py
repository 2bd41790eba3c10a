"""The section `dpo` of a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trainer.recipe_sections import MethodSettings, OptimizerSettings, RecipeSection, SavingSettings

Source = Literal["verdicts", "stars", "all"]


class PairSettings(RecipeSection):
    """Which recorded runs make pairs: a better and a worse one of the same query on the recipe's pool."""

    source: Source = Field(
        default="all",
        description="verdicts: a run that a verifier, a judge or a person found right, against one found wrong. "
        "stars: a starred run against one without a star. all: either.",
    )
    most: int = Field(default=2000, ge=1, le=1_000_000, description="Pairs in all; the newest runs come first.")
    of_query: int = Field(default=4, ge=1, le=1000, description="Pairs of one query, so that none counts too much.")
    newest: int = Field(default=20_000, ge=2, le=1_000_000, description="So many of the newest runs are looked at.")
    held_out: float = Field(
        default=0.1,
        ge=0,
        le=0.5,
        description="Share of the queries whose pairs are only measured on, at every checkpoint. A query's own hash "
        "decides, so that it stays on its side.",
    )


class DpoSettings(MethodSettings):
    """Direct preference optimization on pairs of recorded runs, with TRL's DPOTrainer."""

    steps: int = Field(default=200, ge=1, le=1_000_000, description="Optimizer steps at most.")
    epochs: float = Field(default=3.0, gt=0, le=1000, description="It ends earlier once each pair was seen so often.")
    batch: int = Field(default=4, ge=1, le=4096, description="Pairs per forward pass: twice as many conversations.")
    accumulation: int = Field(default=2, ge=1, le=4096, description="Forward passes per step.")
    max_length: int = Field(default=1024, ge=32, le=262_144, description="Pairs with a longer side are left out.")
    beta: float = Field(
        default=0.1,
        gt=0,
        le=10,
        description="How strongly it is held to where it began. Less lets it go further from there.",
    )
    pairs: PairSettings = PairSettings()
    optimizer: OptimizerSettings = OptimizerSettings(learning_rate=5e-6, schedule="linear", warmup=0.1)
    saving: SavingSettings = SavingSettings(every=20)

"""The section `sft` of a recipe."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from trainer.recipe_sections import DemonstrationSettings, MethodSettings, OptimizerSettings, SavingSettings


class SftSettings(MethodSettings):
    """Supervised fine-tuning on the orchestrator's own turns, with TRL's SFTTrainer."""

    steps: int = Field(default=500, ge=1, le=10_000_000, description="Optimizer steps.")
    batch: int = Field(default=16, ge=1, le=4096, description="Trajectories per forward pass.")
    accumulation: int = Field(default=1, ge=1, le=4096, description="Forward passes per step.")
    max_length: int = Field(default=1024, ge=32, le=262_144, description="Longer trajectories are left out.")
    packing: bool = Field(default=False, description="Several trajectories per row; needs FlashAttention.")
    demonstrations: DemonstrationSettings = DemonstrationSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    saving: SavingSettings = SavingSettings()

    @model_validator(mode="after")
    def _has_steps_for_rounds(self) -> SftSettings:
        if self.demonstrations.rounds > self.steps:
            raise ValueError(f"{self.demonstrations.rounds} rounds need at least as many steps")
        return self

    @model_validator(mode="after")
    def _learns_lessons_alone(self) -> SftSettings:
        options = self.demonstrations
        if options.lessons and (options.rounds > 1 or options.file or options.variants):
            raise ValueError("demonstrations.lessons stand alone: set rounds: 1 and variants: 0, and leave file empty")
        return self

    def list_round_ends(self) -> tuple[int, ...]:
        """The last step of each round of demonstrations."""
        rounds = self.demonstrations.rounds
        return tuple(round(self.steps * (number + 1) / rounds) for number in range(rounds))

    def has_nothing_to_imitate(self, demonstrations: Path) -> bool:
        """Whether the teacher, which the recipe does not require, was asked and showed nothing for this file."""
        return not self.demonstrations.required and demonstrations.is_file() and not demonstrations.stat().st_size

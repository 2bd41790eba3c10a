"""The section `grpo` of a recipe. Figures marked "Conductor" are from arXiv 2512.04388, those marked "ParaManager" from
arXiv 2604.17009."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from trainer.recipe_sections import (
    MethodSettings,
    OptimizerSettings,
    RecipeSection,
    SavingSettings,
    Share,
    TaskSettings,
)
from trainer.tasks.pool_settings import PoolSettings


class RewardSettings(RecipeSection):
    """One term of the reward, and its weight."""

    term: str = Field(min_length=1, description="A reward's name, or your own function as FILE.py:FUNCTION.")
    weight: float = Field(default=1.0, ge=0, le=100, description="The reward is the weighted sum of the terms.")
    anneal: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="The weight falls linearly to 0 over this share of the steps. Empty: it stays.",
    )


class RecursionSettings(RecipeSection):
    """One forced recursive call: the model is shown its first answer and what led to it, and improves or keeps it."""

    share: Share = Field(default=0.5, description="Share of a step's groups that get the call. Conductor: half.")
    first_weight: float = Field(
        default=0.25,
        ge=0,
        le=10,
        description="Weight of the first answer's reward beside that of the last one, which is 1; the reward is their "
        "weighted mean. Conductor: 0.25.",
    )


class PhaseSettings(RecipeSection):
    """Steps that follow the main run, with some settings changed: a schedule of the learning rate of their own, another
    pool for each question (Conductor's adaptive phase), or recursive calls (its recursion phase)."""

    name: str = Field(default="adaptive", pattern=r"^[a-z][a-z0-9-]{0,23}$", description="Of your choice.")
    steps: int = Field(default=20, ge=1, le=1_000_000, description="Optimizer steps. Conductor's recursion: 20.")
    learning_rate: float | None = Field(
        default=None, gt=0, le=1, description="Peak learning rate; empty for that of the main run."
    )
    tasks: TaskSettings | None = Field(default=None, description="Other tasks. Empty: those of the main run.")
    pools: PoolSettings | None = Field(
        default=None, description="Draws a pool for each task. Empty: as in the main run."
    )
    recursion: RecursionSettings | None = Field(default=None, description="Forces recursive calls. Empty: none.")


class RolloutSettings(RecipeSection):
    """How episodes are sampled."""

    prompts: int = Field(default=4, ge=1, le=4096, description="Tasks per step, each with one group of episodes.")
    group: int = Field(default=8, ge=2, le=1024, description="Episodes per task.")
    temperature: float = Field(default=1.0, gt=0, le=2, description="Of sampling. ParaManager: 1.0.")
    top_p: float = Field(default=1.0, gt=0, le=1, description="Nucleus sampling; 1 is off.")
    max_rounds: int = Field(default=2, ge=1, le=64, description="Turns per episode. Conductor: 1.")
    max_length: int = Field(default=4096, ge=64, le=262_144, description="Tokens of an episode, prompt included.")
    backend: Literal["transformers", "vllm", "vllm-colocate", "vllm-async"] = Field(
        default="transformers",
        description="transformers: in the trainer. vllm: a server, adapters reloaded. vllm-colocate: in this process. "
        "vllm-async: your own server on another GPU, which samples while the trainer updates.",
    )
    vllm_memory: float = Field(default=0.3, gt=0, lt=1, description="Share of the GPU that vLLM takes.")
    vllm_eager: bool = Field(
        default=False,
        description="vLLM without CUDA graphs: starts sooner, takes less memory, generates slower. Always so on a CPU.",
    )
    vllm_url: str = Field(default="", description="A running server; empty starts one.")
    mixed_only: bool = Field(
        default=True,
        description="All-right and all-wrong groups are replaced by new ones, as in ParaManager and DAPO.",
    )
    redraws: float = Field(default=1.0, ge=0, le=10, description="At most so many extra groups for each planned one.")
    who: str = Field(
        default="",
        pattern="^[a-z_]*$",
        description="Of a reader: the score by which workers are chosen for a need, as in +who=; predictor after the "
        "stage `who`. Empty: by likeness alone.",
    )
    cache: bool = Field(default=True, description="Equal calls of a deterministic tool are made once.")
    concurrency: int = Field(default=256, ge=1, le=10_000, description="Episodes at a time.")
    max_cost: float | None = Field(default=None, gt=0, description="US dollars for the whole job; empty: no cap.")


class CurriculumSettings(RecipeSection):
    """Moves toward tasks that the model solves sometimes."""

    enabled: bool = Field(default=True, description="Off: every level, or every task, is drawn equally often.")
    by: Literal["level", "task"] = Field(
        default="level",
        description="What has a success rate of its own: family and level, or each task, as own ones need it.",
    )
    target: Share = Field(default=0.5, description="The success rate that teaches most.")
    floor: Share = Field(default=0.1, description="Least weight of every family and level, or task; the most is 1.")


AdvantageScale = Literal["group", "batch", "none"]


class LossSettings(RecipeSection):
    """The policy loss, as TRL offers it."""

    type: Literal["dapo", "grpo", "dr_grpo", "bnpo", "cispo", "gspo"] = Field(
        default="dapo", description="Form of the loss. gspo: GRPO with sequence-level ratios."
    )
    beta: float = Field(default=0.0, ge=0, description="Weight of the KL term against the start.")
    epsilon: float = Field(default=0.2, gt=0, lt=1, description="Clipping from below.")
    epsilon_high: float = Field(default=0.28, gt=0, description="Clipping from above (DAPO's clip-higher).")
    scale: AdvantageScale = Field(
        default="group", description="Whose deviation advantages are divided by. none: Dr. GRPO."
    )
    iterations: int = Field(default=1, ge=1, le=64, description="Optimizer passes over each batch of episodes.")


class GrpoSettings(MethodSettings):
    """Reinforcement learning on whole episodes, with TRL's GRPOTrainer."""

    steps: int = Field(default=60, ge=1, le=1_000_000, description="Optimizer steps. Conductor: 200.")
    micro_batch: int = Field(default=32, ge=1, le=4096, description="Episodes per forward pass.")
    rollouts: RolloutSettings = RolloutSettings()
    rewards: tuple[RewardSettings, ...] = Field(
        default=(RewardSettings(term="accuracy"), RewardSettings(term="format", weight=0.2)), min_length=1
    )
    curriculum: CurriculumSettings = CurriculumSettings()
    loss: LossSettings = LossSettings()
    optimizer: OptimizerSettings = OptimizerSettings(learning_rate=1e-5, schedule="constant")
    saving: SavingSettings = SavingSettings(every=20)
    phases: tuple[PhaseSettings, ...] = Field(
        default=(), max_length=16, description="Steps after the main run, one phase after the other."
    )

    @property
    def all_steps(self) -> int:
        """The steps of the main run and of every phase."""
        return self.steps + sum(phase.steps for phase in self.phases)

    @model_validator(mode="after")
    def _names_phases(self) -> GrpoSettings:
        names = [phase.name for phase in self.phases]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two phases are called {twice}; give each its own name")
        return self

    @model_validator(mode="after")
    def _divides(self) -> GrpoSettings:
        episodes = self.rollouts.prompts * self.rollouts.group
        if episodes % self.micro_batch:
            raise ValueError(f"micro_batch must divide prompts x group = {episodes}")
        return self

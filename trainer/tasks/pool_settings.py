"""How the pools of training vary: the section `pools` of a recipe."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from pool_registry.strict_model import FrozenModel
from pool_registry.worker import NAME_PATTERN

Share = Annotated[float, Field(ge=0, le=1)]
PoolName = Annotated[str, Field(pattern=NAME_PATTERN)]


class PoolSettings(FrozenModel):
    """Draws a pool for each task or for a few, so that the model learns to read pools, not one by heart."""

    model_config = ConfigDict(allow_inf_nan=False)

    sources: tuple[PoolName, ...] = Field(
        default=(), description="Other pools by name, with commas between them: their workers serve as distractors."
    )
    subset: int | None = Field(
        default=8,
        ge=0,
        le=64,
        description="The workers that a task needs and up to so many others of its pool. Empty: the whole pool.",
    )
    least: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="For tasks that do not say which workers they need: so many of the pool's at least, and at most "
        "all, drawn for each task (Conductor's adaptive phase). Empty: all of them.",
    )
    shuffle: bool = Field(default=True, description="Another order of the workers for each task.")
    distractors: int = Field(default=5, ge=0, le=5, description="Up to so many workers that do not help.")
    rename: Share = Field(default=0.67, description="Share of tasks whose workers have made-up names. Hammer: 0.67.")
    rename_parameters: Share = Field(default=0.33, description="Share whose tools have parameters of other names.")
    redescribe: Share = Field(
        default=0.67, description="Share with descriptions in other words, where a bank has some."
    )
    substitute: Share = Field(default=0.12, description="Share with a worker replaced by an equal one in other words.")
    prices: Share = Field(
        default=0.2, description="Share with prices, drawn for half of the tools. They count as cost."
    )
    latencies: Share = Field(
        default=0.0, description="Share with latencies, drawn for half of the tools. Each call really waits."
    )
    max_latency_ms: int = Field(
        default=500, ge=1, le=10_000, description="Latencies are drawn from a tenth of this to this, in milliseconds."
    )
    flaky: Share = Field(
        default=0.1, description="Share with a tool that fails on half of its calls, beside a sound one."
    )
    tasks_per_pool: int = Field(
        default=1,
        ge=1,
        le=64,
        description="So many tasks in a row share a drawn pool, which holds what all of them need. With 4, rows of "
        "a batch share a listing, which a CPU computes once.",
    )
    unseen: str = Field(
        default="",
        max_length=500,
        description="A source of tasks on pools that training does not draw: checkpoints are measured on them too.",
    )

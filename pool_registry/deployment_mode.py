"""When the plan of an orchestrator runs by itself, and when it waits for a person."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pool_registry.strict_model import FrozenModel

ModeName = Literal["autonomous", "escalate", "review"]
STRICTNESS: tuple[ModeName, ...] = ("autonomous", "escalate", "review")


class DeploymentMode(FrozenModel):
    """How a pool's runs are released. Calls that have effects follow it wherever they are made.

    The limits count in escalate alone: a plan that stays within all of them runs without a person.
    """

    name: ModeName = Field(
        default="autonomous",
        description="autonomous: plans run at once. review: every plan waits for a person. escalate: a plan runs at "
        "once while it stays within the limits below and calls no worker that has effects; otherwise it waits.",
    )
    max_doubt: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="In escalate: the most doubt that a plan may have, from 0 to 1: how unlike what the orchestrator "
        "learnt the question's words are, and the share of drawn plans that disagree, each for itself. Neither is the "
        "chance that the answer is wrong. A plan without either figure always waits, unless this is 1.",
    )
    max_plan_cost: float | None = Field(
        default=None, ge=0, description="In escalate: the highest estimated cost of a plan, in US dollars."
    )
    max_plan_s: float | None = Field(
        default=None, gt=0, description="In escalate: the longest estimated time of a plan, in seconds."
    )
    escalate_to: str = Field(
        default="",
        max_length=200,
        description="In escalate: the stronger orchestrator that plans instead, such as model:planner. A person is "
        "asked where its plan is beyond a limit too, and always before a call that has effects. Empty: a person.",
    )


AUTONOMOUS = DeploymentMode()


def tighten_mode(mode: DeploymentMode, name: ModeName | None) -> DeploymentMode:
    """The stricter of a mode and another one's name: clients of a served model can only tighten."""
    if name is None or STRICTNESS.index(name) <= STRICTNESS.index(mode.name):
        return mode
    return mode.model_copy(update={"name": name})

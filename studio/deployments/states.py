"""What a deployment is: a name that requests go to, and behind it a pool version, an orchestrator and options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pool_registry.deployment_mode import ModeName
from pool_registry.errors import PoolError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SHADOW_COST = 1.0  # US dollars of all shadows of a candidate, unless a person says otherwise
Action = Literal["deployed", "changed", "candidate", "withdrawn", "promoted", "rolled back"]


class DeploymentRefused(PoolError):
    """Raised for a change of a deployment that is not made; says why and what to do."""


class DeploymentNotFound(PoolError):
    """Raised where there is no deployment of a name."""


class DeploymentOptions(BaseModel):
    """The options of `podium serve` that go with the name: limits of a request, the mode of plans, recording, and
    whether messages are read as follow-ups."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_total_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    deadline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    mode: ModeName | None = None
    record: bool = True
    follow_ups: bool = True


class ServingSide(BaseModel):
    """What answers the requests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str
    pool_version: int
    orchestrator: str
    options: DeploymentOptions = DeploymentOptions()


class Candidate(BaseModel):
    """An orchestrator that is tried on the requests of a deployment.

    `share` of the conversations are answered by it; None: it runs in the shadow, on requests that were answered, and
    its shadows may cost `max_cost` US dollars together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    orchestrator: str
    share: float | None = Field(default=None, gt=0, lt=1)
    max_cost: float = Field(default=SHADOW_COST, gt=0, allow_inf_nan=False)


class DeploymentState(BaseModel):
    """A deployment at one time, whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    serving: ServingSide
    candidate: Candidate | None = None


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """A change of a deployment, with the whole state after it.

    `number` counts the changes of one deployment from 1. `back_to` is the change whose serving side a rollback brings
    back, None where nothing served before. `report` is the improvement that a promotion rests on, as JSON, or "".
    """

    deployment: str
    number: int
    action: Action
    state: DeploymentState
    back_to: int | None
    by: str
    at: str  # UTC, ISO 8601
    reason: str = ""
    report: str = ""

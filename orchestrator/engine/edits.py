"""What a person changes in a recorded round, and the record of it in the trace of the episode that results.

Data only, so that the events of a trace can hold it; what_if.py gives it its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from pool_registry.actions import JsonValue


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """Step `step` calls this worker with these arguments and may see these steps."""

    step: int
    worker: str
    arguments: Mapping[str, JsonValue]
    access: tuple[int, ...] = ()
    edit: Literal["change"] = "change"


@dataclass(frozen=True, slots=True)
class AddStep:
    """A new step. Its number is one that no step of the episode has; other edits may name it."""

    step: int
    worker: str
    arguments: Mapping[str, JsonValue]
    access: tuple[int, ...] = ()
    edit: Literal["add"] = "add"


@dataclass(frozen=True, slots=True)
class RemoveStep:
    """Step `step` is gone."""

    step: int
    edit: Literal["remove"] = "remove"


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Step `step` stays as it is and is called anew: its failure may have been an accident."""

    step: int
    edit: Literal["again"] = "again"


@dataclass(frozen=True, slots=True)
class SetAnswer:
    """The turn's answer, which may quote steps as `$k`; None takes it away."""

    answer: JsonValue
    edit: Literal["answer"] = "answer"


AnyEdit = ChangeStep | AddStep | RemoveStep | RunAgain | SetAnswer
Edit: TypeAlias = Annotated[AnyEdit, Field(discriminator="edit")]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The episode that this one varies: from which trace, which of its rounds was edited, and how.

    The edits name steps by their numbers there. `kept` maps each step of this episode whose observation was
    taken over to the step there that made it; every other step was called anew.
    """

    episode: str
    round: int
    edits: tuple[Edit, ...]
    kept: Mapping[int, int] = field(default_factory=dict)

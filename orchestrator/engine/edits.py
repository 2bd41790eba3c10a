"""The edits of a what-if, and their record in the trace of the resulting episode.

Plain data, so that the events of a trace can hold it; what_if.py applies it.
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
    """Step `step` is removed."""

    step: int
    edit: Literal["remove"] = "remove"


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Step `step` is called again unchanged: its failure may have been temporary."""

    step: int
    edit: Literal["again"] = "again"


@dataclass(frozen=True, slots=True)
class SetAnswer:
    """The turn's answer, which may quote steps as `$k`; None removes it."""

    answer: JsonValue
    edit: Literal["answer"] = "answer"


AnyEdit = ChangeStep | AddStep | RemoveStep | RunAgain | SetAnswer
Edit: TypeAlias = Annotated[AnyEdit, Field(discriminator="edit")]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The origin of a what-if: the recorded episode, which of its rounds was edited, and how.

    The edits use the recorded episode's step numbers. `kept` maps each step of this episode whose observation was
    kept to the recorded step that made it; every other step was called.
    """

    episode: str
    round: int
    edits: tuple[Edit, ...]
    kept: Mapping[int, int] = field(default_factory=dict)
    on_copies: tuple[str, ...] = ()  # files and folders that it left alone: its workers changed copies of them

"""The documents of a what-if and of a plan that waits: the editor of a round, what its edits call, what came of it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from orchestrator.graphs.diff import Mark
from orchestrator.traces.step_counts import StepCounts
from pool_registry.actions import JsonValue
from pool_registry.worker import Role
from studio.frame.document import PageDocument

Problems = list[tuple[str, str]]  # of the edits: (field, sentence)


class PlannedStep(PageDocument):
    """A step as it was planned, and how it ended."""

    id: int
    worker: str
    arguments: dict[str, JsonValue]
    access: list[int]
    problem: str | None
    status: str


class EditedRound(PageDocument):
    """One recorded round: its steps, or its answer, or the error of its turn."""

    round: int
    error: str | None
    answer: JsonValue
    steps: list[PlannedStep]


class RoundDocument(EditedRound):
    """A round, ready to be edited; `fresh` is the next free number of a step."""

    rounds: int
    fresh: int


class CallableWorker(PageDocument):
    """A worker that a step may call, with the JSON Schema of its arguments."""

    name: str
    role: Role
    kind: str
    description: str
    parameters: dict[str, JsonValue]
    instruction: str | None


class WhatIfEditor(PageDocument):
    """The recorded rounds, and the workers that a step may call."""

    problems: Problems = []
    episode: str
    rounds: list[EditedRound]
    fresh: int
    workers: list[CallableWorker]


class EditProblems(PageDocument):
    """Why the edits cannot be carried out."""

    problems: Problems


class StepFates(PageDocument):
    """What the edits call again and what they keep, by the numbers that the edits use."""

    problems: Problems = []
    rerun: list[int]
    kept: list[int]
    dropped: int = Field(description="Later rounds that are planned anew.")
    effectful: list[int] = Field(default=[], description="Those of `rerun` whose call may change something.")


class StartedVariation(PageDocument):
    """The episode of a what-if that was started."""

    problems: Problems = []
    episode: str


class WaitingPlan(PageDocument):
    """A run whose plan waits for a person."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    query: str
    pool: str
    orchestrator: str
    started_at: str
    user_name: str


class DecidedPlan(PageDocument):
    """The episode whose plan was decided."""

    problems: Problems = []
    episode: str


class RunResult(PageDocument):
    """What came of a run."""

    id: str
    orchestrator: str
    state: str
    answer: str | None
    correct: bool | None
    started_at: str
    wall_s: float
    counts: StepCounts
    tokens: int
    cost: float


class EditedField(PageDocument):
    """A field of a step before and after an edit."""

    field: str
    before: str
    after: str


class EditDocument(PageDocument):
    """An edit in words; one of the answer has no step."""

    edit: Literal["change", "add", "remove", "again", "answer"]
    step: int | None
    worker: str = ""
    fields: list[EditedField]


class ChangeDocument(PageDocument):
    """A difference between an original and its copy; "" where a world has nothing there."""

    model_config = ConfigDict(from_attributes=True)

    place: str
    item: str = Field(description='What of the file is other, such as "line 3"; "" for the file itself.')
    original: str
    on_copy: str


class CopiesDocument(PageDocument):
    """The files and folders that a what-if left alone, and what it changed on its copies of them."""

    places: list[str]
    compared: bool = Field(description="Whether the what-if came to the end that compares them.")
    changes: list[ChangeDocument]


class VariationsDocument(PageDocument):
    """The what-ifs of a run; of a what-if also the run that it varies, its edits and the difference."""

    problems: Problems = []
    origin: RunResult | None = None
    result: RunResult | None = None
    round: int | None = None
    dropped: int = 0
    kept: int = 0
    rerun: int = 0
    edits: list[EditDocument] = []
    differences: dict[Mark, int] = {}
    variations: list[RunResult]
    copies: CopiesDocument | None = None

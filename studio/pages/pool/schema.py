"""The documents of the Pool page: a pool with its workers and versions, the gallery, imports, tests, lessons, bindings.

Latencies are seconds, costs US dollars.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pool_registry.actions import JsonValue
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.gallery.templates import Group, Needs, TemplateField
from pool_registry.pool import Limits
from pool_registry.worker import Role, WorkerSpec
from studio.access.roles import UserRole
from studio.frame.document import PageDocument
from studio.pages.pool.memory_gain import MemoryGain
from studio.worker_health import WorkerHealth
from trainer.memory_fit.job_estimate import JobEstimate

Place = Literal["here", "machine", "remote"]

# A pool


class TopicFacts(PageDocument):
    """A family of tasks: how many questions of it a worker was graded on, and how many it got right."""

    topic: str
    graded: int
    right: int


class WorkerFacts(PageDocument):
    """A worker's track record: questions that it alone answered and that were graded. `read` is how many graded runs of
    the pool were looked at, at most; None for all. Times in ISO 8601."""

    graded: int
    right: int
    median_s: float
    cost: float = Field(description="Mean US dollars of a question.")
    newest: str
    topics: list[TopicFacts]
    read: int | None
    computed_at: str


class WorkerCard(WorkerSpec):
    """A worker with its light and its record; `success` (of calls) and latency are None before its first call."""

    role: Role
    icon: str
    label: str
    points_at: str = Field(description="Where its answers come from, in one line.")
    remote: bool
    place: Place = Field(description="Where a call goes: this process, a server on this machine, or another machine.")
    runs_program: str = Field(description="What a call starts on this machine outside the sandbox.")
    isolated: bool
    permissions: str = Field(description="What a Python function may reach in the sandbox; empty for all others.")
    light: WorkerHealth
    calls: int
    success: float | None
    median_latency_s: float | None
    cost_call: float | None = Field(
        default=None, description="Mean US dollars of its last calls here; None before the first and without a price."
    )
    may_have_effects: bool = Field(description="Whether a call may change something outside.")
    graded: int = Field(description="Newest graded questions that it alone answered, or that a cascade asked it.")
    right: int = Field(description="Those of them that it got right.")
    facts: WorkerFacts | None = Field(default=None, description="Its track record; None before its first graded run.")
    agreement: str = Field(description="Of a judge: how far it agrees with a person, in a sentence.")


class VersionLine(PageDocument):
    """A version of a pool, and what it changed."""

    version: int
    created_at: str
    hash: str
    workers: int
    changes: str


class PoolDocument(PageDocument):
    """One version of a pool; `current` is its newest version."""

    name: str
    description: str
    version: int
    current: int
    hash: str
    based_on: str = Field(description="The whole hash: an edit names with it what the person saw.")
    current_hash: str = Field(description="The same of the newest version.")
    limits: Limits
    mode: DeploymentMode
    workers: list[WorkerCard]
    versions: list[VersionLine]


class KindDocument(PageDocument):
    """A kind of worker, and the JSON Schema of its configuration, from which the page builds the form."""

    name: str
    label: str
    role: Role
    icon: str
    summary: str
    json_schema: dict[str, JsonValue] = Field(serialization_alias="schema")


class PoolPageState(PageDocument):
    """Everything that the page draws; there is no pool before the first one is made. `read_only`: only owners change
    this pool. `role` is the viewer's."""

    pools: list[str]
    pool: PoolDocument | None
    kinds: list[KindDocument]
    read_only: bool
    role: UserRole
    limits_schema: dict[str, JsonValue]
    mode_schema: dict[str, JsonValue]
    advanced_schema: dict[str, JsonValue]


class ConflictLine(PageDocument):
    """One thing that two edits say differently, as text; None where it is not there. `worker` is empty for the pool
    itself, `field` for a worker as a whole."""

    worker: str
    field: str
    theirs: str | None
    yours: str | None


class ConflictDocument(PageDocument):
    """Why an edit was refused: another of the same was saved first. Sent again with `based_on`, it replaces that."""

    based_on: str
    lines: list[ConflictLine]


class FieldDifference(PageDocument):
    """A field in two versions as text; None where it is not set."""

    field: str
    before: str | None
    after: str | None


class WorkerDifference(PageDocument):
    """A worker that was added, removed or changed between two versions."""

    name: str
    change: str
    about: str
    fields: list[FieldDifference]


class VersionDifference(PageDocument):
    """What differs between two versions: workers, and fields of the pool itself."""

    workers: list[WorkerDifference]
    pool: list[FieldDifference]


# Adding and trying workers


class ModelChoice(PageDocument):
    """A model on which a role agent can run."""

    name: str
    label: str


class TemplateCard(PageDocument):
    """One card of the gallery; `preset` is what the form of "Edit first" begins with."""

    id: str
    group: Group
    title: str
    line: str
    needs: Needs
    note: str
    fields: list[TemplateField]
    runs_on_model: bool
    kind: str
    role: Role
    icon: str
    preset: WorkerSpec | None


class GalleryDocument(PageDocument):
    """Every template, and the models on which a role agent can run."""

    templates: list[TemplateCard]
    models: list[ModelChoice]


class OfferDocument(PageDocument):
    """A worker that a source offers; `problem` says why it cannot be added."""

    spec: WorkerSpec
    problem: str
    mended: list[str] = Field(description="What was changed in the schema of its arguments so that it can be used.")
    may_have_effects: bool = Field(description="Whether nothing says that its calls only read.")
    parameters: dict[str, JsonValue]
    returns: str = Field(description='The fields of what it returns, as plans name them: "{id, city}"; "" for none.')


class PastedDocument(PageDocument):
    """What a pasted text is: `actions` are what has to be asked before more can be offered, `takes` the settings that
    it has a use for."""

    label: str
    actions: list[str]
    offers: list[OfferDocument]
    notes: list[str]
    takes: list[str]
    keys: int = Field(description="How many keys stand in it.")


class WorkerTest(PageDocument):
    """What came of a test of a worker: of a call with the sample `input`, or of its probe."""

    how: Literal["call", "probe"]
    status: str
    latency_s: float | None
    text: str
    input: str
    note: str = Field(description='Where the input of the call comes from, or why it was not called; "" for its own.')


class TryForm(PageDocument):
    """What "Try it" begins with; `seen` is None for a worker that is never shown earlier outputs."""

    parameters: dict[str, JsonValue]
    returns: str = Field(description='The fields of what it returns, as plans name them; "" where nobody says them.')
    sample: dict[str, JsonValue]
    seen: str | None


class ObservationDocument(PageDocument):
    """What a call returned; the value as text."""

    status: str
    value: str | None
    latency_s: float
    tokens_in: int
    tokens_out: int
    cost: float
    error: str | None
    notes: list[str] = Field(description="How arguments were read that were written otherwise.")


# Failure memory


class LessonDocument(PageDocument):
    """A lesson, and the episode that it was learnt from."""

    id: int | None
    query: str
    sentence: str
    written_by: str
    instead_of: str
    episode: str
    tokens: int
    cost: float
    created_at: str
    retry: str = Field(description="The episode that was right with it; empty before one was.")
    awaits: str = Field(description="The second try that has to show whether it is good before it is used; else empty.")
    is_tried: bool = Field(description="Whether that second try is being made; else it waits for a person's verdict.")
    shown: int
    helped: int


class MemoryDocument(PageDocument):
    """A pool's failure memory: who writes it (`gone` when that agent is not there any more), newest lesson first, and
    what it brings by the last measurement."""

    mode: str
    retry: bool = Field(description="Whether a failed run is tried again at once with its lesson.")
    agents: list[str]
    gone: bool
    count: int
    read: int
    lessons: list[LessonDocument]
    gain: MemoryGain | None


# Skills


class SkillLine(PageDocument):
    """A skill of a pool, or one that it may have: then `questions` are some of those that it was made of, and `problem`
    says why it cannot be added, "" where it can."""

    name: str
    description: str
    parameters: list[str]
    steps: list[str] = Field(description="The workers that it calls, in their order.")
    record: str = Field(description="How it was tested, in a sentence.")
    questions: list[str]
    problem: str


class SkillsDocument(PageDocument):
    """The skills that a pool has, and those that were found for it just now."""

    skills: list[SkillLine]
    candidates: list[SkillLine]


# Bindings


class BindingRow(PageDocument):
    """A learnt worker and the one that stands for it; `automatic` is what it would be without a person's choice."""

    learnt: str
    role: Role
    description: str
    worker: str
    worker_description: str
    likeness: float
    by: str
    edited: bool
    automatic: str
    parameters: list[tuple[str, str]]
    choices: list[str]
    problem: str


class CheckpointBinding(PageDocument):
    """What a checkpoint's learnt workers are bound to; `reason` says why it is not bound at all."""

    checkpoint: str = ""
    rows: list[BindingRow] = []
    reason: str = ""
    changes_nothing: bool = True


class BindingDocument(CheckpointBinding):
    """The binding of one of the checkpoints on one version of a pool; without checkpoints there are no rows."""

    checkpoints: list[tuple[str, str]]
    pool: str
    version: int


# Training


class TrainingPlan(PageDocument):
    """What *Train on this pool* would do: by plans or by the outcomes of agents, what it takes, and what is missing."""

    by_outcomes: bool
    teachers: list[str] = Field(description="Agents whose plans may be imitated first; their keys are set.")
    estimate: JobEstimate | None
    gaps: list[str]

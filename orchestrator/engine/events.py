"""The events of a trace, appended as they happen and never changed.

The page, the trainer and the store read the same events; `Episode` (episode.py) is the state that they add up to.
`at` is in seconds since the episode began.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import Field, TypeAdapter

from orchestrator.approval.records import AskReason, PlanEstimate, Verdict
from orchestrator.engine.edits import Edit, WhatIf
from orchestrator.plan import Turn
from pool_registry.actions import NO_USAGE, JsonValue, Observation, Usage, clean_text
from pool_registry.calls.run_limits import RunLimits
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.forks.differences import Change

EVALUATION = "evaluation"  # EpisodeStarted.source
Outcome = Literal[
    "answered", "gave_up", "max_rounds", "max_tokens", "max_cost", "deadline", "stopped", "orchestrator_failed",
    "rejected",
]  # fmt: skip


SERVED = "served"  # the source of a client's run (EpisodeStarted.source)


@dataclass(frozen=True, slots=True)
class TaskRef:
    """The task behind a query: enough to generate it again, with its verifier and its reference plan."""

    family: str
    level: int
    split: str
    index: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class ParentStep:
    """The step of the outer episode that a recursive episode serves."""

    episode: str
    step: int


@dataclass(frozen=True, slots=True)
class ServedAs:
    """The deployment under whose name a request came, and the side of it that this episode is.

    A shadow's answer is given to nobody; `shadow_of` is the episode whose answer was. `change` is the number of the
    deployment's change that was served, 0 in traces of older versions.
    """

    deployment: str
    side: Literal["serving", "candidate", "shadow"]
    shadow_of: str = ""
    change: int = 0


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that a thread began with: its question, its answer as a person read it, and the plan's own, None where
    that was none or too long to keep."""

    episode: str
    question: str
    answer: str
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class FollowUp:
    """That an episode goes on with another run: what was typed, and the runs before, the latest last. Its query is how
    that was understood: by a rule, by a person who wrote or chose it, or by the agent of that name with its `usage`.
    `quotes` says that it holds a part of an earlier answer. `question` is that question alone, where the query has
    what a client says beside it."""

    text: str
    before: tuple[EarlierRun, ...]
    by: Literal["rule", "person", "agent"]
    quotes: bool = False
    usage: Usage = NO_USAGE
    agent: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeStarted:
    query: str
    pool: str
    pool_hash: str
    orchestrator: str
    limits: Mapping[str, JsonValue]
    started_at: str  # UTC, ISO 8601
    depth: int = 0
    parent: ParentStep | None = None
    task: TaskRef | None = None
    at: float = 0.0
    what_if: WhatIf | None = None
    user: str = ""  # who asked, where people log in or clients have tokens
    source: str = ""  # what it ran for: mine, served, evaluation or training; "" in traces of older versions
    mode: DeploymentMode | None = None  # None: no plan of this episode waits (older traces, episodes inside others)
    run_limits: RunLimits | None = None  # what the caller of this run allowed it; None: all that its pool allows
    served_as: ServedAs | None = None  # None: not a request to a deployment
    retry_of: str = ""  # the failed episode whose lesson this one is shown
    follow_up: FollowUp | None = None  # None: it goes on with no other run
    type: Literal["episode_started"] = "episode_started"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    round: int
    at: float
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class TurnTaken:
    """The orchestrator's turn, with malformed steps already marked."""

    round: int
    turn: Turn
    at: float
    type: Literal["turn_taken"] = "turn_taken"


@dataclass(frozen=True, slots=True)
class PlanHeld:
    """The plan of this round does not run by itself: it waits for a person's decision."""

    round: int
    reasons: tuple[AskReason, ...]
    estimate: PlanEstimate
    at: float
    held_at: str = ""  # UTC, ISO 8601
    type: Literal["plan_held"] = "plan_held"


@dataclass(frozen=True, slots=True)
class PlanEscalated:
    """A stronger orchestrator was asked for this round and all later ones. `turn` is its plan with the usage of both,
    None where it could not write one; `error` says why."""

    round: int
    reasons: tuple[AskReason, ...]
    orchestrator: str
    at: float
    turn: Turn | None = None
    error: str = ""
    type: Literal["plan_escalated"] = "plan_escalated"


@dataclass(frozen=True, slots=True)
class PlanDecided:
    """Who let the plan of this round run or rejected it. `by` is "mode:escalate" where all limits were kept. `turn` is
    the plan as it runs where a person edited it, `edits` what was changed, by the numbers of the steps before."""

    round: int
    verdict: Verdict
    by: str
    at: float
    decided_at: str = ""  # UTC, ISO 8601
    note: str = ""
    edits: tuple[Edit, ...] = ()
    turn: Turn | None = None
    type: Literal["plan_decided"] = "plan_decided"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The worker started; in `arguments` every `$k` is replaced."""

    step: int
    at: float
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    type: Literal["step_started"] = "step_started"


@dataclass(frozen=True, slots=True)
class StepEnded:
    step: int
    observation: Observation
    at: float
    type: Literal["step_ended"] = "step_ended"


@dataclass(frozen=True, slots=True)
class FinalizerStarted:
    """The pool's finalizer began to write the final answer from the outputs of the steps `sources`."""

    worker: str
    sources: tuple[int, ...]
    at: float
    type: Literal["finalizer_started"] = "finalizer_started"


@dataclass(frozen=True, slots=True)
class FinalizerEnded:
    """The final answer for a person is the value of `observation`. Where that failed, the plan's own answer stays."""

    worker: str
    sources: tuple[int, ...]
    observation: Observation
    at: float
    type: Literal["finalizer_ended"] = "finalizer_ended"


@dataclass(frozen=True, slots=True)
class AnswerPresented:
    """The plan's own answer in words for a person, by its shape (presentation/); where they differ."""

    text: str
    at: float
    type: Literal["answer_presented"] = "answer_presented"


@dataclass(frozen=True, slots=True)
class EpisodeEnded:
    """`answer` is the plan's own, also where a finalizer has written another one for a person."""

    outcome: Outcome
    at: float
    answer: JsonValue = None
    reason: str | None = None
    type: Literal["episode_ended"] = "episode_ended"


# Where a verdict came from: the page, a client of a served model, a command, a task's verifier or its judge; "" in
# traces of older versions.
VerdictPlace = Literal["page", "client", "command", "verifier", "judge", ""]


@dataclass(frozen=True, slots=True)
class Graded:
    """A task's verifier judged the answer, or somebody did. `by` names the person, the client's token or the worker
    that judges, where one has a name; `judged_at` is UTC, ISO 8601."""

    correct: bool
    expected: str
    at: float
    by: str = ""
    place: VerdictPlace = ""
    judged_at: str = ""
    type: Literal["graded"] = "graded"


@dataclass(frozen=True, slots=True)
class NotJudged:
    """There is no verdict: a cap refused the judge of the answer, or its task's verifier failed. `reason` is a
    sentence."""

    reason: str
    at: float
    place: VerdictPlace = "judge"
    type: Literal["not_judged"] = "not_judged"


# What has become of a second try: its lesson is being written; it runs; it waits for a person's verdict; it has one;
# its process has ended, or somebody stopped it; its orchestrator reads no lessons; the failed run left nothing of its
# budget; the verdict that had it started was taken back.
RetryState = Literal["preparing", "running", "waiting", "judged", "interrupted", "no reader", "no budget", "taken back"]


@dataclass(frozen=True, slots=True)
class Retried:
    """The failed episode is run once more, with its lesson before the query; a later event takes this one's place.
    `episode` is that run, and `correct` its verdict, None in each state but "judged"."""

    episode: str
    correct: bool | None
    at: float
    state: RetryState = "judged"
    type: Literal["retried"] = "retried"


@dataclass(frozen=True, slots=True)
class CopiesCompared:
    """What a what-if on copies changed on them (pool_registry/forks)."""

    changes: tuple[Change, ...]
    at: float
    type: Literal["copies_compared"] = "copies_compared"


Event = (
    EpisodeStarted
    | TurnStarted
    | TurnTaken
    | PlanHeld
    | PlanEscalated
    | PlanDecided
    | StepStarted
    | StepEnded
    | FinalizerStarted
    | FinalizerEnded
    | AnswerPresented
    | EpisodeEnded
    | Graded
    | NotJudged
    | CopiesCompared
    | Retried
)

_reader: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
_writers = {event: TypeAdapter(event).serializer.to_json for event in get_args(Event)}  # half the time of a union's


def dump_event(event: Event) -> str:
    """The event as one line of JSON. Never raises: one invalid value must not stop the recording of others."""
    try:
        return _writers[type(event)](event).decode()
    except ValueError:  # a lone surrogate, an object, 256 levels: only orchestrators of other packages can send them
        return json.dumps(_plain(asdict(event)), ensure_ascii=False)


def _plain(value: object, levels: int = 150) -> JsonValue:
    """`value` as JSON that can be read back; values that JSON cannot hold become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int | float) and abs(value) < 1e300:
        return value
    if levels and isinstance(value, Mapping):
        return {clean_text(str(key)): _plain(item, levels - 1) for key, item in value.items()}
    if levels and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, levels - 1) for item in value]
    return clean_text(f"{type(value).__name__} that is no JSON value")


def load_event(text: str) -> Event:
    """The inverse of `dump_event`. Raises pydantic.ValidationError on anything else."""
    return _reader.validate_json(text)

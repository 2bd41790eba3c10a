"""The documents about one episode: its view, the patches of a view, and the details of a step and of a turn.

Times are seconds since the episode began, costs US dollars, places pixels of the laid-out graph.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.approval.records import ReasonCode
from orchestrator.engine.events import Outcome, ParentStep, TaskRef
from orchestrator.plan import RecalledLessons
from orchestrator.traces.episode_totals import EpisodeTotals
from pool_registry.actions import Failure, JsonValue
from pool_registry.deployment_mode import ModeName
from pool_registry.worker import Role
from studio.frame.document import PageDocument

# TRIED: a try of a rejected call with other words, or one that a later call took the place of, that failed
StepStatus = Literal["PENDING", "RUNNING", "OK", "TRIED", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"]
TurnStatus = Literal["RUNNING", "OK", "PARSE_ERR", "EXEC_ERR"]


class Verdict(PageDocument):
    """How the answer was graded."""

    correct: bool
    expected: str
    of_plan: bool = Field(description="The plan's own answer was graded; a finalizer has written another one.")


class AgreementView(PageDocument):
    """How many of the plans that were drawn in a round came to the result that was taken, itself included. A count:
    plans of one model can agree and be wrong."""

    round: int
    plans: int
    agreed: int
    unsure: bool = Field(description="Whether no more than half of the plans agree.")
    sentence: str


class AnswerChance(PageDocument):
    """The chance of one of the answers that agents gave to be right."""

    answer: str
    chance: float


class ConfidenceView(PageDocument):
    """How likely the answer of a round is right, by the record of the agents that gave it, beside the other answers."""

    round: int
    sentence: str
    unsure: bool = Field(description="Whether a cascade would ask further agents, if there were any that help.")
    answers: list[AnswerChance] = Field(description="The likeliest first; empty where one agent answers alone.")


class ChanceView(PageDocument):
    """How likely an answer is right, in words; `probability` is None where no figure was fitted for its orchestrator.
    `round` is the one whose plan it rests on, and `why` what it rests on."""

    round: int
    probability: float | None
    unsure: bool
    likely: bool
    sentence: str
    why: str


class OutOfDepthView(PageDocument):
    """How unlike everything that its checkpoint learnt the words of an episode's query are, and whether its pool lacks
    workers that it learnt. It is not how sure the answer is."""

    probability: float = Field(description="That a query with such words is none that it learnt to plan; not shown.")
    sentence: str
    beyond: bool = Field(description="Whether to warn.")


class Offer(PageDocument):
    """Something to try next: a run of `query` with `orchestrator`, or the page at `href`; `command` is for a shell."""

    text: str
    orchestrator: str
    query: str
    href: str
    command: str


class PlanReason(PageDocument):
    """Why a plan does not run by itself."""

    code: ReasonCode
    sentence: str


class PlannedCall(PageDocument):
    """A step of a plan that waits, with what its call takes by earlier calls of its worker."""

    step: int
    worker: str
    instruction: str = Field(description="The arguments in one line, with the outputs that are known.")
    planned: str = Field(description="The same with its references, as `$1`; empty where it has none that is known.")
    cost: float
    seconds: float | None = Field(description="None where no call of the worker is recorded.")
    effects: bool = Field(description="Whether the call may change something outside.")


class ApprovalRequest(PageDocument):
    """What a person is asked about a plan that waits."""

    round: int
    held_at: str
    reasons: list[PlanReason]
    cost: float
    seconds: float
    calls: list[PlannedCall]


class AuditLine(PageDocument):
    """What happened to the plan of a round before it ran, and who decided it."""

    round: int
    kind: Literal["held", "escalated", "approved", "edited", "rejected"]
    by: str
    when: str
    text: str


class FinalAnswerView(PageDocument):
    """The answer for a person that the pool's finalizer writes or that templates put into words, and the plan's own."""

    worker: str = Field(description='The finalizer, or the worker that took over; "" where templates wrote.')
    state: Literal["RUNNING", "OK", "EXEC_ERR"]
    started_at: float | None = Field(description="None where it was not called.")
    sentence: str
    plan_answer: str | None
    sources: list[int] = Field(description="The steps whose outputs it was shown.")


class ServedView(PageDocument):
    """The deployment under whose name a run was asked for, and which side of it the run is."""

    deployment: str
    change: int = Field(description="The number of its change that was served; 0 in traces of older versions.")
    side: Literal["serving", "candidate", "shadow"]
    shadow_of: str = Field(description="The run whose answer was given, where this one is its shadow; else empty.")
    sentence: str


class RetriedView(PageDocument):
    """What has become of the second try of a failed run, with its lesson."""

    episode: str = Field(description="Its run; empty where there is none to look at.")
    sentence: str


class RunBefore(PageDocument):
    """A run that a thread began with."""

    episode: str
    question: str
    answer: str = Field(description='As a person read it; "" where it had none.')


class FollowUpView(PageDocument):
    """What a run goes on with: the words that were typed, and how they became its query."""

    text: str
    how: str = Field(description='Such as "understood as"; the query follows.')
    seen: str = Field(description="What this run sees of the runs before, in a sentence.")
    before: list[RunBefore] = Field(description="The latest run is the last.")


class EpisodeHead(PageDocument):
    """What stands above an episode's graph."""

    id: str
    query: str
    pool: str
    pool_version: int | None
    orchestrator: str
    orchestrator_label: str
    state: Literal["running", "waiting", "ended", "interrupted"]
    outcome: Outcome | None
    reason: str | None
    answer: str | None = Field(description="For a person: the finalizer's, else the plan's own in words.")
    final: FinalAnswerView | None = Field(description="None where the answer is as the plan has it.")
    refused: bool = Field(description="Whether the answer says that no worker of the pool fits.")
    started_at: str
    depth: int
    parent: ParentStep | None
    what_if_of: str | None
    follow_up: FollowUpView | None = Field(description="None where it goes on with no other run.")
    task: TaskRef | None
    verdict: Verdict | None
    not_judged: str | None = Field(description="Why the answer has no verdict: a cap, or a failed verifier.")
    agreement: AgreementView | None = Field(description="None where one plan was written at a time.")
    chance: ChanceView | None = Field(description="How likely the answer is right; None where nothing is known of it.")
    confidence: ConfidenceView | None = Field(description="None where no record says how likely the answer is right.")
    out_of_depth: OutOfDepthView | None
    offers: list[Offer]
    served: ServedView | None = Field(description="None where no deployment was asked, and in published runs.")
    retry_of: str = Field(description="The failed run whose lesson this one was shown at once; else empty.")
    retried: RetriedView | None = Field(description="The second try of a failed run; None where there was none.")
    mode: ModeName | None = Field(description="How its plans are released; None in older traces and inner runs.")
    limits: list[str] = Field(description="What its caller limited it to, a sentence each.")
    approval: ApprovalRequest | None = Field(description="What a person is asked, while its plan waits.")
    audit: list[AuditLine]


class Lane(PageDocument):
    """The columns of a round in one band of the graph: where they stand, which round, and how many steps it has."""

    x: float
    y: float
    width: float
    height: float
    round: int
    label: str
    note: str


class CallFigures(PageDocument):
    """What one call took, and how it ended."""

    latency_s: float | None
    tokens_in: int
    tokens_out: int
    cost: float
    code: str | None = Field(description="Why it failed, in one word.")
    child: str | None = Field(description="The episode that a recursive worker ran.")
    cached: bool
    answered_by: str | None


class StepState(CallFigures):
    """One step of the graph, without its place."""

    id: int
    worker: str
    kind: str
    role: Role
    icon: str
    instruction: str = Field(description="The arguments in one line, with the outputs that are known.")
    planned: str = Field(description="The same with its references, as `$1`; empty where it has none that is known.")
    need: str = Field(description="What a reader said that the step is for, before a worker was chosen; else empty.")
    choice: str = Field(description="How its worker was chosen, in a sentence; empty where no score of outcomes did.")
    round: int
    layer: int
    access: list[int] = Field(description="The steps whose outputs it may see.")
    used: list[int] = Field(description="Those of them that its arguments quote.")
    status: StepStatus
    tried: bool = Field(description="Whether it counts as another try (orchestrator/traces/step_counts.py).")
    started_at: float | None
    ended_at: float | None
    critical: bool
    reused: int | None = Field(description="In a what-if: the step of the varied run that this output was taken from.")


class StepNode(StepState):
    """One step on the graph."""

    x: int
    y: int


class Edge(PageDocument):
    """From a step to one that may see it."""

    source: int = Field(serialization_alias="from")
    target: int = Field(serialization_alias="to")
    used: bool
    path: str


class AnswerNode(PageDocument):
    """The answer on the graph, and the steps that it quotes."""

    x: float
    y: float
    width: int
    height: int
    sources: list[int] = Field(serialization_alias="from")
    paths: list[str]


class Graph(PageDocument):
    """The laid-out graph of an episode."""

    width: float
    height: float
    node_width: int
    node_height: int
    lanes: list[Lane]
    nodes: list[StepNode]
    edges: list[Edge]
    answer: AnswerNode | None


class CountOf(PageDocument):
    """So many of so many."""

    count: int
    of: int


class TurnHead(PageDocument):
    """What a turn of the orchestrator came to."""

    round: int
    started_at: float
    ended_at: float | None
    status: TurnStatus
    error: str | None
    steps: list[int]
    answers: bool
    tokens_in: int
    tokens_out: int


class TurnView(TurnHead):
    """One turn of the orchestrator."""

    shown: CountOf | None = Field(description="Of a large pool: how many workers the orchestrator was shown.")
    recalled: CountOf | None = Field(description="How many lessons of the failure memory it was given.")


class EpisodeView(PageDocument):
    """The whole view of an episode so far."""

    clock_s: float
    episode: EpisodeHead
    graph: Graph
    turns: list[TurnView]
    totals: EpisodeTotals


class ViewPatch(PageDocument):
    """What may change in a view without the graph changing its shape."""

    clock_s: float
    episode: EpisodeHead
    turns: list[TurnView]
    totals: EpisodeTotals
    nodes: list[StepNode]


class SeenStep(PageDocument):
    """An earlier step as a later one was allowed to see it."""

    step: int
    worker: str
    status: StepStatus
    value: JsonValue
    error: str | None


class ReusedStep(PageDocument):
    """The step of another run that an output was taken from."""

    episode: str
    step: int


class StepBinding(PageDocument):
    """The worker that the model asked for by the name it learnt, and how it came to the one that was called."""

    learnt: str
    worker: str = Field(description="Empty where no worker here is like it.")
    likeness: float
    by: str = Field(description="name, meaning, words or person.")
    parameters: dict[str, str] = Field(description="Those that are called otherwise here, by their learnt names.")


class ContextSlice(PageDocument):
    """One part of a prompt."""

    origin: Literal["role", "skills", "instruction", "output", "workers", "memory", "history"]
    label: str
    tokens: int
    whole: int = Field(description="Its tokens before it was shortened.")
    cut: Literal["", "excerpt", "summary"] = Field(description="How it was shortened.")


class ContextBudget(PageDocument):
    """What filled the prompt of a call or a turn, in tokens, about."""

    slices: list[ContextSlice]
    limit: int | None = Field(description="The most tokens of prompt and reply together; None: not known.")
    reply: int = Field(description="The tokens that the reply may have.")


class StepDetail(CallFigures):
    """Everything about one step: what it was allowed to see, what was sent, what came back."""

    id: int
    worker: str
    kind: str
    role: Role
    icon: str
    description: str
    need: str
    choice: str = Field(description="How its worker was chosen, in a sentence; empty where no score of outcomes did.")
    binding: StepBinding | None
    round: int
    status: StepStatus
    error: str | None
    arguments: dict[str, JsonValue]
    resolved: dict[str, JsonValue] | None = Field(description="The arguments with `$k` replaced.")
    visible: list[SeenStep]
    prompt: str | None
    value: JsonValue
    instead_of: Failure | None
    reused: ReusedStep | None
    context: ContextBudget | None
    notes: list[str] = Field(description="How arguments were read that were written otherwise.")


class FinalAnswerDetail(FinalAnswerView):
    """The call that wrote the final answer: what it was allowed to see, what was sent, what came back."""

    visible: list[SeenStep]
    prompt: str | None
    value: JsonValue
    code: str | None
    error: str | None
    latency_s: float | None
    tokens_in: int
    tokens_out: int
    cost: float


class ShownWorker(PageDocument):
    """A worker and its score for the query."""

    worker: str
    score: float


class ShownWorkersDetail(PageDocument):
    """The workers that the orchestrator was shown of a large pool, best first."""

    count: int
    of: int
    by: str
    workers: list[ShownWorker]


class AnswerVotes(PageDocument):
    """How many of the drawn plans came to an answer."""

    answer: str
    votes: int


class VoteDetail(PageDocument):
    """How a turn was chosen among several drawn plans. The turn's own tokens are those of all plans and trials."""

    plans: int = Field(description="How many were drawn.")
    agreed: int = Field(description="How many came to the same result as the chosen one, itself included.")
    answer: str = Field(description="What they agree on; empty where none could be used, and in older traces.")
    unreadable: int
    failed: int = Field(description="Readable plans that failed when they were tried.")
    untried: int = Field(description="Plans that voted as they are written: a step of them may have effects.")
    incomplete: int = Field(
        description="Plans without a vote: they leave out a figure or a name, or have a step that does nothing."
    )
    answers: list[AnswerVotes] = Field(description="The answer with most votes first.")
    unvoted: list[AnswerVotes] = Field(description="What plans without a vote came to; older traces do not say it.")
    sentence: str = Field(description="How many agree, in words.")
    unsure: bool
    chosen_tokens: int | None = Field(description="What the chosen plan alone took; older traces do not say it.")


class TurnDetail(TurnHead):
    """Everything about one turn: the text that the orchestrator wrote and the prompt that it was sent."""

    text: str
    prompt: str | None
    shown: ShownWorkersDetail | None
    recalled: RecalledLessons | None
    vote: VoteDetail | None
    confidence: ConfidenceView | None
    repairs: list[str] = Field(description="What code changed in what the model wrote, or had it write again.")
    latency_s: float | None
    context: ContextBudget | None


class Replay(PageDocument):
    """A whole episode that a page can replay without a server; steps and turns by their numbers."""

    podium_replay: Literal[1] = 1
    view: EpisodeView
    steps: dict[str, StepDetail]
    turns: dict[str, TurnDetail]
    final: FinalAnswerDetail | None = None

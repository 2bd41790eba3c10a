"""The documents of the Compare page: evaluations, what they measured, training drift, and graphs side by side.

Every answer below /api/compare is `ok` with what the page draws, or it is a NoDocument with a hint. Shares lie
between 0 and 1, times are seconds, prices US dollars.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from orchestrator.graphs.diff import Mark
from orchestrator.traces.episode_totals import EpisodeTotals
from studio.episode_documents.schema import EpisodeHead, EpisodeView, StepState, TurnView
from studio.frame.document import PageDocument
from trainer.launch_gap import LaunchGap
from trainer.results.equal_cost import HullPoint
from trainer.results.figures import MeanPrice, ParetoPoint, Price
from trainer.results.paired import Direction

Interval = tuple[float, float, float]  # mean, low, high of the 95 % interval


class NoDocument(PageDocument):
    """Why there is nothing to draw yet, and what to do."""

    ok: Literal[False] = False
    hint: str


# What can be compared


class OrchestratorChoice(PageDocument):
    """An orchestrator that can be compared, and the heading that it stands under."""

    name: str
    label: str
    group: str


class SuiteLevel(PageDocument):
    """A family of generated tasks at one level."""

    family: str
    level: int


class CompareChoices(PageDocument):
    """What can be compared on a pool, and what the page shows first."""

    pools: list[str]
    pool: str
    orchestrators: list[OrchestratorChoice]
    begins: list[str]
    baselines: list[str] = Field(description="Those that a trained orchestrator must beat.")
    workers: list[str]
    query: str
    suites: list[SuiteLevel]
    families: list[str]
    held_out: list[str]
    conditions: list[str]
    most: int
    fewest: int


class StartedRun(PageDocument):
    """One run of a comparison: its episode, or the problem that prevented it."""

    orchestrator: str
    episode: str | None
    problem: str


# Evaluations


class EvaluationCheck(PageDocument):
    """The recipe of an evaluation as text, and what prevents its start."""

    yaml: str
    missing: list[LaunchGap]


class EvaluationLine(PageDocument):
    """A job that has results or will have some, and what it measured."""

    id: str
    title: str
    pool: str
    name: str
    state: str
    message: str
    created_at: str | None
    episodes: int
    orchestrators: list[str]
    labels: dict[str, str] = Field(description="Of the orchestrators, by name.")
    label: str
    measures: bool = Field(description="Whether it does nothing but measure.")
    conditions: list[str]
    families: list[str]


class FilterChoices(PageDocument):
    """What the filters above a view can be set to."""

    orchestrators: list[str]
    conditions: list[str]
    families: list[str]
    levels: list[int]


class PairedFigures(PageDocument):
    """An orchestrator against the reference on the tasks that both have done; `p` of the sign test."""

    difference: Interval
    wins: int
    losses: int
    ties: int
    tasks: int
    unpaired: int
    p: float


class EqualCost(PageDocument):
    """An orchestrator against the mixture of baselines that costs as much (trainer/results/equal_cost.py); `shares` are
    by baseline."""

    shares: dict[str, float]
    difference: Interval
    tasks: int


class SuiteRow(PageDocument):
    """The figures of one orchestrator (trainer/results/figures.py says what each is)."""

    model_config = ConfigDict(extra="ignore")

    orchestrator: str
    mean: Interval
    pass_at_k: Interval
    pass_all_k: Interval
    tasks: int
    episodes: int
    k: int
    valid_turns: float | None
    statuses: dict[str, int]
    recovery: float | None
    failed_episodes: int
    outcomes: dict[str, int]
    cost: float
    cost_per_episode: float
    tokens_per_episode: float
    p50_s: float
    p95_s: float
    speedup: float | None
    turns: float
    steps: float
    depth: float
    width: float
    access_precision: float | None
    access_recall: float | None
    matched: float | None
    extra_steps: float | None
    extra_depth: float | None
    entropy: float
    shares: dict[str, float]
    paired: PairedFigures | None


class CellSummary(PageDocument):
    """The mean over some tasks."""

    mean: Interval
    tasks: int
    episodes: int


class SuiteCell(PageDocument):
    """A family at one level: the mean of every orchestrator."""

    family: str
    level: int
    by: dict[str, CellSummary]


class SuiteDocument(PageDocument):
    """The suite view; `turns` holds by orchestrator the share of episodes by their number of turns, `hull` the
    baselines that no mixture of others beats at their price."""

    ok: Literal[True] = True
    reference: str
    condition: str
    best_single: str | None
    rows: list[SuiteRow]
    cells: list[SuiteCell]
    pareto: dict[Price, list[ParetoPoint]]
    hull: dict[MeanPrice, list[HullPoint]]
    equal_cost: dict[MeanPrice, dict[str, EqualCost]]
    turns: dict[str, dict[str, float]]
    choices: FilterChoices
    judges: list[str] = Field(default=[], description="A sentence about each judge that the figures rest on.")


class ChangedTask(PageDocument):
    """A task with the score of an orchestrator, that of the reference, and the episodes of both."""

    source: str
    family: str
    level: int
    split: str
    index: int
    condition: str
    query: str
    score: float
    reference_score: float
    episodes: list[str]
    reference_episodes: list[str]


class TaskPage(PageDocument):
    """Some of the tasks `of` which an orchestrator did better, worse or equally well."""

    ok: Literal[True] = True
    orchestrator: str
    reference: str
    which: Direction
    of: int
    first: int
    tasks: list[ChangedTask]


# Pool conditions and ablations


class MatrixCell(CellSummary):
    """An orchestrator in one condition: its `change` against the seen pool on the `paired` tasks that both have."""

    change: Interval | None = None
    paired: int | None = None


class MatrixRow(PageDocument):
    """One orchestrator; a condition that was not measured has no cell."""

    orchestrator: str
    cells: dict[str, MatrixCell]


class MatrixDocument(PageDocument):
    """Orchestrators by pool condition and held-out family."""

    ok: Literal[True] = True
    columns: list[str]
    rows: list[MatrixRow]
    held_out: list[str]
    choices: FilterChoices
    judges: list[str] = Field(default=[], description="A sentence about each judge that the figures rest on.")


class WorkerDrop(PageDocument):
    """What an orchestrator loses `without` some workers, on the same tasks."""

    without: str
    mean: Interval
    change: Interval
    wins: int
    losses: int
    ties: int
    tasks: int


class AblationDocument(PageDocument):
    """What an orchestrator loses without each worker; `shares` are those of its calls in the whole pool."""

    ok: Literal[True] = True
    orchestrator: str
    ablated: list[str]
    seen: CellSummary
    workers: list[WorkerDrop]
    shares: dict[str, float]
    choices: FilterChoices
    judges: list[str] = Field(default=[], description="A sentence about each judge that the figures rest on.")


# Training


class TracedShapes(PageDocument):
    """The shape of the recorded episodes by step, from at most `episodes` of each; `lost` are no longer recorded."""

    steps: list[int]
    series: dict[str, list[float | None]]
    episodes: int
    lost: int


class MeasuredCheckpoint(PageDocument):
    """What evaluations measured of a checkpoint in the seen pool."""

    step: int
    orchestrator: str
    tasks: int
    mean: Interval
    depth: float
    width: float
    turns: float
    steps: float
    parallelism: float | None
    entropy: float
    shares: dict[str, float]


class DriftDocument(PageDocument):
    """How plans change while a job trains: its series and the shares of its workers, for each of the `steps`."""

    ok: Literal[True] = True
    job: str
    state: str
    title: str
    steps: list[int]
    series: dict[str, list[float | None]]
    workers: dict[str, list[float | None]]
    traces: TracedShapes
    checkpoints: list[MeasuredCheckpoint]


# Graphs side by side


class GhostStep(PageDocument):
    """A step that only the reference has, where it stands there."""

    id: int
    x: int
    y: int
    worker: str
    instruction: str


class DiffEntry(PageDocument):
    """One step of a diff: what differs, its number on both sides, its slot, and sentences about it."""

    what: list[Mark]
    left: int | None
    right: int | None
    slot: int
    says: list[str]


class GraphDiffDocument(PageDocument):
    """What changes from the reference to another graph; `marks` are by step id of the other."""

    counts: dict[Mark, int]
    marks: dict[str, list[Mark]]
    ghosts: list[GhostStep]
    entries: list[DiffEntry]
    empty: bool


class ComparisonDocument(PageDocument):
    """Several graphs in one system of coordinates; `slots` say by step id which steps are the same one."""

    reference: int
    views: list[EpisodeView]
    slots: list[dict[str, int]]
    diffs: list[GraphDiffDocument | None] = Field(description="None for the reference.")


class ComparisonPatch(PageDocument):
    """What changed in the view at `place` while every graph keeps its shape."""

    place: int
    clock_s: float
    episode: EpisodeHead
    turns: list[TurnView]
    totals: EpisodeTotals
    nodes: list[StepState]

"""The documents about jobs: a line of the list, and everything about one job.

Times in seconds, sizes in bytes; `steps` count over the whole job.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field

from pool_registry.actions import JsonValue
from studio.frame.document import PageDocument
from studio.pages.train.curves import CurveColumns
from trainer.jobs.outcome import Verdict
from trainer.launch_gap import LaunchGap
from trainer.methods.advice import Advice


class JobLine(PageDocument):
    """A job in the list; `code` is the reason of a failure in one word."""

    id: str
    name: str
    label: str = Field(description="What people read: the name that a person gave it, else its id.")
    kind: str
    state: str
    stage: str
    step: int
    steps: int
    message: str
    code: str
    where: str = Field(description="here, the rented machine as hf:FLAVOR, or the cluster as ray://HOST:PORT.")
    gpus: list[str] = Field(description="Those of this machine that it has to itself, by their numbers.")
    processes: int
    created_at: str | None
    started_at: str | None
    ended_at: str | None


class JobProgress(PageDocument):
    """How far a job is: `done` of `total` in its stage, `step` of `steps` over all stages."""

    stage: str
    done: int
    total: int
    step: int
    steps: int
    share: float
    step_s: float | None
    eta_s: float | None
    elapsed_s: float | None


class GpuLoad(PageDocument):
    """One GPU; `busy` in percent. None where the driver does not say."""

    name: str
    used: int | None
    total: int | None
    busy: int | None


class MachineLoad(PageDocument):
    """The RAM that a job holds, what the machine has, and its GPUs."""

    held: int
    available: int
    total: int
    gpus: list[GpuLoad]


class CellMean(PageDocument):
    """The mean of one family and level."""

    model_config = ConfigDict(extra="ignore")

    family: str | None = None
    level: int | None = None
    tasks: int | None = None
    mean: float | None = None


class JobPhase(PageDocument):
    """A phase of a stage; `border` is the job's last step before it."""

    name: str
    border: int


class JobChart(PageDocument):
    """A chart of a method's own figures: lines are (key, label); `share`: values between 0 and 1."""

    id: str
    title: str
    about: str
    lines: list[tuple[str, str]]
    share: bool


class JobStage(PageDocument):
    """A stage that trains: it has `steps` steps, of which the first comes after `before` others of the job. `rollouts`:
    groups of episodes can be looked at by step."""

    name: str
    label: str
    before: int
    steps: int
    rollouts: bool
    charts: list[JobChart]


class JobEvaluation(PageDocument):
    """What the evaluate stage measured of one orchestrator in one condition, without the episodes."""

    model_config = ConfigDict(extra="ignore")

    orchestrator: str | None = None
    label: str = ""
    condition: str | None = None
    split: str | None = None
    tasks: int | None = None
    samples: int | None = None
    mean: float | None = None
    interval: tuple[float, float] | None = None
    turn_errors: int | None = None
    p50_s: float | None = None
    speedup: float | None = None
    cost: float | None = None
    cells: list[CellMean] = []


class JobCheckpoint(PageDocument):
    """One complete checkpoint; `name` is the orchestrator to run it, `best` marks the highest check."""

    step: int
    stage: str
    phase: str
    kind: str
    created_at: str
    bytes: int
    correct: float | None
    valid_turns: float | None
    best: bool
    name: str
    label: str
    evaluation: JobEvaluation | None


class OutcomeSentence(PageDocument):
    """What a job came to, the checkpoint that it is about, and the model that this was trained from."""

    sentence: str
    verdict: Verdict = Field(description="Whether it is better than its start; `open` where nothing shows that.")
    lacks_own: bool = Field(description="Whether none of a person's own questions was measured, made tasks alone.")
    orchestrator: str
    start: str
    pool: str


class JobView(JobLine):
    """Everything about one job but its curves and its log."""

    place: JobProgress
    heartbeat_s: float | None
    memory: MachineLoad | None
    ahead: list[str]
    advice: list[Advice]
    checkpoints: list[JobCheckpoint]
    evaluations: list[JobEvaluation]
    stages: list[str]
    trained: list[JobStage]
    phases: list[JobPhase]
    rollouts: int
    resumable: bool
    can_stop: bool
    tiny: bool
    pool: str
    title: str
    outcome: OutcomeSentence | None
    who: str = Field(description="What came of training the choice of workers.")
    taught: str = Field(description="What came of asking a teacher for demonstrations.")


class JobDocument(JobView):
    """A job with its recipe as YAML and its curves."""

    recipe: str
    curves: CurveColumns


class LogText(PageDocument):
    """A piece of a log: added to what is shown, or the `whole` in its place; `cut` when its beginning is left out."""

    text: str
    whole: bool
    cut: bool


class PresetStage(PageDocument):
    """A stage of a recipe that ships; an evaluation has no steps."""

    name: str
    steps: int | None


class PresetDocument(PageDocument):
    """A recipe that ships."""

    name: str
    title: str
    stages: list[PresetStage]
    base: str
    adapter: bool
    needs: str = Field(description="The package that gives its tasks, where that is not installed.")


class RecipeDocument(PageDocument):
    """A recipe as the page holds it, as text, and as the command that starts it."""

    recipe: dict[str, JsonValue]
    yaml: str
    command: str
    file: str | None = Field(description="What the command reads, where that is no preset.")
    teachers: list[str] = Field(description="The orchestrators that can make demonstrations on its pool.")
    missing: list[LaunchGap] | None = Field(description="None where it was not looked for.")
    busy: list[JobLine]


class RentedPlace(PageDocument):
    """A machine that can be rented: what a recipe's `where` says, and its name, memory and price."""

    where: str
    label: str

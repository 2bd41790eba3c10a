"""An improvement in its folder, PODIUM_HOME/improvements/ID, and what earlier ones have settled.

plan.json         what is learnt from and measured, and the jobs that do it; written before each job begins
learn.jsonl       the tasks that are learnt from, new ones and old ones
held_out.jsonl    the tasks that both orchestrators are measured on
improvement.json  the report, once it is there (results/improvement.py)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import Field, ValidationError

from orchestrator.engine.process_identity import is_alive
from pool_registry.atomic_write import lock_file, write_atomically
from pool_registry.storage.data_folder import Home
from pool_registry.strict_model import FrozenModel
from pool_registry.validation_words import describe_problems
from trainer.errors import JobRefused, UnusableTasks
from trainer.improve.gate import SECONDS
from trainer.results.improvement import FILE, ImprovementReport, read_report

PLAN = "plan.json"
LEARNT, HELD_OUT = "learn.jsonl", "held_out.jsonl"
REPLAY = 0.5  # the share of old tasks in what is learnt from, where there are as many
MOST_HELD_OUT = 200  # of new tasks, and of old ones


class AlreadyImproving(JobRefused):
    """Somebody improves the pool now."""

    def __init__(self, pool: str) -> None:
        super().__init__(f"the pool {pool} is being improved already; wait until that has ended")


class ImprovementPlan(FrozenModel):
    """What an improvement does. `taken` are digests of the new tasks, `own` those of held-out queries of new tasks.
    `measured` is the serving orchestrator as it is measured: with its choice of workers kept as it was at the start."""

    id: str
    key: str = Field(pattern="^[0-9a-f]{6}$", description="What its kept choices are called.")
    pool: str
    pool_version: int
    serving: str
    measured: str
    stage: str
    taken: tuple[str, ...]
    own: tuple[str, ...]
    learnt: int
    replayed: int
    held_out: int
    samples: int = 1
    general_tasks: int = 20
    steps: int | None = None
    minutes: float = 3.0
    replay: float = REPLAY
    most_held_out: int = MOST_HELD_OUT
    again: bool = False
    seed: int = 0
    seconds_on_top: float = SECONDS
    max_cost: float | None = None
    started: float
    process: str = Field(default="", description="Of whoever works on it.")
    candidate: str = ""
    jobs: dict[str, str] = {}


class Improvement:
    """One improvement of a data folder."""

    def __init__(self, folder: Path, plan: ImprovementPlan) -> None:
        self.folder, self.plan = folder, plan

    @property
    def report(self) -> ImprovementReport | None:
        """What it came to; None before its end. Raises DamagedReport."""
        return read_report(self.folder) if (self.folder / FILE).is_file() else None

    @property
    def is_running(self) -> bool:
        """Whether somebody works on it now."""
        return self.report is None and is_alive(self.plan.process, self.folder.parent.parent)

    @property
    def learnt_source(self) -> str:
        return f"file:{self.folder / LEARNT}"

    @property
    def held_out_source(self) -> str:
        return f"file:{self.folder / HELD_OUT}"

    def update(self, **changes: object) -> None:
        """Write a changed plan down."""
        self.plan = ImprovementPlan.model_validate({**self.plan.model_dump(), **changes})
        write_atomically(self.folder / PLAN, self.plan.model_dump_json(indent=1))


def list_improvements(home: Home, pool: str) -> list[Improvement]:
    """The improvements of a pool, oldest first. Raises UnusableTasks where a plan is damaged."""
    folders = sorted(path.parent for path in _root(home).glob(f"*/{PLAN}"))
    improvements = [Improvement(folder, _read_plan(folder / PLAN)) for folder in folders]
    own = [improvement for improvement in improvements if improvement.plan.pool == pool]
    return sorted(own, key=lambda improvement: improvement.plan.started)


def find_unfinished(home: Home, pool: str) -> Improvement | None:
    """The pool's improvement that was interrupted, to go on with."""
    newest = list_improvements(home, pool)[-1:]
    return next((improvement for improvement in newest if improvement.report is None), None)


def make_folder(home: Home, name: str) -> Path:
    """An empty folder for an improvement."""
    folder = _root(home) / name
    folder.mkdir(parents=True)
    return folder


@contextmanager
def hold_pool(home: Home, pool: str) -> Iterator[None]:
    """Let nobody else improve this pool while the body runs. Raises AlreadyImproving."""
    file = _root(home) / f"{pool}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(file, wait=False))
        except BlockingIOError as error:
            raise AlreadyImproving(pool) from error
        yield


def _read_plan(file: Path) -> ImprovementPlan:
    try:
        return ImprovementPlan.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise UnusableTasks(
            f"{file} is damaged ({describe_problems(error)}); delete its folder to begin that improvement again"
        ) from error


def _root(home: Home) -> Path:
    return home.root / "improvements"

"""What a job came to, in one sentence that a person can act on: how many held-out tasks its last checkpoint solves, how
many the model before it did, and of which kind it solves least."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer.errors import TrainerError
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import Recipe
from trainer.results.paired import compare_paired
from trainer.results.rows import ResultRow, read_results
from trainer.tasks.practice.stored import SOURCE
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task, normalize_query

LEAST = 3  # tasks of a kind, for it to be named as the weakest
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


@dataclass(frozen=True, slots=True)
class Weakness:
    """The kind of task of which the fewest are solved."""

    kind: str
    solved: int
    total: int


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How many held-out tasks the last checkpoint of a job solves. `before`: how many the model did that it was trained
    from; None where that was not measured. `gain`: the difference as a share, with its 95 % interval. `cut_off`: how
    many episodes of either reached the pool's deadline, and count as wrong."""

    orchestrator: str
    pool: str
    solved: int
    total: int
    before: int | None
    gain: tuple[float, float, float] | None
    weakest: Weakness | None
    own: bool
    cut_off: int = 0

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        whose = "your held-out tasks" if self.own else "the held-out tasks"
        text = f"Solves {self.solved:,} of {self.total:,} of {whose}"
        if self.before is not None:
            text += f", was {self.before:,}"
        if self.gain is not None:
            mean, low, high = (round(100 * share) for share in self.gain)
            text += f" ({mean:+d} points; 95 %: {low:+d} to {high:+d})"
        if self.weakest is not None:
            text += f". Weakest: {self.weakest.kind}, {self.weakest.solved} of {self.weakest.total}"
        return f"{text}.{self._explain_cut_off()}"

    def _explain_cut_off(self) -> str:
        if not self.cut_off:
            return ""
        episodes = "1 episode" if self.cut_off == 1 else f"{self.cut_off:,} episodes"
        return (
            f" {episodes} reached the pool's deadline and count as wrong: raise it, or measure again with a smaller "
            "`evaluate.concurrency`."
        )


def describe_outcome(job: str, recipe: Recipe, job_folder: JobFolder) -> JobOutcome | None:
    """The outcome of a job that trained and measured; None while there is nothing to tell."""
    if recipe.evaluate is None or not (recipe.sft or recipe.grpo):
        return None
    rows = [row for row in read_results(job_folder.results) if row.condition == "seen" and row.sample == 0]
    names = list(dict.fromkeys(row.orchestrator for row in rows))
    trained = [name for name in names if name.startswith(f"{job}@")]
    if not trained:
        return None
    mine = [row for row in rows if row.orchestrator == trained[-1]]
    start = recipe.model.start or "base"
    theirs = [row for row in rows if row.orchestrator == start]
    common = {row.task_key for row in theirs}
    paired = len(theirs) == len(mine) and all(row.task_key in common for row in mine)
    gain = None
    if paired:
        difference = compare_paired(mine, theirs).difference
        gain = (difference.mean, difference.low, difference.high)
    source = recipe.complete_evaluate().source
    return JobOutcome(
        orchestrator=trained[-1],
        pool=recipe.pool,
        solved=sum(row.correct for row in mine),
        total=len(mine),
        before=sum(row.correct for row in theirs) if paired else None,
        gain=gain,
        weakest=find_weakest(mine, load_plans(source, mine)),
        own=source.startswith((SOURCE, "file:")),
        cut_off=sum(row.outcome == "deadline" for row in (*mine, *theirs)),
    )


def load_plans(source: str, rows: Sequence[ResultRow]) -> dict[str, Task]:
    """The tasks of a source by query, where it holds its tasks; empty where it makes them, or cannot be read."""
    if not source.startswith((SOURCE, "file:")):
        return {}
    try:
        tasks = open_source(source).tasks(rows[0].split, 1_000_000) if rows else []
    except TrainerError:
        return {}  # the tasks were changed or removed since; the figures stay
    return {normalize_query(task.query): task for task in tasks}


def find_weakest(rows: Sequence[ResultRow], tasks: Mapping[str, Task]) -> Weakness | None:
    """The kind of which the smallest share is solved; None where no kind has enough tasks or all are solved."""
    for describe in (_describe_closely, _describe_steps):
        kinds: defaultdict[str, list[bool]] = defaultdict(list)
        for row in rows:
            kinds[describe(row, tasks.get(normalize_query(row.query)))].append(row.correct)
        large = {kind: marks for kind, marks in kinds.items() if kind and len(marks) >= LEAST}
        if len(large) > 1:
            kind, marks = min(large.items(), key=lambda item: (sum(item[1]) / len(item[1]), -len(item[1])))
            return Weakness(kind, sum(marks), len(marks)) if not all(marks) else None
    return None


def _describe_closely(row: ResultRow, task: Task | None) -> str:
    """A generated task by family and level, one's own by the steps of its plan and the worker that ends it."""
    if row.level:
        return f"{row.family} level {row.level}"
    if task is None or task.oracle_turn is None or not task.oracle_turn.steps:
        return ""
    return f"{_describe_steps(row, task)} that end with {task.oracle_turn.steps[-1].worker}"


def _describe_steps(row: ResultRow, task: Task | None) -> str:
    count = len(task.oracle_turn.steps) if task and task.oracle_turn else row.oracle_steps
    if not count:
        return ""
    return f"{NUMBERS[count] if count < len(NUMBERS) else count}-step questions"

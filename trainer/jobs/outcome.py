"""What a job came to, in a few sentences that a person can act on: how many held-out tasks its last checkpoint solves,
how many the model before it did, of which kind it solves least, and whose words those tasks are in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trainer.errors import TrainerError
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import Recipe
from trainer.results.paired import compare_paired
from trainer.results.rows import ResultRow, read_results
from trainer.tasks.practice.stored import SOURCE
from trainer.tasks.registry import open_source
from trainer.tasks.task import Origin, Task, normalize_query

DIRECT = "direct:"  # the orchestrators that are one agent alone
LEAST = 3  # tasks of a kind, for it to be named as the weakest
WHOSE: Mapping[Origin, str] = {
    "own": "your own held-out questions",
    "made": "the made practice tasks that were held out",
    "": "the held-out tasks",
}
Verdict: TypeAlias = Literal["better", "open", "worse"]
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


@dataclass(frozen=True, slots=True)
class Weakness:
    """The kind of task of which the fewest are solved."""

    kind: str
    solved: int
    total: int


@dataclass(frozen=True, slots=True)
class Score:
    """How many of some held-out tasks the last checkpoint solves. `before`: how many the model did that it was trained
    from; None where that was not measured. `gain`: the difference as a share, with its 95 % interval."""

    whose: str
    solved: int
    total: int
    before: int | None = None
    gain: tuple[float, float, float] | None = None

    @property
    def is_worse(self) -> bool:
        return self.before is not None and self.solved < self.before

    @property
    def is_better(self) -> bool:
        """Whether the gain is beyond chance."""
        return self.gain is not None and self.gain[1] > 0

    @property
    def sentence(self) -> str:
        text = f"Solves {self.solved:,} of {self.total:,} of {self.whose}"
        if self.before is not None:
            text += f", was {self.before:,}"
        if self.gain is not None:
            mean, low, high = (round(100 * share) for share in self.gain)
            text += f" ({mean:+d} points; 95 %: {low:+d} to {high:+d})"
        return f"{text}: worse than before." if self.is_worse else f"{text}."


@dataclass(frozen=True, slots=True)
class BestAgent:
    """The agent that solves most of the held-out tasks alone, and how many the orchestrator solves of the same."""

    name: str
    solved: int
    orchestrated: int

    @property
    def sentence(self) -> str:
        verb = "more" if self.solved > self.orchestrated else "as many" if self.solved == self.orchestrated else "fewer"
        return f"The best agent alone, {self.name}, solves {verb}: {self.solved:,}."


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What the last checkpoint of a job was measured on: a person's own questions (`own`), tasks that `tasks make`
    wrote (`made`) or generated ones, each None where there was none. Made tasks are in a machine's words, like those
    that it learnt: they say little of a person's own. Where the model that it was trained from does better with workers
    chosen by a score, that is the orchestrator. `start` is the model that it was trained from, `cut_off` how many
    episodes of either reached the pool's deadline, and count as wrong."""

    orchestrator: str
    start: str
    pool: str
    own: Score | None
    made: Score | None
    generated: Score | None
    weakest: Weakness | None
    cut_off: int = 0
    best_agent: BestAgent | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the checkpoint is better than its start. Made tasks alone can only show that it is worse."""
        decisive = self.own or self.generated
        judged = decisive or self.made
        if judged is not None and judged.is_worse:
            return "worse"
        is_beaten = self.best_agent is not None and self.best_agent.solved > self.best_agent.orchestrated
        return "better" if decisive is not None and decisive.is_better and not is_beaten else "open"

    @property
    def lacks_own(self) -> bool:
        """Whether only tasks in a machine's words were measured, though a person may have written some."""
        return self.made is not None and self.own is None

    @property
    def sentence(self) -> str:
        """The outcome in words: a person's own questions first."""
        scores = [score.sentence for score in (self.own, self.made, self.generated) if score is not None]
        weakest = self.weakest
        parts = [
            *scores,
            self.best_agent.sentence if self.best_agent else "",
            f"Weakest: {weakest.kind}, {weakest.solved} of {weakest.total}." if weakest else "",
            "None of your own questions was measured." if self.lacks_own else "",
            self._explain_cut_off(),
        ]
        return " ".join(filter(None, parts))

    def _explain_cut_off(self) -> str:
        if not self.cut_off:
            return ""
        episodes = "1 episode" if self.cut_off == 1 else f"{self.cut_off:,} episodes"
        return (
            f"{episodes} reached the pool's deadline and count as wrong: raise it, or measure again with a smaller "
            "`evaluate.concurrency`."
        )


def describe_outcome(job: str, recipe: Recipe, job_folder: JobFolder) -> JobOutcome | None:
    """The outcome of a job that trained and measured; None while there is nothing to tell."""
    if recipe.evaluate is None or not recipe.trains:
        return None
    rows = [row for row in read_results(job_folder.results) if row.condition == "seen" and row.sample == 0]
    by_name = group_by_orchestrator(rows)
    start = recipe.model.start or "base"
    chosen = choose_best(by_name, job, start)
    if chosen is None:
        return None
    source = recipe.complete_evaluate().source
    mine, theirs = by_name[chosen], by_name.get(start, [])
    tasks = load_plans(source, mine)
    origins = {row.task_key: find_origin(row, source, tasks) for row in (*mine, *theirs)}

    def measure(origin: Origin) -> Score | None:
        return score_rows(
            origin, *([row for row in part if origins[row.task_key] == origin] for part in (mine, theirs))
        )

    return JobOutcome(
        orchestrator=chosen,
        start=start,
        pool=recipe.pool,
        own=measure("own"),
        made=measure("made"),
        generated=measure(""),
        weakest=find_weakest(mine, tasks),
        cut_off=sum(row.outcome == "deadline" for row in (*mine, *theirs)),
        best_agent=find_best_agent(by_name, mine),
    )


def group_by_orchestrator(rows: Sequence[ResultRow]) -> dict[str, list[ResultRow]]:
    """The rows of each orchestrator, in the order in which they were measured."""
    by_name: defaultdict[str, list[ResultRow]] = defaultdict(list)
    for row in rows:
        by_name[row.orchestrator].append(row)
    return dict(by_name)


def choose_best(by_name: Mapping[str, Sequence[ResultRow]], job: str, start: str) -> str | None:
    """The orchestrator that a job came to: its last checkpoint, unless what it was trained from solves more of the same
    tasks with options (`+who=predictor`). None where no checkpoint was measured."""
    trained = [name for name in by_name if name.startswith(f"{job}@")]
    if not trained:
        return None
    whole = len(by_name[trained[-1]])
    others = [name for name in by_name if name.startswith(f"{start}+") and len(by_name[name]) == whole]
    return max([trained[-1], *others], key=lambda name: sum(row.correct for row in by_name[name]))


def find_best_agent(by_name: Mapping[str, Sequence[ResultRow]], mine: Sequence[ResultRow]) -> BestAgent | None:
    """The agent that solves most of the tasks of `mine` alone; None where none was measured on all of them."""
    tasks = {row.task_key for row in mine}
    alone = {
        name: sum(row.correct for row in rows)
        for name, rows in by_name.items()
        if name.startswith(DIRECT) and {row.task_key for row in rows} == tasks
    }
    if not alone:
        return None
    best = max(alone, key=lambda name: alone[name])
    return BestAgent(best.removeprefix(DIRECT), alone[best], sum(row.correct for row in mine))


def score_rows(origin: Origin, mine: Sequence[ResultRow], theirs: Sequence[ResultRow]) -> Score | None:
    """The score on tasks of one origin, beside that of the model before where it did the same tasks."""
    if not mine:
        return None
    common = {row.task_key for row in theirs}
    solved = sum(row.correct for row in mine)
    if len(theirs) != len(mine) or any(row.task_key not in common for row in mine):
        return Score(WHOSE[origin], solved, len(mine))
    difference = compare_paired(mine, theirs).difference
    gain = (difference.mean, difference.low, difference.high)
    return Score(WHOSE[origin], solved, len(mine), sum(row.correct for row in theirs), gain)


def find_origin(row: ResultRow, source: str, tasks: Mapping[str, Task]) -> Origin:
    """Who wrote a row's query. Older rows do not say it: the task that is there now does, and what is gone counts as
    made in a pool's book, as a person's in a file of his own."""
    if row.origin:
        return row.origin
    task = tasks.get(normalize_query(row.query))
    if task is not None:
        return task.origin
    return "made" if source.startswith(SOURCE) else "own" if source.startswith("file:") else ""


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

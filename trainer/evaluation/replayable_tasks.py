"""The tasks on which a pool can be tried again: its practice tasks, and recorded queries whose answer can be graded."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from orchestrator.engine.episode import Episode
from orchestrator.plan import Turn
from orchestrator.quotes import references
from orchestrator.traces.store import EpisodeRow, TraceFilter, TraceStore
from trainer.tasks import recognize_task
from trainer.tasks.practice.stored import find_practice_file
from trainer.tasks.sources.jsonl import TaskLine, load_tasks, make_task
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task, normalize_query

EPISODES = 300
HELD_OUT = ("test", "validation", "train", "custom")  # tasks that nothing was trained on come first
RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class ReplayableTasks:
    """The tasks in the order of their worth, how many of them are practice tasks and how many recorded queries, and
    how many other recorded queries have no answer that could be graded."""

    tasks: tuple[Task, ...]
    practice: int
    recorded: int
    ungraded: int


def list_replayable_tasks(traces: TraceStore, pool: str, seed: int = 0) -> ReplayableTasks:
    """The practice tasks of a pool and the queries of its newest traces, held-out ones first, in an order drawn by
    `seed`."""
    practice = {normalize_query(task.query): task for task in load_practice(pool)}
    recorded: dict[str, Task] = {}
    ungraded: set[str] = set()
    for row in traces.search(TraceFilter(pool=pool, limit=EPISODES)):
        key = normalize_query(row.query)
        if not key or key in practice or key in recorded or row.what_if_of:
            continue
        task = recognize_task(row.query) or _read_graded_run(traces, row)
        if task is None:
            ungraded.add(key)
        else:
            recorded[key] = task
    tasks = [*practice.values(), *recorded.values()]
    make_random(f"replay/{pool}/{seed}").shuffle(tasks)
    tasks.sort(key=lambda task: HELD_OUT.index(task.ref.split) if task.ref.split in HELD_OUT else len(HELD_OUT))
    return ReplayableTasks(tuple(tasks), len(practice), len(recorded), len(ungraded - recorded.keys()))


def load_practice(pool: str) -> tuple[Task, ...]:
    """The practice tasks of a pool; none where none have been made."""
    file = find_practice_file(pool)
    return load_tasks(file).tasks if file.is_file() else ()


def find_task_of_run(traces: TraceStore, row: EpisodeRow) -> Task | None:
    """The task that grades a run: that of a suite, a practice task of its pool, or its own answer where that was judged
    right; None where nothing grades it."""
    task = recognize_task(row.query)
    if task is not None:
        return task
    key = normalize_query(row.query)
    own = (task for task in load_practice(row.pool) if normalize_query(task.query) == key)
    return next(own, None) or _read_graded_run(traces, row)


def _read_graded_run(traces: TraceStore, row: EpisodeRow) -> Task | None:
    """The task of a run whose answer was judged right: the answer is what graders expect, its plan the reference."""
    if row.correct is not True:
        return None
    episode = traces.episode(row.id)
    line = {"query": row.query, "answer": episode.answer, "split": "train"}
    if isinstance(episode.answer, list):
        line["verifier"] = "set"
    try:
        task = make_task(TaskLine.model_validate(line), RECORDED, 0)
    except (ValidationError, ValueError):
        return None  # an answer that no verifier takes, such as an object
    return Task(task.ref, task.query, task.verifier, _read_plan(episode))


def _read_plan(episode: Episode) -> Turn | None:
    """The one turn that a run took, where that is a whole plan."""
    turns = [done.turn for done in episode.rounds if done.turn is not None]
    if len(turns) != 1 or not turns[0].steps or not references(turns[0].answer):
        return None
    return Turn(turns[0].steps, turns[0].answer)

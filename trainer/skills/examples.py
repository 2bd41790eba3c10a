"""Questions of a pool that were solved by a plan: right runs, and the pool's own tasks to learn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from orchestrator.errors import EpisodeNotFound
from orchestrator.traces.store import Store
from pool_registry.pool import Pool
from trainer.demonstrations.episode_task import Judgement, make_task_of_run
from trainer.errors import UnusableTasks
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.practice.traffic_record import digest_query, read_traffic
from trainer.tasks.sources.jsonl import make_task
from trainer.tasks.task import HELD_BACK, Task
from trainer.traffic.evidence import list_judged_runs

MAX_RUNS = 300  # of right ones, the newest: each is read whole
FAMILY = "skills"


@dataclass(frozen=True, slots=True)
class Example:
    """A solved question: its task, whose reference plan solved it, and the run that this was; "" for a task that was
    made of none."""

    task: Task
    run: str = ""

    @property
    def digest(self) -> str:
        """What the question is remembered by."""
        return digest_query(self.task.query)


def list_examples(store: Store, pool: Pool) -> list[Example]:
    """What a pool has solved by two steps or more, each question once, runs first. Those of clients are among them only
    where their requests may become tasks, and tasks that are held back to measure are not. Blocks.

    Raises UnusableTasks where what is remembered about the pool's runs is damaged.
    """
    store.traces.flush()
    examples: dict[str, Example] = {}
    for example in (*_read_runs(store, pool), *_read_tasks(pool.name)):
        turn = example.task.oracle_turn
        if turn is not None and len(turn.steps) > 1:
            examples.setdefault(example.digest, example)
    return list(examples.values())


def _read_runs(store: Store, pool: Pool) -> Iterator[Example]:
    runs = list_judged_runs(store, pool.name, read_traffic(pool.name).clients)
    right = ((row, evidence) for row, evidence in runs if evidence.verdict)
    for row, evidence in islice(right, MAX_RUNS):
        try:
            episode = store.traces.episode(row.id)
            line = make_task_of_run(episode, pool, Judgement(answer=evidence.answer)).line
            yield Example(make_task(line, FAMILY, 0), row.id)
        except (EpisodeNotFound, UnusableTasks, ValueError):  # deleted meanwhile, or no plan led to its answer
            continue


def _read_tasks(pool: str) -> Iterator[Example]:
    for row in open_task_book(pool).read():
        if row.task is not None and row.task.ref.split not in HELD_BACK:
            run = row.line.run if row.line is not None else None
            yield Example(row.task, run.id if run else "")

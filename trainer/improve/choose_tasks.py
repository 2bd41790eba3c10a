"""Which tasks an improvement takes: new ones to learn from and to be held out, and old ones beside both.

New are a person's own tasks that no settled improvement has taken: accepted traffic, and what was written by hand. An
improvement is settled when its candidate may be promoted; its tasks then are old ones, as are those that were made.
Where a candidate got worse, or two brought nothing, their tasks are set aside: somebody may have poisoned them. An
edited task is a new one, and so is one that a person puts back (set_aside.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainer.errors import TrainerError
from trainer.improve.gate import brings_nothing, judge
from trainer.improve.record import Improvement
from trainer.tasks.sources.jsonl import FileLine, TaskLine, compute_digest
from trainer.tasks.suite import make_random
from trainer.tasks.task import HELD_BACK

MOST_FRUITLESS = 2  # candidates that bring nothing, until their tasks are set aside
LEAST_LEARNT, LEAST_HELD_OUT = 20, 10  # new tasks: with fewer nothing can be shown


class TooFewTasks(TrainerError):
    """There is too little new to learn from: nothing was done."""


@dataclass(frozen=True, slots=True)
class ChosenTasks:
    """Lines of a pool's task book by what an improvement does with them; `set_aside` are left out of all."""

    learnt: tuple[TaskLine, ...]
    old_learnt: tuple[TaskLine, ...]
    held_out: tuple[TaskLine, ...]
    old: tuple[TaskLine, ...]
    set_aside: tuple[TaskLine, ...] = ()

    @property
    def plan_count(self) -> int:
        """How many of the new tasks to learn from have a reference plan."""
        return sum(line.plan is not None for line in self.learnt)

    @property
    def has_enough(self) -> bool:
        """Whether something can be shown with so many new tasks."""
        return len(self.learnt) >= LEAST_LEARNT and len(self.held_out) >= LEAST_HELD_OUT

    def check_enough(self) -> None:
        """Raise TooFewTasks where there is too little new."""
        if not self.has_enough:
            raise TooFewTasks(_explain_too_few(len(self.learnt), len(self.held_out), len(self.set_aside)))

    def draw_old(self, share: float) -> tuple[TaskLine, ...]:
        """Old tasks that make this share of what is learnt from, or as many as there are."""
        return self.old_learnt[: round(len(self.learnt) * share / (1 - share))]


def choose_tasks(
    rows: Iterable[FileLine], earlier: Sequence[Improvement], most_held_out: int, seed: int, again: bool = False
) -> ChosenTasks:
    """Choose from a task book. At most so many new tasks are held out, and as many old ones, the latest; `seed`
    shuffles the old ones to learn from; `again` takes what was set aside, too. They may be too few."""
    settled, aside = _read_earlier(earlier)
    there = [(row, digest_line(row.line)) for row in rows if row.task is not None and row.line is not None]
    held_aside = set() if again else aside - settled
    new = [row for row, digest in there if not row.is_made and digest not in settled | held_aside]
    old = [row for row, digest in there if row.is_made or digest in settled]
    learnt, held_out = _split(new)
    old_learnt, old_held_out = _split(old)
    make_random(f"{seed}/replay").shuffle(old_learnt)
    return ChosenTasks(
        tuple(learnt),
        tuple(old_learnt),
        tuple(held_out[-most_held_out:]),
        tuple(old_held_out[-most_held_out:]),
        tuple(row.line for row, digest in there if row.line is not None and digest in held_aside),
    )


def digest_line(line: TaskLine) -> str:
    """What makes a task the same one as before: query, answer, verifier and plan."""
    fields = line.model_dump_json(include={"query", "answer", "verifier", "plan"}, exclude_none=True)
    return compute_digest(fields)


def _read_earlier(earlier: Sequence[Improvement]) -> tuple[set[str], set[str]]:
    """The digests of tasks that are settled, and of those that are set aside."""
    settled, aside, fruitless = set[str](), set[str](), Counter[str]()
    for improvement in earlier:
        report = improvement.report
        if report is not None:
            verdict = judge(report.suites, report.guarded)[0]
            taken = set(improvement.plan.taken)
            aside.update(taken if verdict == "worse" else ())
            settled.update(taken if verdict == "better" else ())
            fruitless.update(taken if verdict == "open" and brings_nothing(report.suites) else ())
    return settled, aside | {digest for digest, count in fruitless.items() if count >= MOST_FRUITLESS}


def _split(rows: Iterable[FileLine]) -> tuple[list[TaskLine], list[TaskLine]]:
    """Lines to learn from, and held-out ones."""
    learnt, held_out = list[TaskLine](), list[TaskLine]()
    for row in rows:
        assert row.task is not None and row.line is not None, "the caller leaves out lines that are no tasks"
        (held_out if row.task.ref.split in HELD_BACK else learnt).append(row.line)
    return learnt, held_out


def _explain_too_few(learnt: int, held_out: int, set_aside: int) -> str:
    aside = (
        f" {set_aside} more were set aside because candidates got worse with them, or twice no better: correct them "
        "among the pool's tasks, or put them back (podium tasks aside)."
    )
    return (
        f"nothing was done: there are {learnt} new tasks to learn from and {held_out} new ones that are held out, and "
        f"an improvement needs {LEAST_LEARNT} and {LEAST_HELD_OUT}. New are accepted traffic and tasks of your own "
        f"that no improvement has learnt yet.{aside if set_aside else ''}"
    )

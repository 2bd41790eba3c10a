"""What can teach tasks that have no reference plans: words for errors and for where a teacher is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.tasks.task import Task

ORACLE = "oracle"  # the teacher that is the tasks' own plans
EXPLAIN_NO_PLANS = (
    "these tasks have no reference plans, which the teacher oracle replays. Reference plans teach without a key: let "
    "them be made (podium tasks make), write a `plan` into a task, or correct a run with What if and keep it as a "
    "task. Without plans a checkpoint that reads any pool can look for them, with the answers as judge (teacher "
    "smollm2-reader, samples 8, rounds 2), or an agent of the pool (model:AGENT); or learn from the answers alone by "
    "GRPO from such a checkpoint (model.start: smollm2-reader, without SFT)"
)


def list_shown(teacher: str, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that a teacher can show: the oracle only those with a reference plan."""
    return [task for task in tasks if teacher != ORACLE or task.oracle_turn is not None]

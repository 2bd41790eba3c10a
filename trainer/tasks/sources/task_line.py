"""Tasks as lines of a task file, so that they can leave this process: the other direction of `make_task`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.plan import Turn
from pool_registry.actions import JsonValue
from trainer.tasks.sources.jsonl import (
    JudgeRule,
    NumberRule,
    PythonRule,
    RefusalRule,
    TaskLine,
    TextRule,
    VerifierRule,
)
from trainer.tasks.task import Task
from trainer.tasks.verifier import (
    AnyVerifier,
    ExactText,
    JudgeCheck,
    MatchesPattern,
    NumberWithin,
    OneOf,
    PythonCheck,
    RefusalVerifier,
    SameSet,
    StatesAll,
)


def _write_text_rule(verifier: Any) -> VerifierRule:
    return TextRule(kind=verifier.kind)


RULES: Mapping[type[AnyVerifier], Callable[[Any], VerifierRule]] = {
    **dict.fromkeys((ExactText, OneOf, SameSet, StatesAll, MatchesPattern), _write_text_rule),
    NumberWithin: lambda verifier: NumberRule(kind="number", tolerance=verifier.tolerance),
    PythonCheck: lambda verifier: PythonRule(kind="python", code=verifier.code),
    JudgeCheck: lambda verifier: JudgeRule(kind="judge", worker=verifier.worker),
    RefusalVerifier: lambda _: RefusalRule(kind="refusal"),
}


def write_task_line(task: Task) -> TaskLine:
    """The line that `make_task` reads as this task. Raises ValueError saying why there is none."""
    write_rule = RULES.get(type(task.verifier))
    if write_rule is None:
        raise ValueError(f"its grader ({task.verifier.kind}) cannot be written into a file")
    if task.pool is not None:
        raise ValueError("it brings a pool of its own")
    expected = task.verifier.expected
    answer: JsonValue = list(expected) if isinstance(expected, tuple) else expected
    turn = task.oracle_turn
    plan = json.loads(PlanDialect().format(Turn(turn.steps, turn.answer), ())) if turn is not None else None
    return TaskLine.model_validate(
        {
            "query": task.query,
            "answer": answer,
            "verifier": write_rule(task.verifier),
            "split": task.ref.split,
            "family": task.ref.family,
            "plan": plan,
            "workers": task.offered or None,
        }
    )

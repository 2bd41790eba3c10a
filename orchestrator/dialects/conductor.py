"""Dialect `conductor`: free reasoning, then three equally long lists (Conductor, arXiv 2512.04388).

    workers = [2, 0]
    subtasks = ["...", "... $1 ..."]
    access = [[], [1]]

Worker numbers are those of the list in the prompt, counted from 0 as in the paper; steps count from 1
as everywhere in Podium, so that `access` and `$k` agree. An access list may also be "all" or ["all"]. The value of
the last step is the answer. From the second turn on, three empty lists keep the answer that there is.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import deque
from collections.abc import Mapping, Sequence

from orchestrator.dialects.base import MAX_TURN_STEPS, BaseDialect, build_step, load_json, shorthand
from orchestrator.plan import Step, Turn
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool
from pool_registry.python_source import parse_expression

_LABELS = {
    "workers": re.compile(r"\b(?:workers?|worker_ids?|model_ids?)\b\W{0,4}[=:]\s*(?=\[)", re.IGNORECASE),
    "subtasks": re.compile(r"\b(?:subtasks?|instructions?)\b\W{0,4}[=:]\s*(?=\[)", re.IGNORECASE),
    "access": re.compile(r"\b(?:access(?:_lists?)?)\b\W{0,4}[=:]\s*(?=\[)", re.IGNORECASE),
}
_STRUCTURE = re.compile(r"\\.|[\[\]\"']", re.DOTALL)
MAX_LABELS = 8  # of each kind are looked at, from the end
_ERRORS = (ValueError, SyntaxError, RecursionError, MemoryError, TypeError)

INSTRUCTIONS = """\
Think first if you like, then write three Python lists of equal length, one entry for each step:
workers = [NUMBER OF THE WORKER, ...]
subtasks = ["what that worker must do", ...]
access = [[], [1], ...]
- Steps are numbered 1, 2, 3 ... Steps that do not depend on each other run in parallel.
- A worker sees only its subtask and the outputs of the steps in its access list (earlier steps only), or of all earlier steps if the entry is "all".
- $k inside a subtask is replaced by step k's output; k must be in that step's access list. $$ is a dollar.
- For workers with several parameters, write the subtask as a JSON object of arguments.
- The output of the last step is the answer."""  # noqa: E501


class ConductorDialect(BaseDialect):
    name = "conductor"

    def instructions(self, pool: LivePool) -> str:
        numbered = "\n".join(f"{number}: {name}" for number, name in enumerate(pool.workers))
        return f"{INSTRUCTIONS}\nWorker numbers:\n{numbered}"

    def _parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        lists = _find_lists(text)
        missing = [name for name, values in lists.items() if values is None]
        if missing:
            return Turn(error=f"no list was found for: {', '.join(missing)}", text=text)
        columns = [values for values in lists.values() if values is not None]
        lengths = {len(column) for column in columns}
        if lengths == {0} and first_id > 1:
            return Turn(answer=f"${first_id - 1}", text=text)
        if len(lengths) != 1 or lengths == {0} or max(lengths) > MAX_TURN_STEPS:
            counts = ", ".join(f"{name} has {len(values or ())}" for name, values in lists.items())
            return Turn(error=f"the three lists must be equally long and not empty: {counts}", text=text)
        steps = tuple(
            _parse_step(first_id + index, worker, subtask, access, workers)
            for index, (worker, subtask, access) in enumerate(zip(*columns, strict=True))
        )
        return Turn(steps, answer=f"${steps[-1].id}", text=text)

    def format(self, turn: Turn, workers: Sequence[str]) -> str:
        numbers = [workers.index(step.worker) for step in turn.steps]
        subtasks = [_format_subtask(step) for step in turn.steps]
        access = [list(step.access) for step in turn.steps]
        return f"workers = {numbers}\nsubtasks = {json.dumps(subtasks, ensure_ascii=False)}\naccess = {access}"


def _find_lists(text: str) -> dict[str, list[object] | None]:
    """The list after the last occurrence of each label, None where it is missing. A label inside another label's
    list is text."""
    labels = sorted(
        (match.start(), match.end(), name)
        for name, label in _LABELS.items()
        for match in deque(label.finditer(text), maxlen=MAX_LABELS)
    )
    lists: dict[str, str] = {}
    covered = 0
    for start, bracket, name in labels:
        if start >= covered:
            end = _find_closing_bracket(text, bracket)
            lists[name] = text[bracket : end or len(text)]
            covered = end or covered
    return {name: _parse_list(lists[name]) if name in lists else None for name in _LABELS}


def _parse_list(text: str) -> list[object] | None:
    try:
        value: object = load_json(text)
    except ValueError:
        value = _parse_literal(text)
    return value if isinstance(value, list) else None


def _parse_literal(text: str) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # for example about "\d" in a model's string
            return ast.literal_eval(parse_expression(text.lstrip(" \t")))
    except _ERRORS:
        return None


def _find_closing_bracket(text: str, start: int) -> int | None:
    """The index after the bracket that closes the one at `start`; None when it is not closed."""
    depth, quote = 0, ""
    for match in _STRUCTURE.finditer(text, start):
        char = match.group()
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _parse_step(step_id: int, worker: object, subtask: object, access: object, workers: Sequence[str]) -> Step:
    name = worker
    if isinstance(worker, int) and not isinstance(worker, bool):
        name = workers[worker] if 0 <= worker < len(workers) else f"number {worker}"
    access = "all" if access == ["all"] else access
    step = build_step(step_id, name, _parse_arguments(subtask), access, range(1, step_id))
    if not isinstance(subtask, str | dict):
        return step.with_problem("a subtask must be text")
    return step


def _parse_arguments(subtask: object) -> Mapping[str, JsonValue]:
    if isinstance(subtask, dict):
        return subtask
    if isinstance(subtask, str) and subtask.lstrip().startswith("{"):
        try:
            parsed = json.loads(subtask)
        except (ValueError, RecursionError):
            return {"instruction": subtask}
        if isinstance(parsed, dict):
            return parsed
    return {"instruction": subtask if isinstance(subtask, str) else ""}


def _format_subtask(step: Step) -> str:
    instruction = shorthand(step.arguments)
    if isinstance(instruction, str) and not instruction.lstrip().startswith("{"):
        return instruction
    return json.dumps(dict(step.arguments), ensure_ascii=False)

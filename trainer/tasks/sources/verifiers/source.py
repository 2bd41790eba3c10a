"""The source `verifiers:TASKSET`: a task set of verifiers (0.4 and newer), whose rewards grade what an orchestrator
answers.

Settings of the task set stand behind a question mark: `verifiers:gsm8k?split=test&min_reward=0.5`. A task set has no
splits as ours; the hash of a query decides.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from orchestrator.engine.events import TaskRef
from pool_registry.actions import JsonValue, clean_text
from trainer.errors import NotGraded, UnusableTasks
from trainer.tasks.sources.source import TaskList
from trainer.tasks.sources.verifiers.process import Json, RewardProcess
from trainer.tasks.suite import assign_split
from trainer.tasks.task import Task, normalize_query
from trainer.tasks.verifier import extract_answer

MIN_REWARD = "min_reward"
TOLERANCE = 1e-6
MAX_ANSWER_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class RewardVerifier:
    """Right when the task set's rewards add up to `min_reward` or more. `expected` is for people."""

    process: RewardProcess = field(repr=False, compare=False)
    index: int
    min_reward: float
    expected: JsonValue = None
    kind: str = "verifiers"

    def accepts(self, answer: object) -> bool:
        try:
            return self.ask(answer)
        except NotGraded:
            return False

    def ask(self, answer: object) -> bool:
        """Whether the answer is right; the program may take seconds. Raises NotGraded saying what to do."""
        text = extract_answer(answer).strip()
        if not text or len(text) > MAX_ANSWER_CHARS:
            return False
        try:
            return self.process.reward(self.index, text) >= self.min_reward - TOLERANCE
        except (UnusableTasks, TimeoutError, OSError) as error:
            raise NotGraded(str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise NotGraded(f"the task set {self.process.taskset} gave no reward that can be read: {error}") from error


def open_taskset(argument: str) -> TaskList:
    """The tasks of TASKSET or TASKSET?SETTING=VALUE&... Raises UnusableTasks saying what to do."""
    taskset, _, query = argument.partition("?")
    if not taskset:
        raise UnusableTasks("name the task set, as in verifiers:gsm8k or verifiers:gsm8k?split=test")
    settings = {name: _read_value(value) for name, value in parse_qsl(query, keep_blank_values=True)}
    min_reward = settings.pop(MIN_REWARD, 1.0)
    if isinstance(min_reward, bool) or not isinstance(min_reward, int | float):
        raise UnusableTasks(f"{MIN_REWARD} is a number, as in verifiers:gsm8k?{MIN_REWARD}=0.5")
    process = RewardProcess(taskset, settings)
    try:
        rows = process.list_tasks()
    except TimeoutError as error:
        raise UnusableTasks(f"{error}; try whether it loads: vf-eval {taskset} -n 1") from error
    tasks = _make_tasks(f"verifiers:{taskset}", rows, process, float(min_reward))
    if not tasks:
        problem = next((row["problem"] for row in rows if row["problem"]), "it is empty")
        raise UnusableTasks(f"no task of {taskset} can be used here: {problem}; choose another task set")
    return TaskList(f"verifiers:{argument}", tasks)


def _make_tasks(family: str, rows: list[Json], process: RewardProcess, min_reward: float) -> list[Task]:
    """The tasks whose rewards can be asked, each query once."""
    tasks: dict[str, Task] = {}
    for index, row in enumerate(rows):
        query = clean_text(row["query"])
        key = normalize_query(query)
        if row["problem"] or not key:
            continue
        verifier = RewardVerifier(process, index, min_reward, row["answer"])
        tasks.setdefault(key, Task(TaskRef(family, 0, assign_split(key), index), query, verifier))
    return list(tasks.values())


def _read_value(text: str) -> JsonValue:
    """A setting: JSON where it is that, else the text."""
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value

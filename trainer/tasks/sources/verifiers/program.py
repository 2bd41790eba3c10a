"""Runs in the Python that has verifiers, and imports nothing of Podium: lists the tasks of a task set and rewards
answers.

    python program.py TASKSET SETTINGS_AS_JSON MOST_TASKS

Prints a line of JSON for each task and then {"end": true}. Then it reads {"index": 0, "answer": "..."} from standard
input and prints {"reward": 1.0}, until that is closed. A line with "error" says what failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a task set prints must not stand between the answers
    with contextlib.suppress(BrokenPipeError):
        serve(answers)


def serve(answers: TextIO) -> None:
    def send(document: Mapping[str, Any]) -> None:
        answers.write(json.dumps(document) + "\n")
        answers.flush()

    try:
        tasks = load_tasks(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]))
    except Exception as error:  # noqa: BLE001  another package's code: the program says what failed
        send({"error": explain(error)})
        return
    for task in tasks:
        send(describe(task))
    send({"end": True})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            send({"reward": asyncio.run(reward(tasks[request["index"]], request["answer"]))})
        except Exception as error:  # noqa: BLE001  as above
            send({"error": explain(error)})


def explain(error: Exception) -> str:
    """A failure in one line; of settings that do not fit, which and why."""
    problems = getattr(error, "errors", None)
    if callable(problems):
        return "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in problems())
    return f"{type(error).__name__}: {error}"


def load_tasks(taskset_id: str, settings: Mapping[str, Any], most: int) -> list[Any]:
    from verifiers.v1.utils import loaders

    config = loaders.taskset_config_type(taskset_id).model_validate({**settings, "id": taskset_id})
    return list(itertools.islice(loaders.load_taskset(config), most))


def describe(task: Any) -> dict[str, Any]:
    """A task's query, the answer that its data name, and why its rewards cannot be asked here, if they cannot."""
    query = "\n\n".join(text for text in (task.data.system_prompt, task.data.prompt_text) if text)
    return {"query": query, "answer": getattr(task.data, "answer", None), "problem": find_problem(task)}


def find_problem(task: Any) -> str:
    if not task.data.prompt:
        return "it has no prompt"
    if task.NEEDS_CONTAINER or task.data.image:
        return "it needs a container"
    if type(task).toolsets(task.config):
        return "it brings tool servers of its own"
    if task.plugged_judges():
        return "a judge of its own grades it"
    rewards = task.hooks("reward")
    if not rewards:
        return "it has no reward"
    parameters = [inspect.signature(function).parameters.get("runtime") for function in rewards]
    if any(parameter is not None and parameter.default is inspect.Parameter.empty for parameter in parameters):
        return "its reward looks into the place where an agent worked"
    return ""


async def reward(task: Any, answer: str) -> float:
    """The sum of the task's weighted rewards for an answer."""
    trace = build_trace(task, answer)
    await task.score(trace)
    return float(trace.reward)


def build_trace(task: Any, answer: str) -> Any:
    """The trace of an agent that replied with the answer at once."""
    import verifiers.v1 as vf
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask
    from verifiers.v1.types import AssistantMessage, UserMessage

    record = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
    trace = vf.Trace(task=record, agent=AgentInfo(config=AgentConfig()), is_completed=True, ok=True)
    trace.nodes = [
        MessageNode(message=UserMessage(content=task.data.prompt_text)),
        MessageNode(parent=0, message=AssistantMessage(content=answer), sampled=True),
    ]
    trace.root_reply = answer
    return trace


if __name__ == "__main__":
    main()

"""Dialect `conductor_paper`: dialect `conductor` with the prompt of the paper (arXiv 2512.04388v5).

Workers are called Model 0, Model 1 ... and nothing is said about them: which of them is good at what is learnt by
reward. A workflow has at most five steps, and an access list is [] or ["all"]. Four examples from other tasks show
the format, because nothing else does before GRPO. The paper draws them from MedReason, DeepMath and Countdown, but
does not print them all; these are our own, on questions of the same kinds.

The paper's workers are all language models. Tools cannot be called without their parameters: where a pool has tools,
these are described.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.dialects.conductor import ConductorDialect
from orchestrator.plan import Turn
from pool_registry.calls.live_pool import LivePool, LiveWorker

MAX_STEPS = 5

INSTRUCTIONS = """\
You coordinate models that cannot see the question. Think about how to solve it, then write a workflow as three Python lists of equal length, one entry for each step:
workers = [number of the model for each step]
subtasks = ["what that model must do", ...]
access = [[], ["all"], ...]
- A workflow has at most 5 steps. Steps are numbered 1, 2, 3 ... You may use a model several times.
- A model sees only its subtask and, where the entry of access is ["all"], what the earlier steps have given; with [] it sees nothing else. So write all that it needs into its subtask.
- What the last step gives is the answer to the question."""  # noqa: E501
TOOLS = """\
- Some models are tools: for one with several parameters, write the subtask as a JSON object of them. $k inside a subtask is replaced by what step k has given."""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the thoughts and the workflow of a good coordinator. `workers` count from 0."""

    query: str
    thoughts: str
    workers: tuple[int, ...]
    subtasks: tuple[str, ...]
    access: tuple[str, ...]


_MEDICINE = (
    "A 58-year-old man who takes lisinopril is started on spironolactone. A week later he is weak and his ECG shows "
    "peaked T waves. Which electrolyte is disturbed, and in which direction?"
)
_INTEGRAL = "Evaluate the integral of x^2 * e^(-x) from 0 to infinity."
_LIMIT = "For which real p does the series of 1 / (n * (ln n)^p), from n = 2 on, converge?"
_COUNTDOWN = "Use the numbers 3, 7, 11 and 25, each at most once, with + - * / to make 74."

EXAMPLES = (
    Example(
        _MEDICINE,
        "One model with medical knowledge can answer this directly.",
        (0,),
        (f"Answer this question and end with one sentence that states the result: {_MEDICINE}",),
        ("[]",),
    ),
    Example(
        _INTEGRAL,
        "Two ways lead to the value: integration by parts, and the gamma function. A third step compares them.",
        (1, 2, 0),
        (
            "Evaluate the integral of x^2 * e^(-x) dx from 0 to infinity by integrating by parts. Show the steps.",
            "Evaluate the integral of x^2 * e^(-x) dx from 0 to infinity with the gamma function.",
            "Two solutions of the same integral are given. Check both and give the correct value alone.",
        ),
        ("[]", "[]", '["all"]'),
    ),
    Example(
        _LIMIT,
        "One model should derive the condition, another should look for mistakes before the answer is given.",
        (2, 1),
        (
            f"{_LIMIT} Use the integral test and treat every case of p.",
            "Check the derivation that you are given, also at the border p = 1, and state the condition on p.",
        ),
        ("[]", '["all"]'),
    ),
    Example(
        _COUNTDOWN,
        "Attempts from different models raise the chance of a hit; the last step verifies the arithmetic.",
        (0, 1, 2),
        (
            f"{_COUNTDOWN} Begin with products of two of the numbers.",
            f"{_COUNTDOWN} Work backwards from 74.",
            "Some attempts to make 74 from 3, 7, 11 and 25 are given. Compute each again, and write one expression "
            "that uses every number at most once and gives exactly 74. If none does, find one.",
        ),
        ("[]", "[]", '["all"]'),
    ),
)


class ConductorPaperDialect(ConductorDialect):
    name = "conductor_paper"

    def name_workers(self, pool: LivePool) -> Mapping[str, str]:
        return {name: f"Model {number}" for number, name in enumerate(pool.workers)}

    def system_prompt(self, pool: LivePool) -> str | None:
        models = [_describe_model(number, worker) for number, worker in enumerate(pool.workers.values())]
        examples = [_write_example(example, _list_models(pool)) for example in EXAMPLES]
        return "\n".join(
            (self.instructions(pool), "", "Models:", *models, "", "Examples of other questions:", *examples)
        )

    def instructions(self, pool: LivePool) -> str:
        tools = any(worker.role != "agent" for worker in pool.workers.values())
        return f"{INSTRUCTIONS}\n{TOOLS}" if tools else INSTRUCTIONS

    def _parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        turn = super()._parse(text, first_id, workers)
        if len(turn.steps) > MAX_STEPS:
            return Turn(error=f"a workflow has at most {MAX_STEPS} steps, this one has {len(turn.steps)}", text=text)
        return turn


def _describe_model(number: int, worker: LiveWorker) -> str:
    if worker.role == "agent":
        return f"Model {number}"
    properties = worker.parameters.get("properties")
    parameters = ", ".join(properties) if isinstance(properties, Mapping) else ""
    return f"Model {number}({parameters}): {worker.spec.description}"


def _list_models(pool: LivePool) -> list[int]:
    """The numbers that examples use: those of language models, where the pool has some."""
    agents = [number for number, worker in enumerate(pool.workers.values()) if worker.role == "agent"]
    return agents or list(range(len(pool.workers))) or [0]


def _write_example(example: Example, models: Sequence[int]) -> str:
    numbers = [models[number % len(models)] for number in example.workers]
    subtasks = ", ".join(f'"{subtask}"' for subtask in example.subtasks)
    access = ", ".join(example.access)
    lists = f"workers = {numbers}\nsubtasks = [{subtasks}]\naccess = [{access}]"
    return f"\nQuestion: {example.query}\n{example.thoughts}\n{lists}"

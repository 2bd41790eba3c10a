"""Which operation a sum is, where a pool has a function for each: the words, the cards, and a reader's plans."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.bind_needs import list_candidates
from orchestrator.reader.needs import Need
from orchestrator.reader.refusal import refuse
from orchestrator.repairs.name_operations import (
    OPERATIONS,
    SUMS,
    asks_for_sum,
    find_operation,
    find_operation_parameter,
    hold_to_operation,
    list_servers,
    write_choices,
)
from podium_lessons.everyday.everyday_data import ToolData, load_tools
from podium_lessons.lesson_data import load_lesson_data
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.orchestrator.support.grammar_walk import accepts
from trainer.tasks.registry import open_source

WORKS = ("add", "subtract", "multiply", "divide")


def make_worker(work: str, name: str, description: str, **names: str) -> WorkerSpec:
    return WorkerSpec(
        name=name,
        kind="everyday",
        description=description,
        config={"work": work, "names": names or {"a": "a", "b": "b"}},
    )


def open_pool(*workers: WorkerSpec) -> LivePool:
    return open_live_pool(Pool(name="sums", workers=workers))


ADD = make_worker("add", "plus", "Adds two numbers.")
MULTIPLY = make_worker("multiply", "times", "The product of two numbers.")
CALCULATOR = make_worker("evaluate", "calculator", "Evaluates an arithmetic expression.", expression="expression")

FOUR_FUNCTIONS = make_worker(
    "arithmetic", "operate", "One basic operation on two numbers.", first="x", operation="kind", second="y"
)


def test_the_words_are_those_that_a_reader_learns():
    tools = {tool.work: tool.need for tool in load_lesson_data("project_tools", ToolData).tools}
    assert tuple(tools[work] for work in WORKS) == OPERATIONS
    assert tuple(load_tools()[work].need for work in ("evaluate", "arithmetic")) == SUMS
    assert asks_for_sum(Need("Evaluate an arithmetic expression")) and not asks_for_sum(Need(OPERATIONS[0]))


def test_the_choices_keep_the_needs_before():
    needs = [Need("price of a cake"), Need(SUMS[0], (1,)), Need("convert money", (2,))]
    choices = write_choices(needs, 1)
    assert choices[2] == "1. price of a cake\n2. product of two numbers (1)" and len(choices) == 4


@pytest.mark.medium
def test_of_thirty_cards_of_one_operation_all_but_one_are_known():
    tools = {tool.work: tool for tool in load_lesson_data("project_tools", ToolData).tools}
    cards = [
        (operation, open_pool(make_worker(work, name, description)).workers[name])
        for work, operation in zip(WORKS, OPERATIONS, strict=True)
        for name in tools[work].names
        for description in tools[work].descriptions
    ]
    mistaken = [worker.spec for operation, worker in cards if find_operation(worker) not in (operation, None)]
    unknown = [worker.spec for _, worker in cards if find_operation(worker) is None]
    assert len(cards) > 100 and len(mistaken) <= len(cards) / 30 and len(unknown) <= len(cards) / 20


@pytest.mark.medium
def test_other_workers_do_none_of_the_four():
    assert find_operation(open_pool(CALCULATOR).workers["calculator"]) is None
    percent = make_worker("percent_of", "percentage", "Percentage of an amount.", percent="percent", amount="amount")
    assert find_operation(open_pool(percent).workers["percentage"]) is None


@pytest.mark.medium
@pytest.mark.parametrize(("source", "split"), [("projects", "train"), ("projects:held_out", "test")])
def test_right_plans_keep_their_workers(source, split):
    needs, lost = 0, []
    for task in open_source(source).tasks(split, 300):
        pool = open_live_pool(task.pool)
        for step in task.oracle_turn.steps if task.oracle_turn else ():
            if step.need in OPERATIONS:
                left = list_servers(Need(step.need), pool.workers)
                needs += 1
                lost += [] if step.worker in {item.worker for item in left} else [(task.query, step.worker)]
    assert needs >= 30 and len(lost) <= needs / 20, lost


def describe_numbers(*choices: str, **others: str) -> WorkerSpec:
    """A worker that takes two numbers, one of some choices, and what else there is."""
    kinds = {"a": {"type": "number"}, "b": {"type": "number"}, "op": {"type": "string", "enum": list(choices)}}
    properties = kinds | {name: {"type": kind} for name, kind in others.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return WorkerSpec(
        name="maths",
        kind="http",
        description="Does maths.",
        config={"url": "http://127.0.0.1:9/{op}", "parameters": schema},
    )


@pytest.mark.parametrize(
    ("choices", "values"),
    [
        (("add", "subtract", "multiply", "divide"), ("add", "subtract", "multiply", "divide")),
        (("+", "-", "*", "/"), ("+", "-", "*", "/")),
        (("Divided by", "Plus"), ("Plus", "Divided by")),
    ],
)
def test_a_parameter_that_chooses_the_operation_is_known(choices, values):
    parameter = find_operation_parameter(open_pool(describe_numbers(*choices)).workers["maths"])
    assert parameter.name == "op" and tuple(parameter.values.values()) == values


@pytest.mark.parametrize(
    "worker", [describe_numbers("km", "mile"), describe_numbers("add", "divide", digits="integer")]
)
def test_other_choices_are_no_operations(worker):
    live = open_pool(worker).workers["maths"]
    assert find_operation_parameter(live) is None
    assert hold_to_operation(live, Need(OPERATIONS[0])) == live.parameters


class Model:
    """Wants a sum of 3 and 4; asked which one, it names the operation, where the grammar has it."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.choices = 0

    async def write(self, messages, grammar, _draw) -> Completion:
        named = f"1. {self.operation}"
        if len(messages) > 2:
            return Completion('1. {"a": 3, "b": 4}\n= $1')
        if accepts(grammar, named) and not accepts(grammar, f"1. {SUMS[0]}"):
            self.choices += 1
            return Completion(named)
        return Completion(f"1. {SUMS[0]}")


def run(model: Model, *workers: WorkerSpec) -> Episode:
    live = open_pool(*workers)
    policy = ReaderPolicy("reader", live, model.write, other_plans=0)
    return asyncio.run(run_episode(EpisodeSpec("3 and 4"), policy, live))


@pytest.mark.medium
@pytest.mark.parametrize(("operation", "answer"), [(OPERATIONS[0], 7), (OPERATIONS[2], 12)])
def test_the_model_names_the_operation_where_each_has_a_worker(operation, answer):
    model = Model(operation)
    episode = run(model, ADD, MULTIPLY)
    assert episode.answer == answer and model.choices == 1
    assert episode.steps[1].step.need == operation and operation in episode.rounds[0].turn.text


@pytest.mark.medium
def test_an_operation_that_no_worker_does_is_refused_by_its_name():
    assert run(Model(OPERATIONS[1]), ADD, MULTIPLY).answer == refuse(OPERATIONS[1])


@pytest.mark.medium
def test_a_calculator_needs_no_operation():
    model = Model(OPERATIONS[0])
    model_pool = open_pool(ADD, CALCULATOR)

    async def write(messages, grammar, draw) -> Completion:
        if len(messages) > 2:
            return Completion('1. {"expression": "3 + 4"}\n= $1')
        return await model.write(messages, grammar, draw)

    policy = ReaderPolicy("reader", model_pool, write, other_plans=0)
    episode = asyncio.run(run_episode(EpisodeSpec("3 and 4"), policy, model_pool))
    assert episode.answer == 7 and model.choices == 0 and episode.steps[1].step.worker == "calculator"


@pytest.mark.medium
@pytest.mark.parametrize(("operation", "answer"), [(OPERATIONS[0], 7), (OPERATIONS[1], -1), (OPERATIONS[2], 12)])
def test_a_worker_that_does_them_all_gets_the_one_that_is_named(operation, answer):
    model = Model(operation)
    live = open_pool(FOUR_FUNCTIONS, make_worker("sum", "total", "Adds up a list of numbers.", numbers="numbers"))

    async def write(messages, grammar, draw) -> Completion:
        if len(messages) <= 2:
            return await model.write(messages, grammar, draw)
        kinds = ("multiply", "add", "subtract", "divide")  # a model that multiplies where it may
        fills = (f'1. {{"x": 3, "kind": "{kind}", "y": 4}}\n= $1' for kind in kinds)
        return Completion(next(fill for fill in fills if accepts(grammar, fill)))

    policy = ReaderPolicy("reader", live, write, other_plans=0)
    episode = asyncio.run(run_episode(EpisodeSpec("3 and 4"), policy, live))
    assert episode.answer == answer and model.choices == 1 and episode.steps[1].step.worker == "operate"


@pytest.mark.medium
def test_what_is_hardly_like_a_sum_goes_to_no_worker_that_adds():
    workers = open_pool(ADD).workers
    assert list_candidates(Need("which of two has more"), list(workers.values())), "likeness alone would take it"
    assert not list_servers(Need("which of two has more"), workers)
    assert [item.worker for item in list_servers(Need("the total price"), workers)] == ["plus"]

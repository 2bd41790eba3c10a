"""A worker that the query names and a short plan leaves out is put in where the plan then works."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.needs import parse_needs
from orchestrator.repairs.left_out_workers import has_idle_step, list_left_out
from pool_registry.actions import Usage
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion, Draw, Message
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from trainer.tasks.registry import open_source

pytestmark = pytest.mark.medium

DESK = '''
def ticket_owner(ticket_id: str) -> str:
    """Name of the person a ticket is assigned to."""
    return {"T-101": "Mira"}[ticket_id]

def email_of(person: str) -> str:
    """E-mail address of somebody on the team."""
    return {"Mira": "mira@desk.example"}[person]

def ram_of(host: str) -> int:
    """RAM that is installed in a machine, in gigabytes."""
    return {"atlas": 64}[host]

def cost_of(host: str) -> float:
    """What a machine costs a month, in euros."""
    return {"atlas": 30.0}[host]

def times(a: float, b: float) -> float:
    """Product of two numbers."""
    return a * b

def to_mb(gigabytes: float) -> float:
    """Converts gigabytes into megabytes, MB."""
    return gigabytes * 1024
'''
OWNER, NAME, EMAIL, RAM, TO_MB = (
    "person assigned to a ticket", "Name of the person a ticket is assigned to",
    "E-mail address of somebody on the team",
    "RAM that is installed in a machine, in gigabytes", "convert units of measure",
)  # fmt: skip
PARAMETERS = {OWNER: "ticket_id", NAME: "ticket_id", EMAIL: "person", RAM: "host", TO_MB: "gigabytes"}
USAGE = Usage(10, 5)


class Model:
    """Plans one need, and gives the worker of every need the output that it may see, or else `value`."""

    def __init__(self, need: str, value: object, answer: str = "") -> None:
        self.need, self.value, self.answer = need, value, answer
        self.calls = 0

    async def write(self, messages: list[Message], _grammar: object, _draw: Draw | None) -> Completion:
        self.calls += 1
        if len(messages) == 2:
            return Completion(f"1. {self.need}", usage=USAGE)
        needs = parse_needs(str(messages[2].content))
        values = [f"${need.access[-1]}" if need.access else self.pick(need.text) for need in needs]
        lines = [
            f"{place}. {json.dumps({PARAMETERS[need.text]: value})}"
            for place, (need, value) in enumerate(zip(needs, values, strict=True), start=1)
        ]
        return Completion("\n".join([*lines, f"= {self.answer or f'${len(needs)}'}"]), usage=USAGE)

    def pick(self, need: str) -> object:
        return {RAM: "atlas", NAME: "T-101"}.get(need, self.value)


@pytest.fixture
def ask(tmp_path):
    (tmp_path / "desk.py").write_text(DESK)

    async def run(query: str, model: Model, effects: str) -> Episode:
        specs = [offer.spec for offer in await list_functions(str(tmp_path / "desk.py"))]
        pool = Pool(name="desk", workers=tuple(spec.model_copy(update={"effects": effects}) for spec in specs))
        async with live_pool(pool) as live:
            return await run_episode(EpisodeSpec(query), ReaderPolicy("r", live, model.write, other_plans=4), live)

    def ask_desk(query: str, model: Model, effects: str = "none") -> Episode:
        return asyncio.run(run(query, model, effects))

    return ask_desk


def list_workers(episode: Episode) -> list[str]:
    return [run.step.worker for run in episode.steps.values()]


def test_a_second_step_that_the_query_names_comes_after_the_first(ask):
    model = Model(OWNER, "T-101")
    episode = ask("What is the email of the person assigned to T-101?", model)
    assert episode.answer == "mira@desk.example" and list_workers(episode) == ["ticket_owner", "email_of"]
    assert [run.step.need for run in episode.steps.values()] == [OWNER, EMAIL]
    assert "The query names another worker" in episode.rounds[0].turn.text
    assert episode.usage.tokens_in == model.calls * USAGE.tokens_in, "what was tried is paid for"


def test_a_first_step_that_the_query_names_comes_before_the_second(ask):
    episode = ask("RAM of atlas in MB please", Model(TO_MB, 1024))
    assert episode.answer == 65536 and list_workers(episode) == ["ram_of", "to_mb"]


def test_a_worker_may_stand_in_the_place_of_the_one_that_was_planned(ask):
    episode = ask("email address of Mira please", Model(OWNER, "Mira"))
    assert episode.answer == "mira@desk.example" and list_workers(episode) == ["email_of"]


def test_an_argument_that_the_query_does_not_have_makes_room_for_an_output(ask):
    class Sum(Model):
        async def write(self, messages, _grammar, _draw):
            if len(messages) > 2 and "costs a month" in str(messages[2].content):
                return Completion('1. {"host": "atlas"}\n2. {"a": 3, "b": 1}\n= $2', usage=USAGE)
            return Completion('1. {"a": 3, "b": 1}\n= $1' if len(messages) > 2 else "1. multiply", usage=USAGE)

    episode = ask("What do 3 months of atlas cost?", Sum("multiply", 3))
    assert episode.answer == 90 and list_workers(episode) == ["cost_of", "times"]


def test_two_workers_that_the_query_names_may_follow_each_other(ask):
    model = Model(TO_MB, 10)
    episode = ask("What email address does the owner of ticket T-101 have?", model)
    assert episode.answer == "mira@desk.example" and list_workers(episode) == ["ticket_owner", "email_of"]


def test_a_plan_that_does_not_work_with_another_worker_stays(ask):
    query = "What is the email of the person assigned to T-101?"
    idle = ask(query, Model(OWNER, "T-101", answer="nothing"))
    assert list_workers(idle) == ["ticket_owner"] and idle.answer == "nothing"


def test_what_may_have_effects_is_not_put_in(ask):
    model = Model(OWNER, "T-101")
    episode = ask("What is the email of the person assigned to T-101?", model, effects="some")
    assert list_workers(episode) == ["ticket_owner"] and model.calls == 2


def test_a_plan_that_covers_the_query_is_asked_once(ask):
    model = Model(OWNER, "T-101")
    assert ask("Which person is assigned to T-101?", model).answer == "Mira" and model.calls == 2


def test_longer_plans_and_unknown_workers_are_left_alone():
    workers = open_live_pool(starter_pool()).workers
    step = Step(1, "calendar", {"request": "weekday of 2024-07-04"}, need="weekday of a date")
    assert list_left_out("distance from LHR to JFK", [step], workers)
    assert not list_left_out("distance from LHR to JFK", [step] * 3, workers)
    assert not list_left_out("distance from LHR to JFK", [Step(1, "nobody", {})], workers)
    assert not list_left_out("distance from LHR to JFK", [], workers)


@pytest.mark.parametrize(
    ("source", "split"),
    [("everyday", "validation"), ("everyday:held_out", "test"), ("worlds", "validation"), ("worlds:held_out", "test")],
)
def test_of_a_hundred_right_plans_at_most_five_seem_to_leave_out_a_worker(source, split):
    tasks = [task for task in open_source(source).tasks(split, 200) if task.oracle_turn and task.oracle_turn.steps]
    seen = [
        list_left_out(task.query, task.oracle_turn.steps, open_live_pool(task.pool or starter_pool()).workers)
        for task in tasks
    ]
    assert len(tasks) >= 100 and sum(map(bool, seen)) <= len(tasks) / 20


PRICE = Step(1, "price", {"film": "Low Tide"})
SEARCH = Step(1, "search", {"query": "Egypt, railways"})


@pytest.mark.parametrize(
    ("steps", "answer", "is_idle"),
    [
        ((PRICE,), "$1", False),
        ((PRICE, Step(2, "price", {"film": "Comet Season"}), Step(3, "minus", {"a": "$1", "b": "$2"})), "$3", False),
        ((PRICE, Step(2, "price", {"film": "Low Tide"}), Step(3, "minus", {"a": "$1", "b": "$2"})), "$3", True),
        ((PRICE, Step(2, "times", {"a": "$1", "b": 2}, (1,))), "$1", True),
        ((PRICE, Step(2, "screen", {"film": "Low Tide"})), "$2", True),
        ((PRICE, Step(2, "screen", {"film": "Low Tide"})), "$1 and $2", False),
        ((SEARCH, Step(2, "reader", {"instruction": "the number"}, (1,))), "$2", False),
        ((PRICE, Step(2, "times", {"a": "$1", "b": "$1"}, (1,))), "$2", False),
    ],
)
def test_a_step_is_idle_that_repeats_a_call_or_is_used_by_none(steps, answer, is_idle):
    assert has_idle_step(Turn(steps, answer)) is is_idle


def test_two_workers_may_read_different_texts_with_one_instruction():
    instruction = {"instruction": "the number in the passage"}
    steps = (SEARCH, Step(2, "search", {"query": "Sudan"}), Step(3, "reader", instruction, (1,)))
    assert not has_idle_step(Turn((*steps, Step(4, "reader", instruction, (2,))), "$3 and $4"))
    assert has_idle_step(Turn((*steps, Step(4, "reader", instruction, (1,))), "$2, $3 and $4"))

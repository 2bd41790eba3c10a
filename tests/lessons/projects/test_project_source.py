"""The source `projects`: right plans for functions of a pool's own, words kept for testing, refusals."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.reader.refusal import is_refusal
from podium_lessons.everyday.step_writer import Function
from podium_lessons.projects.calls import Sum
from podium_lessons.projects.project_data import KIND, list_projects, load_project
from podium_lessons.projects.source import GROUP, LEVELS, ProjectSource, open_projects
from podium_lessons.projects.worker import look_up
from podium_lessons.projects.write_plan import PlanWriter
from podium_lessons.scripts.check_worlds import list_failures
from podium_lessons.worlds.world_data import list_worlds, load_world
from pool_registry.errors import BadCall, InvalidPool
from pool_registry.kinds import open_worker
from pool_registry.pool import check_pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.registry import open_source
from trainer.tasks.suite import SPLITS
from trainer.tasks.task import normalize_query
from trainer.tasks.verifier import RefusalVerifier

HELD_OUT = tuple(name for name in list_projects() if load_project(name).held_out)
LEARNT = tuple(name for name in list_projects() if name not in HELD_OUT)
BENCH = Path(__file__).parents[3] / "bench" / "data"


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(SPLITS))
def test_every_reference_plan_gives_the_drawn_answer(seed, split):
    tasks = open_projects().tasks(split, 24, seed)
    assert asyncio.run(list_failures(tasks)) == []  # run for real: schemas, access lists and answers


@pytest.mark.medium
@pytest.mark.parametrize("name", list_projects())
def test_every_project_has_right_plans_on_every_level(name):
    tasks = ProjectSource([name]).tasks("train", 60)
    assert asyncio.run(list_failures(tasks)) == []
    assert {task.ref.level for task in tasks} == set(LEVELS)


def test_four_tasks_in_a_row_share_a_pool_that_has_what_they_need():
    tasks = open_source("projects").tasks("train", 80)
    groups = [tasks[place : place + GROUP] for place in range(0, 80, GROUP)]
    assert all(len({task.pool.hash for task in group}) == 1 for group in groups)
    for task in tasks:
        check_pool(task.pool)
        assert task.list_missing_workers(task.pool) == []
        assert all(step.need and set(step.access) == step.references for step in task.oracle_turn.steps)


def test_the_same_seed_draws_the_same_tasks():
    first, again = open_projects().tasks("train", 24), open_projects().tasks("train", 40)[:24]
    assert first == again and first != open_projects().tasks("train", 24, seed=1)


def test_splits_share_no_query():
    queries = {split: {task.query.casefold() for task in open_projects().tasks(split, 400)} for split in SPLITS}
    assert not queries["train"] & (queries["validation"] | queries["test"])
    assert not queries["validation"] & queries["test"]


def test_descriptions_of_the_test_split_are_held_out():
    learnt = {spec.description for task in open_projects().tasks("train", 2000) for spec in task.pool.workers}
    for name in LEARNT:
        assert not learnt & {text for tool in load_project(name).tools for text in tool.descriptions[-2:]}


def test_a_refusal_is_right_where_the_pool_lacks_the_function():
    tasks = open_projects().tasks("train", 1200)
    refused = [task for task in tasks if isinstance(task.verifier, RefusalVerifier)]
    assert 0.05 < len(refused) / 1200 < 0.11
    assert all(is_refusal(task.oracle_turn.answer) and not task.oracle_turn.steps for task in refused)


def test_levels_choose_by_steps():
    assert {len(task.oracle_turn.steps) for task in open_projects().tasks("train", 40, levels=(2,))} == {2}
    with pytest.raises(UnknownTask, match="levels are 1, 2, 3"):
        open_projects().tasks("train", 4, levels=(4,))


def test_an_unknown_project_is_named():
    with pytest.raises(UnknownTask, match="no project 'nowhere'"):
        open_source("projects:nowhere")


def test_a_function_takes_a_thing_as_people_write_it_and_rejects_another():
    data = load_project(list_projects()[0])
    tool = data.tools[0]
    thing = data.things[tool.takes][0]
    assert look_up(data.name, 3, tool.name, f" {thing.upper()} ") == look_up(data.name, 3, tool.name, thing)
    with pytest.raises(BadCall, match="there is no"):
        look_up(data.name, 3, tool.name, "the moon")
    config = {"project": data.name, "seed": 3, "function": tool.name, "parameter": "which", "hint": "the name"}
    worker = open_worker(WorkerSpec(name="f", kind="project", description="x", config=config))
    assert worker.parameters["properties"] == {"which": {"type": "string", "description": "the name"}}


@pytest.mark.parametrize("wrong", [{"project": "../worlds/clinic"}, {"function": "nowhere"}])
def test_a_pool_with_an_unknown_project_or_function_is_an_error_that_names_it(wrong):
    data = load_project(list_projects()[0])
    config = {"project": data.name, "seed": 3, "function": data.tools[0].name, "parameter": "x"} | wrong
    with pytest.raises(InvalidPool, match=next(iter(wrong.values()))):
        open_worker(WorkerSpec(name="f", kind="project", description="x", config=config))


@pytest.mark.parametrize(
    ("works", "calls"),
    [
        (("evaluate",), ["evaluate"]),
        (("add", "subtract", "multiply", "divide"), ["add", "multiply"]),
        (("arithmetic",), ["arithmetic", "arithmetic"]),
    ],
)
def test_a_sum_goes_to_a_calculator_or_is_taken_apart(works, calls):
    parts = {part: part for part in ("expression", "first", "operation", "second", "a", "b")}
    writer = PlanWriter({work: Function(work, parts, work) for work in works}, project="", seed=0, gaps={"n": "4"})
    writer.write([Sum("({n} + 2) * 1.5")])
    assert [step.worker for step in writer.steps] == calls
    assert writer.values[len(calls)] == 9


def read_questions(file: str) -> list[str]:
    return [row[0] for rows in yaml.safe_load((BENCH / file).read_text(encoding="utf-8")).values() for row in rows]


# The plainest questions, put as everybody puts them, of other things. No further one may come to be among the texts.
PLAINEST = {
    "own_questions.yaml": {
        "what does a kilo of salmon cost", "what do 3 kilos of lentils cost", "how long is spider",
        "how much does a harness weigh", "what do a rope and a helmet weigh together",
    },
    "fresh_questions.yaml": {
        "what do 6 jars of heather honey cost", "who drives the red line today", "how long is the green line",
        "what does a ticket cost",
    },
    "blind_questions.yaml": {"how heavy is the marlin", "what did i pay for the cabbages"},
}  # fmt: skip


@pytest.mark.parametrize("file", PLAINEST)
def test_no_text_is_a_question_that_measures_readers_on_people_s_pools(file):
    """With any words in the gaps. What measures must not be learnt from."""
    patterns = [
        re.compile(re.sub(r"\\\{\w+\\\}", r"\\S+(?: \\S+){0,2}", re.escape(normalize_query(text).casefold())))
        for name in list_projects()
        for question in load_project(name).questions
        for text in question.texts
        if len(re.sub(r"\{\w+\}", "", text).split()) > 3
    ]
    questions = [normalize_query(question).casefold() for question in read_questions(file)]
    same = {text for text in questions if any(pattern.fullmatch(text) for pattern in patterns)}
    assert same == PLAINEST[file]


def test_no_project_is_of_a_domain_that_measures():
    measured = {name for name in list_worlds() if load_world(name).held_out}
    measured |= {
        file.stem for folder in ("own_pools", "fresh_pools", "blind_pools") for file in (BENCH / folder).glob("*.py")
    }
    assert not measured & set(list_projects())


def test_ten_projects_are_held_out_and_only_test_has_them():
    assert len(HELD_OUT) == 10
    tasks = open_source("projects:held_out").tasks("test", 200)
    assert {spec.config["project"] for task in tasks for spec in task.pool.workers if spec.kind == "project"} == {
        *HELD_OUT
    }
    learnt = open_projects().tasks("train", 800)
    assert not {spec.config.get("project") for task in learnt for spec in task.pool.workers} & {*HELD_OUT}
    with pytest.raises(UnknownTask, match="to learn from"):
        open_projects(HELD_OUT[0])


def test_kinds_are_told_apart_from_their_numbers():
    assert all(not kind[-1].isdigit() for name in list_projects() for kind in load_project(name).things)
    assert KIND.fullmatch("flower2")[1] == "flower"

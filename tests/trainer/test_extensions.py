"""Rewards and task sources of other packages: what an entry point adds, and what a bad one breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[2]
TOY = '''
"""A toy package: a reward, a generated family and two sources."""

from random import Random

from orchestrator.plan import Step, Turn
from trainer.tasks.suite import Suite, assign_split
from trainer.tasks.verifier import NumberWithin


def brevity(sample, group):
    """1 for a single step, less for more."""
    return 1 / max(1, sample.totals.steps)


def boom(sample, group):
    raise KeyError("steps")


class Sums(Suite):
    name = "sums"
    description = "Sums of two numbers."
    workers = ("calculator",)
    levels = (1,)

    def draw(self, level, split, random: Random):
        while True:
            pair = random.randint(1, 999), random.randint(1, 999)
            if assign_split(f"sum {pair}") == split:
                return pair

    def write(self, pair):
        return f"Toy sum: {pair[0]} and {pair[1]}?"

    def read(self, query):
        if query == "explode":
            raise RuntimeError("boom")
        words = query.split()
        return (int(words[2]), int(words[4].rstrip("?"))) if words[:2] == ["Toy", "sum:"] else None

    def level_of(self, pair):
        return 1

    def uses_new_words(self, pair):
        return False

    def solve(self, pair):
        step = Step(1, "calculator", {"expression": f"{pair[0]} + {pair[1]}"})
        return NumberWithin(sum(pair), 0.0), Turn((step,), "$1")


def riddles(size):
    """Riddles with one-word answers."""
    yield from ((f"Riddle {number}: what is {number} squared?", number**2) for number in range(int(size or 40)))
    plan = {"steps": [{"worker": "calculator", "arguments": {"expression": "2 + 2"}}], "answer": "$1"}
    yield {"query": "Two and two?", "answer": 4, "split": "train", "plan": plan}


def wrong_rows():
    return [("fine?", 1), "no pair"]


def failing():
    raise RuntimeError("the server is down")
'''
REWARDS = ("brevity = toy:brevity", "boom = toy:boom")
SOURCES = ("sums = toy:Sums", "riddles = toy:riddles", "wrong = toy:wrong_rows", "failing = toy:failing")


def install(site: Path, package: str, module: str = "", **entries: tuple[str, ...]) -> None:
    """Lay down what pip leaves of a wheel: a module and its metadata."""
    if module:
        (site / f"{package}.py").write_text(module)
    metadata = site / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [line for group, rows in entries.items() for line in (f"[podium.{group}]", *rows)]
    (metadata / "entry_points.txt").write_text("\n".join((*lines, "")))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder of packages: a good one, and four bad ones around it."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, "toy", TOY, rewards=REWARDS, tasks=SOURCES)
    install(folder, "broken", "raise RuntimeError('no luck')", rewards=("luck = broken:x",), tasks=("luck = broken:x",))
    install(folder, "clash", rewards=("accuracy = toy:brevity",), tasks=("ledger = toy:Sums", "file = toy:riddles"))
    install(folder, "twin", rewards=("brevity = toy:boom",))
    install(folder, "toy_number", "N = 42", rewards=("n = toy_number:N",), tasks=("n = toy_number:N",))
    return folder


def run(site: Path, code: str) -> str:
    """What a program prints where these packages are installed."""
    path = os.pathsep.join((str(site), str(ROOT)))
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "300", "PODIUM_HOME": str(site / "home")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=site, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


ORACLE = """
import asyncio, json, sys
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks.registry import open_source, recognize_task

async def evaluate(tasks):
    async with live_pool(starter_pool()) as pool:
        return await evaluate_orchestrator("oracle", tasks, pool)
"""


def test_the_oracle_solves_a_family_of_another_package(site):
    code = """
tasks = open_source("sums,ledger").tasks("test", 8)
print(sorted({task.ref.family for task in tasks}), asyncio.run(evaluate(tasks)).mean)
print(recognize_task("Toy sum: 2 and 3?").expected, recognize_task("explode"))
"""
    assert run(site, ORACLE + code).splitlines() == ["['ledger', 'sums'] 1.0", "5 None"]


def test_pairs_of_question_and_answer_are_a_source(site):
    code = """
source = open_source("riddles:100")
parts = {split: source.tasks(split, 1000) for split in ("train", "validation", "test")}
print([len(tasks) for tasks in parts.values()])
print(parts["train"] == open_source("riddles:100").tasks("train", 1000), len(open_source("riddles").tasks("train", 99)))
planned = [task for task in parts["train"] if task.oracle_turn]
print(asyncio.run(evaluate(planned)).mean, parts["test"][0].verifier.accepts(str(parts["test"][0].expected)))
"""
    counts, draws, solved = run(site, ORACLE + code).splitlines()
    assert sum(json.loads(counts)) == 101 and min(json.loads(counts)) > 5
    assert draws.startswith("True ") and solved == "1.0 True"


@pytest.mark.slow
def test_commands_list_and_show_them(site):
    code = """
import json
from typer.testing import CliRunner
from trainer.__main__ import app

def trainer(*arguments):
    return " ".join(CliRunner().invoke(app, arguments, catch_exceptions=False).stdout.replace("│", " ").split())

print(trainer("tasks", "list"))
print(trainer("tasks", "show", "--help"))
print(json.loads(trainer("tasks", "show", "--source", "riddles:3", "--split", "train", "--json"))["family"])
print(json.loads(trainer("tasks", "show", "--family", "sums", "--json"))["plan"]["answer"])
"""
    listed, text, of_source, of_family = run(site, code).splitlines()
    assert "sums" in listed and "riddles[:ARGUMENT] toy 1.0 Riddles with one-word answers." in listed
    assert "riddles[:ARGUMENT]" in text and "workshop, sums" in text
    assert (of_source, of_family) == ("riddles", "$1")


@pytest.mark.slow
def test_the_recipes_form_suggests_them(site):
    code = """
import json
from trainer.recipe_schema import build_recipe_schema
parts = build_recipe_schema()["$defs"]
print(json.dumps([parts["RewardSettings"]["properties"]["term"], parts["TaskSettings"]["properties"]["source"]]))
"""
    term, source = json.loads(run(site, code))
    assert term["examples"] == [
        "accuracy",
        "format",
        "diversity",
        "efficiency",
        "binding",
        "parallelism",
        "finish",
        "readable",
        "credit",
        "boom",
        "brevity",
    ]
    assert "riddles" in source["examples"] and "sums" in ",".join(source["examples"])


def test_a_reward_of_another_package_scores_a_group(site):
    code = """
import asyncio
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import make_orchestrator
from trainer.methods.grpo.rewards import load_rewards, make_sample, score_group
from trainer.methods.grpo.section import RewardSettings
from trainer.tasks.registry import open_source

async def sample(pool, task):
    episode = await run_episode(EpisodeSpec(task.query), make_orchestrator("oracle", pool, task.oracle_turn), pool)
    return make_sample(task, episode, pool.pool.limits)

async def score(*names):
    terms = load_rewards([RewardSettings(term=name) for name in names])
    async with live_pool(starter_pool()) as pool:
        tasks = [*open_source("sums").tasks("train", 1), *open_source("ledger").tasks("train", 1, levels=(2,))]
        return score_group([await sample(pool, task) for task in tasks], terms)

print(asyncio.run(score("brevity", "format")))
try:
    asyncio.run(score("boom"))
except Exception as error:
    print(type(error).__name__, error)
"""
    scores, failure = run(site, code).splitlines()
    assert scores == "[{'brevity': 1.0, 'format': 1.0}, {'brevity': 0.25, 'format': 1.0}]"
    assert failure == "TrainingFailed the reward boom of toy 1.0 failed: KeyError: 'steps'"


def test_a_bad_source_is_named_with_its_package(site):
    sentences = {
        "luck": "'luck' (podium.tasks) of broken 1.0 cannot be loaded: RuntimeError: no luck",
        "n": "'n' (podium.tasks) of toy_number 1.0 cannot be loaded: TypeError: toy_number:N is a int, not a Suite",
        "wrong": "the source wrong of toy 1.0 cannot be used: wrong, row 2: give (query, answer)",
        "failing": "the source failing of toy 1.0 failed: RuntimeError: the server is down",
        "sums:9": "there is no source of tasks 'sums:9'; use families",
        "file": "there is no source of tasks 'file'; use families",
    }
    code = f"""
from trainer.errors import TrainerError
from trainer.tasks.registry import open_source
for name in {list(sentences)}:
    try:
        open_source(name)
    except TrainerError as error:
        print(error)
"""
    for line, sentence in zip(run(site, code).splitlines(), sentences.values(), strict=True):
        assert sentence in line


@pytest.mark.slow
def test_bad_entry_points_leave_the_others_as_they_are(site):
    code = """
from trainer.methods.grpo.rewards import REWARDS, accuracy_reward, explain_missing_reward
from trainer.tasks.registry import PROVIDERS, SUITES, open_source
assert REWARDS["accuracy"].function is accuracy_reward
assert type(SUITES["ledger"]).__name__ == "Joined" and PROVIDERS["file"].argument == ":PATH"
for problem in (*REWARDS.problems.values(), *PROVIDERS.problems.values()):
    print(problem)
print(explain_missing_reward("luck"))
"""
    text = run(site, code)
    for sentence in (
        "'accuracy' (podium.rewards) of clash 1.0 takes the name of a built-in one",
        "'brevity' (podium.rewards) of twin 1.0 takes a name that toy 1.0 has taken",
        "'n' (podium.rewards) of toy_number 1.0 cannot be loaded: TypeError: toy_number:N is a int, not a function",
        "'file' (podium.tasks) of clash 1.0 takes the name of a built-in one",
        "'ledger' (podium.tasks) of clash 1.0 gives a row named 'sums'",
        "the reward 'luck' cannot be used: the entry point 'luck' (podium.rewards) of broken 1.0 cannot be loaded",
    ):
        assert sentence in text

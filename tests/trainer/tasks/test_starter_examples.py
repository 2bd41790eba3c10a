"""The examples of the starter pool: copies of generated tasks, which stand where their package is not installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainer.cli.jobs import _describe
from trainer.errors import UnknownTask
from trainer.recipe import load_recipe
from trainer.tasks import find_task, recognize_task
from trainer.tasks.registry import PROVIDERS, explain_missing_package, find_missing_package, list_names, open_source
from trainer.tasks.starter_examples import list_examples
from trainer.tasks.task import Task


@pytest.fixture
def without_packages(monkeypatch):
    """The table of sources as it is where no package adds to it."""
    for name in [name for name in PROVIDERS if PROVIDERS.package_of(name)]:
        monkeypatch.delitem(PROVIDERS._extensions.rows, name)


def without_needs(task: Task) -> Task:
    steps = tuple(replace(step, need="") for step in task.oracle_turn.steps)
    return replace(task, oracle_turn=replace(task.oracle_turn, steps=steps))


@pytest.mark.parametrize("example", list_examples(), ids=lambda task: f"{task.ref.family}-{task.ref.level}")
def test_an_example_is_the_generated_task(example):
    ref = example.ref
    assert without_needs(find_task(ref.family, ref.level, ref.split, ref.index)) == example


def test_without_the_package_the_examples_stand_for_their_families(without_packages):
    example = list_examples()[0]
    assert find_task("itinerary", 3, "test", 0) == example
    recognized = recognize_task(f" {example.query} ")
    assert recognized.verifier == example.verifier and recognized.oracle_turn == example.oracle_turn
    assert recognize_task("Which family is this?") is None
    assert open_source("examples").tasks("train", 1)[0].oracle_turn is not None


@pytest.mark.parametrize("source", ["ledger", "worlds:held_out", "examples + casual*2", "suite:nope,atlas"])
def test_a_missing_source_names_its_package_and_the_command(without_packages, source):
    with pytest.raises(UnknownTask) as error:
        open_source(source).tasks("train", 1)
    name = next(name for name in list_names(source) if name not in ("examples", "nope"))
    assert str(error.value) == (
        f"the task source {name!r} comes with the package podium-lessons, which is not installed. Install it with: "
        "pip install ./lessons, in a checkout of Podium"
    )
    assert find_missing_package([source]) == "podium-lessons"


def test_a_missing_family_names_its_package_too(without_packages):
    with pytest.raises(UnknownTask, match=r"'ledger' comes with the package podium-lessons"):
        find_task("ledger", 3, "test", 77)


def test_a_preset_says_what_it_needs(without_packages):
    recipes = {name: _describe(load_recipe(name)) for name in ("reader-cpu", "own-pool")}
    assert recipes["reader-cpu"].endswith("(needs podium-lessons, which is not installed)")
    assert "podium-lessons" not in recipes["own-pool"]


def test_nothing_is_missing_where_the_package_is_installed():
    sources = ("worlds*5 + everyday:problems*2 + ledger,atlas", "examples", "file:a.jsonl", "nonsense")
    assert [explain_missing_package(source) for source in sources] == [""] * 4
    assert find_missing_package(sources) == ""

"""What a recipe needs beside Podium wherever it runs: rented machines get it, nodes of a cluster are asked for it."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.cluster.node import report_node
from trainer.cluster.work import NodeReport, NodeRequest
from trainer.recipe import Recipe, parse_recipe
from trainer.recipe_packages import list_recipe_packages
from trainer.rented.bundle import build_bundle, build_command, engine_path

WORLD = WorkerSpec(name="w", kind="everyday", description="d", config={"work": "convert"})


def make_recipe(source: str, **sections: object) -> Recipe:
    return parse_recipe(json.dumps({"name": "job", "tasks": {"source": source}, "sft": {}, **sections}))


@pytest.mark.parametrize("source", ["ledger", "file:a.jsonl + worlds*3", "suite:atlas,forge", "everyday:problems"])
def test_a_source_of_the_lessons_needs_their_package(source):
    assert list_recipe_packages(make_recipe(source)) == ("podium-lessons",)


def test_unseen_and_measured_tasks_and_workers_need_it_too():
    plain = "practice:starter"
    assert list_recipe_packages(make_recipe(plain), [starter_pool()]) == ()
    assert list_recipe_packages(make_recipe(plain, evaluate={"source": "dossier"})) == ("podium-lessons",)
    unseen = {"unseen": "worlds:held_out"}
    assert list_recipe_packages(make_recipe(plain, pools=unseen, model={"prompt": "full"})) == ("podium-lessons",)
    assert list_recipe_packages(make_recipe(plain), [Pool(name="p", workers=(WORLD,))]) == ("podium-lessons",)


def test_a_kind_that_is_not_there_is_no_reason_to_guess():
    strange = Pool(name="p", workers=(WORLD.model_copy(update={"kind": "stranger"}),))
    with pytest.raises(InvalidPool, match="there is no kind 'stranger'"):
        list_recipe_packages(make_recipe("ledger"), [strange])


@pytest.mark.medium
def test_a_rented_machine_gets_a_package_that_no_index_has():
    recipe = make_recipe("ledger", where="hf:l4x1")
    packages = list_recipe_packages(recipe)
    bundle = build_bundle("job", recipe, [], packages)
    assert b"podium-lessons" not in bundle["job/requirements.txt"]
    with zipfile.ZipFile(io.BytesIO(bundle[engine_path(packages)])) as archive:
        names = archive.namelist()
    assert "podium_lessons/data/worlds/orchard.yaml" in names and "trainer/__main__.py" in names
    assert any(name.startswith("podium_lessons-") and name.endswith("/entry_points.txt") for name in names)
    assert engine_path(packages) in " ".join(build_command("job", 1, packages))
    plain = build_bundle("job", recipe, [], ())
    with zipfile.ZipFile(io.BytesIO(plain[engine_path(())])) as archive:
        assert not any("podium_lessons" in name for name in archive.namelist())


def test_a_node_says_which_package_it_lacks_or_has_in_another_version():
    def ask(*pins: str) -> tuple[str, ...]:
        request = NodeRequest(pools=(), packages=pins).model_dump_json()
        return NodeReport.model_validate_json(report_node(request)).problems

    assert ask() == () and ask("podium-lessons==0.1.0") == ()
    (missing,) = ask("no-such-package==1.0")
    assert "does not have the package no-such-package" in missing and "no-such-package==1.0" in missing
    (other,) = ask("podium-lessons==0.0.1")
    assert "it has podium-lessons==0.1.0, and this job uses podium-lessons==0.0.1" in other

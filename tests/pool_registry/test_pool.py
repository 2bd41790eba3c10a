"""Pools: immutable content with a hash, export and import, every problem told."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.imports import FreeNames
from pool_registry.pool import Limits, Pool, check_pool, export_pool, import_pool
from pool_registry.pools.pool_diff import diff
from pool_registry.starter import starter_pool
from pool_registry.worker import NAME_PATTERN, WorkerSpec

CALCULATOR = WorkerSpec(name="calc", kind="calculator", description="adds")


def test_the_hash_follows_the_content():
    pool = Pool(name="p", workers=(CALCULATOR,))
    assert pool.hash == Pool(name="p", workers=(CALCULATOR,)).hash
    assert pool.hash != pool.with_worker(CALCULATOR.model_copy(update={"name": "other"})).hash
    assert pool.hash != pool.model_copy(update={"limits": Limits(max_rounds=1)}).hash


def test_an_exported_pool_comes_back_equal():
    pool = starter_pool()
    assert import_pool(export_pool(pool)) == pool


def test_the_starter_pool_is_valid():
    check_pool(starter_pool())


@given(st.text() | st.binary())
def test_any_text_imports_or_says_why_not(text):
    with pytest.raises(InvalidPool):
        import_pool(text)


def test_every_problem_of_a_pool_file_is_told_with_its_place():
    document = json.loads(export_pool(Pool(name="p", workers=(CALCULATOR,))))
    document["workers"] = [
        {**document["workers"][0], "kind": "nonsense"},
        {**document["workers"][0], "config": {"wrong": 1}},
    ]
    with pytest.raises(InvalidPool) as caught:
        import_pool(json.dumps(document))
    places = [where for where, _ in caught.value.problems]
    assert places == ["workers.0.kind", "workers.1.name", "workers.1.config.wrong"]


@pytest.mark.parametrize("name", ["", "Two Words", "9lives", "x" * 49, "ünï"])
def test_names_that_plans_could_not_write_are_refused(name):
    with pytest.raises(ValueError, match="name"):
        WorkerSpec(name=name, kind="calculator", description="d")


def test_editing_needs_an_existing_worker():
    with pytest.raises(PoolNotFound):
        Pool(name="p").without_worker("nobody")


def test_a_wrong_worker_among_many_is_refused_before_it_is_stored():
    pool = Pool(name="p").with_workers([WorkerSpec(name="a", kind="no_such_kind", description="d")])
    with pytest.raises(InvalidPool, match="no_such_kind"):
        check_pool(pool)


def test_a_name_that_is_used_twice_is_refused_at_once():
    spec = WorkerSpec(name="a", kind="calculator", description="d")
    with pytest.raises(InvalidPool, match="used twice"):
        Pool(name="p").with_workers([spec, spec])


def test_names_that_many_want_are_numbered_without_trying_each_again():
    names, start = FreeNames(), time.thread_time()
    chosen = [names.choose("getWeather", "home") for _ in range(20_000)]
    assert chosen[:2] == ["home_get_weather", "home_get_weather_2"] and len(set(chosen)) == 20_000
    assert all(re.fullmatch(NAME_PATTERN, name) for name in chosen)
    assert time.thread_time() - start < 1


JUDGE = WorkerSpec(
    name="judge",
    kind="chat",
    description="grades",
    judge_only=True,
    config={"base_url": "https://models.example.com/v1", "model": "m"},
)


def test_a_judge_is_in_no_list_of_what_may_be_called():
    pool = Pool(name="p", workers=(CALCULATOR, JUDGE))
    check_pool(pool)
    assert pool.enabled == (CALCULATOR,) and pool.agents() == () and pool.switched_on == (CALCULATOR, JUDGE)
    assert import_pool(export_pool(pool)) == pool
    assert [change.field for change in diff(pool, Pool(name="p", workers=(CALCULATOR, answering(JUDGE))))] == [
        "judge_only"
    ]


def test_the_hash_of_a_pool_without_judges_is_that_of_older_versions():
    content = json.loads(export_pool(Pool(name="p", workers=(CALCULATOR,))))
    del content["workers"][0]["judge_only"]
    assert import_pool(json.dumps(content)).hash == Pool(name="p", workers=(CALCULATOR,)).hash
    assert Pool(name="p", workers=(JUDGE,)).hash != Pool(name="p", workers=(answering(JUDGE),)).hash


@pytest.mark.parametrize(
    ("worker", "place", "sentence"),
    [
        (CALCULATOR.model_copy(update={"judge_only": True}), "judge_only", "only a language model can judge"),
        (CALCULATOR.model_copy(update={"fallback": "judge"}), "fallback", "which only judges"),
        (JUDGE.model_copy(update={"name": "other", "fallback": "judge"}), "fallback", "nothing takes over for a judge"),
        (
            JUDGE.model_copy(update={"name": "other", "judge_only": False, "summarizer": "judge"}),
            "summarizer",
            "no enabled language model",
        ),
        (
            JUDGE.model_copy(
                update={"name": "other", "judge_only": False, "config": {**JUDGE.config, "tools": ["judge"]}}
            ),
            "config.tools",
            "judge only judges",
        ),
    ],
)
def test_a_judge_does_nothing_else_for_other_workers(worker, place, sentence):
    with pytest.raises(InvalidPool) as caught:
        check_pool(Pool(name="p", workers=(worker, JUDGE)))
    [(where, what)] = caught.value.problems
    assert where == f"workers.0.{place}" and sentence in what


def answering(spec: WorkerSpec) -> WorkerSpec:
    """A judge as a worker that plans may call."""
    return spec.model_copy(update={"judge_only": False})

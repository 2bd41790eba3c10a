"""The finalizer of a pool: one of its agents, or a sentence that says why not; and it goes along with the pool."""

from __future__ import annotations

import json

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.pool import NO_FINALIZER, Limits, Pool, check_pool, export_pool, import_pool, mend_finalizer
from pool_registry.portable_pool import travellers
from pool_registry.wants import disarm_pool
from pool_registry.worker import WorkerSpec
from trainer.tasks.pool_conditions import apply_condition

CALCULATOR = WorkerSpec(name="calc", kind="calculator", description="Computes.")
WRITER = WorkerSpec(
    name="writer",
    kind="chat",
    description="Writes.",
    config={"base_url": "https://models.example.com/v1", "model": "m"},
)


def a_pool(*workers: WorkerSpec, finalizer: str = "writer") -> Pool:
    return Pool(name="p", workers=(CALCULATOR, *workers), limits=Limits(finalizer=finalizer))


def test_a_pool_with_a_finalizer_is_saved_and_read_again():
    pool = a_pool(WRITER)
    check_pool(pool)
    assert import_pool(export_pool(pool)) == pool
    assert pool.hash != a_pool(WRITER, finalizer=NO_FINALIZER).hash


def test_the_hash_of_a_pool_without_one_is_that_of_older_versions():
    content = json.loads(export_pool(a_pool(WRITER, finalizer=NO_FINALIZER)))
    del content["limits"]["finalizer"]
    assert import_pool(json.dumps(content)).hash == a_pool(WRITER, finalizer=NO_FINALIZER).hash


@pytest.mark.parametrize(
    ("workers", "finalizer", "sentence"),
    [
        ((), "writer", "the finalizer 'writer' is not there; choose another agent, or off"),
        ((WRITER.model_copy(update={"enabled": False}),), "writer", "is switched off"),
        ((WRITER.model_copy(update={"judge_only": True}),), "writer", "only judges"),
        ((), "calc", "'calc' is no language model"),
        (
            (WRITER.model_copy(update={"config": {**WRITER.config, "tools": ["calc"]}}),),
            "writer",
            "has tools of its own",
        ),
    ],
)
def test_who_cannot_write_final_answers_is_refused(workers, finalizer, sentence):
    with pytest.raises(InvalidPool) as refusal:
        check_pool(a_pool(*workers, finalizer=finalizer))
    ((where, what),) = refusal.value.problems
    assert where == "limits.finalizer" and sentence in what
    assert mend_finalizer(a_pool(*workers, finalizer=finalizer)).limits.finalizer == NO_FINALIZER


def test_an_agent_that_is_the_finalizer_cannot_be_removed():
    with pytest.raises(InvalidPool, match="choose another agent, or off"):
        a_pool(WRITER).without_worker("writer")


def test_a_foreign_pool_arrives_without_a_finalizer_that_waits_for_consent():
    foreign = WRITER.model_copy(update={"config": {**WRITER.config, "skills": ["/skills/tone"]}})
    pool, wants, notes = disarm_pool(a_pool(foreign))
    assert "writer" in wants and pool.limits.finalizer == NO_FINALIZER
    assert notes == ("writer, which is off, no longer writes the final answers",)
    check_pool(pool)


def test_a_published_pool_keeps_its_finalizer_where_that_goes_along():
    assert travellers(a_pool(WRITER)).pool.limits.finalizer == "writer"
    stays = WRITER.model_copy(update={"config": {**WRITER.config, "skills": ["/skills/tone"]}})
    assert travellers(a_pool(stays)).pool.limits.finalizer == NO_FINALIZER


@pytest.mark.parametrize("condition", ["renamed", "seen", "distractors", "flaky"])
def test_in_another_condition_it_is_the_same_agent(condition):
    pool, renaming = apply_condition(condition, a_pool(WRITER), 3)
    assert pool.limits.finalizer == renaming.get("writer", "writer")
    check_pool(pool)


def test_without_its_agent_a_condition_has_none():
    pool, _ = apply_condition("without:writer", a_pool(WRITER))
    assert pool.limits.finalizer == NO_FINALIZER

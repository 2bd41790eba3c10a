"""Needs find the worker that serves them, also in a pool under other names and in other words."""

from __future__ import annotations

import pytest

from orchestrator.reader.bind_needs import list_candidates, rank_workers
from orchestrator.reader.cards import format_listed
from orchestrator.reader.needs import Need, quote_question
from orchestrator.retrieval import sentence_vectors
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Pool
from pool_registry.schemas.output_check import Output
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.tasks.pool_conditions import apply_condition

pytestmark = pytest.mark.medium

NEEDS = {
    "evaluate an arithmetic expression": "calculator",
    "convert units of measure": "units",
    "distance between two airports": "great_circle",
    "find a passage about a country": "atlas_search",
    "the number in a passage": "reader",
    "molar mass of a compound": "elements",
    "business days between two dates": "calendar",
    "exchange rate on a day": "fx_desk",
}


@pytest.mark.parametrize("condition", ["seen", "renamed"])
def test_needs_find_their_workers_whatever_these_are_called(condition):
    pool, renaming = apply_condition(condition, starter_pool(), 3)
    workers = list(open_live_pool(pool).workers.values())
    bound = {need: rank_workers(Need(need), workers)[0].worker for need in NEEDS}
    right = [need for need, name in NEEDS.items() if bound[need] == renaming.get(name, name)]
    assert len(right) >= len(NEEDS) - 1, bound


def test_a_need_finds_the_worker_that_returns_the_field_it_names():
    def make(name: str, about: str, *fields: str) -> WorkerSpec:
        schema = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
        output = Output(json_schema=schema) if fields else None
        return WorkerSpec(name=name, kind="calculator", description=about, output=output)

    def measure(*fields: str) -> float:
        record, keeper = (
            make("record", "Record of an apple tree.", *fields),
            make("keeper", "Looks up a keeper of trees.", "phone"),
        )
        workers = list(open_live_pool(Pool(name="p", workers=(keeper, record))).workers.values())
        return {bound.worker: bound.likeness for bound in list_candidates(Need("yield of a tree"), workers)}["record"]

    assert measure("row", "planted", "yield_kg", "keeper") > measure() + 0.1


def test_the_line_that_lists_a_worker_is_bound_to_it_whatever_its_vector_says(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    workers = list(open_live_pool(starter_pool()).workers.values())
    for worker in workers:
        assert rank_workers(Need(format_listed(worker).upper()), workers)[0].worker == worker.spec.name


def test_without_the_sentence_model_shared_words_decide(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    workers = list(open_live_pool(starter_pool()).workers.values())
    assert rank_workers(Need("distance between two airports"), workers)[0].worker == "great_circle"


def test_a_need_fits_no_worker_of_an_empty_pool_without_the_sentence_model(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    assert rank_workers(Need("count the days"), []) == []


def test_a_question_is_put_to_agents_alone_and_no_likeness_keeps_one_from_it():
    agent = WorkerSpec(
        name="helper", kind="chat", description="A language model.", config={"base_url": "http://h/v1", "model": "m"}
    )
    workers = list(open_live_pool(Pool(name="both", workers=(*starter_pool().enabled, agent))).workers.values())
    agents = {worker.spec.name for worker in workers if worker.role == "agent"}
    question = Need(quote_question("Why did a door frame of plywood crack?"))
    assert {bound.worker for bound in list_candidates(question, workers)} == agents
    assert "helper" not in {bound.worker for bound in list_candidates(Need("call my sister"), workers)}

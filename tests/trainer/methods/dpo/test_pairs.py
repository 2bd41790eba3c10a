"""Pairs of recorded runs: who is better, what is left out, and what both sides look like."""

from __future__ import annotations

import asyncio

import pytest

from pool_registry.calls.live_pool import live_pool
from trainer.methods.dpo.pairs import count_candidates, find_candidates, is_held_out, load_pairs, make_pairs, save_pairs
from trainer.methods.dpo.section import PairSettings
from trainer.recipe_sections import ModelSettings

ALL = PairSettings()


@pytest.fixture
def pairs(store):
    """The pairs of what was recorded."""

    def make(settings=ALL, measured=frozenset(), **model):
        async def run():
            async with live_pool(store.pools.latest("shop").pool) as live:
                return list(make_pairs(store, live, ModelSettings(**model), settings, measured))

        return asyncio.run(run())

    return make


def texts(side):
    return [message.content for message in side.messages if message.learn]


def test_a_right_run_is_better_than_a_wrong_one_of_the_same_query(record, pairs):
    record("What is 6 * 7?", "6 * 7", correct=True)
    record("What is 6 * 7", "6 + 7", correct=False)
    record("What is 2 + 2?", "2 + 3", correct=False)  # nothing to prefer to it
    (pair,) = pairs(prompt="query")
    assert "6 * 7" in texts(pair.better)[0] and "6 + 7" in texts(pair.worse)[0]
    assert pair.better.messages[0] == pair.worse.messages[0], "both begin with the same prompt"


def test_a_starred_run_is_better_than_another_but_not_than_a_right_one(record, store):
    record("q", "1 + 1", star=True)
    record("q", "1 + 2")
    record("q", "2 + 0", correct=True)
    assert count_candidates(store, "shop", PairSettings(source="stars")) == 1
    assert count_candidates(store, "shop", PairSettings(source="verdicts")) == 0
    record("p", "1 + 1", correct=False, star=True)
    record("p", "1 + 2")
    assert count_candidates(store, "shop", PairSettings(source="stars")) == 1, "a star does not outweigh a verdict"


def test_sides_that_write_the_same_make_no_pair(record, pairs):
    record("q", "1 + 1", correct=True)
    record("q", "1 + 1", correct=False)
    assert pairs(prompt="query") == []


@pytest.mark.parametrize("split", ["validation", "test"])
def test_runs_on_tasks_that_measure_are_never_learnt_from(record, pairs, split):
    record("q", "1 + 1", correct=True, split=split)
    record("q", "1 + 2", correct=False)
    assert pairs(prompt="query") == []


def test_a_query_that_the_job_is_measured_on_is_left_out(record, pairs):
    record("What is 1 + 1?", "1 + 1", correct=True)
    record("What is 1 + 1?", "1 + 2", correct=False)
    assert pairs(prompt="query", measured={"What is 1 + 1"}) == []


def test_one_query_does_not_make_all_pairs_and_each_run_is_used_evenly(record, store):
    better = {record("q", f"1 + {k}", correct=True) for k in range(3)}
    worse = {record("q", f"9 - {k}", correct=False) for k in range(3)}
    chosen = find_candidates(store, "shop", PairSettings(of_query=3))
    assert {pair.better for pair in chosen} == better and {pair.worse for pair in chosen} == worse
    assert len(find_candidates(store, "shop", PairSettings(of_query=9, most=5))) == 5


def test_runs_of_another_pool_make_no_pair(record, store):
    record("q", "1 + 1", correct=True)
    record("q", "1 + 2", correct=False)
    assert count_candidates(store, "starter", ALL) == 0


def test_a_call_that_failed_counts_on_the_worse_side(record, pairs):
    record("q", "1 + 1", correct=True)
    record("q", "1 +", correct=False)  # the worker refuses it: context for SFT, what is to be unlearnt here
    (pair,) = pairs(prompt="query")
    assert any("1 +" in text for text in texts(pair.worse))


def test_a_reader_is_shown_the_same_opening_on_both_sides(record, pairs):
    record("What is 6 * 7?", "6 * 7", correct=True)
    record("What is 6 * 7?", "6 + 7", correct=False)
    (pair,) = pairs(prompt="reader")
    first = next(place for place, message in enumerate(pair.better.messages) if message.role == "assistant")
    assert pair.better.messages[:first] == pair.worse.messages[:first]
    assert texts(pair.better)[-1] != texts(pair.worse)[-1]


def test_a_query_stays_on_its_side_of_the_split():
    queries = [f"query {k}" for k in range(400)]
    held_out = [query for query in queries if is_held_out(query, 0.2)]
    assert 50 < len(held_out) < 110 and all(is_held_out(f"{query} ?", 0.2) for query in held_out)
    assert not any(is_held_out(query, 0) for query in queries)


def test_pairs_are_read_as_they_were_written(record, pairs, tmp_path):
    record("q", "1 + 1", correct=True)
    record("q", "1 + 2", correct=False)
    made = pairs(prompt="query")
    save_pairs(tmp_path / "pairs.jsonl", made)
    assert load_pairs(tmp_path / "pairs.jsonl") == made

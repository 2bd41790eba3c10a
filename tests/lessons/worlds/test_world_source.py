"""The source `worlds`: right plans on pools of their own, words kept for testing, refusals where a tool is missing."""

from __future__ import annotations

import asyncio
import re
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.reader.refusal import is_refusal, read_refused_need
from podium_lessons.scripts.check_worlds import list_failures
from podium_lessons.worlds.source import LEVEL_STEPS, WorldSource, open_worlds
from podium_lessons.worlds.word_banks import list_held_out_texts, list_learnt_texts, load_words
from podium_lessons.worlds.world_data import list_worlds, load_world
from pool_registry.pool import check_pool
from pool_registry.schemas.argument_schema import schema_problem
from trainer.errors import UnknownTask
from trainer.tasks.registry import open_source
from trainer.tasks.suite import SPLITS
from trainer.tasks.verifier import RefusalVerifier

HELD_OUT = tuple(name for name in list_worlds() if load_world(name).held_out)
LEARNT = tuple(name for name in list_worlds() if not load_world(name).held_out)


def list_pools(tasks):
    return [pool for pool, _ in groupby(task.pool for task in tasks)]


def list_descriptions(tasks):
    """The descriptions of the workers that banks describe; actions and agents have their own words."""
    return {
        worker.description
        for pool in list_pools(tasks)
        for worker in pool.workers
        if worker.kind != "chat" and worker.config.get("shape") != "action"
    }


def compile_templates(templates):
    """A pattern for what a template may become."""
    gaps = [re.sub(r"\b([Aa])\\ \\\{", r"\1n?\\ \\{", re.escape(text)) for text in templates]
    return re.compile("|".join(re.sub(r"\\\{\w+\\\}", ".+", text) for text in gaps), re.IGNORECASE)


def matches(pattern, description):
    return pattern.fullmatch(description) or pattern.fullmatch(re.sub(r", in [^,]+\.$", ".", description))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(SPLITS), st.sampled_from([LEARNT, HELD_OUT]))
def test_every_reference_plan_gives_the_answer_of_the_tables(seed, split, domains):
    tasks = WorldSource(domains).tasks(split, 24, seed)
    assert asyncio.run(list_failures(tasks)) == []  # run for real: schemas, access lists and answers


@pytest.mark.medium
@pytest.mark.parametrize("domain", list_worlds())
def test_every_domain_has_right_plans_on_every_level(domain):
    tasks = WorldSource([domain]).tasks("train", 40)
    assert asyncio.run(list_failures(tasks)) == []
    assert {task.ref.level for task in tasks} == set(LEVEL_STEPS)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(SPLITS))
def test_plans_call_workers_of_their_pool_say_what_they_need_and_see_no_more(seed, split):
    for task in WorldSource(LEARNT).tasks(split, 24, seed):
        check_pool(task.pool)
        low, high = LEVEL_STEPS[task.ref.level]
        assert not task.oracle_turn.steps or low <= len(task.oracle_turn.steps) <= high
        for step in task.oracle_turn.steps:
            spec = task.pool.worker(step.worker)
            assert step.need and not re.search(r"[$@#]", step.need)
            assert spec.kind in ("extractor",) or set(step.access) == step.references
            if spec.kind == "world":
                schema = spec.config["arguments"]
                assert schema_problem(schema) == ""
                assert set(schema["required"]) == set(step.arguments)


def test_tasks_depend_on_split_and_seed_alone_and_fewer_are_the_first():
    source = WorldSource(LEARNT)
    tasks = source.tasks("train", 40, seed=3)
    again = WorldSource(LEARNT).tasks("train", 17, seed=3)
    assert [(task.query, task.pool, task.oracle_turn) for task in again] == [
        (task.query, task.pool, task.oracle_turn) for task in tasks[:17]
    ]
    assert {task.query for task in tasks}.isdisjoint(task.query for task in source.tasks("train", 40, seed=4))
    assert len({task.ref for task in tasks}) == 40


def test_four_tasks_share_a_pool_that_no_other_split_has():
    source = WorldSource(LEARNT)
    pools = {split: list_pools(source.tasks(split, 80)) for split in SPLITS}
    assert {split: len(names) for split, names in pools.items()} == dict.fromkeys(SPLITS, 20)
    names = [pool.name for split in SPLITS for pool in pools[split]]
    assert len(set(names)) == len(names)
    assert all(5 <= len(pool.workers) <= 30 for split in SPLITS for pool in pools[split])


@pytest.mark.medium
def test_the_words_of_the_test_split_are_never_learnt():
    words = load_words()
    held_out = compile_templates([text for bank in words.descriptions.values() for text in list_held_out_texts(bank)])
    learnt = compile_templates([text for bank in words.descriptions.values() for text in list_learnt_texts(bank)])
    test = list_descriptions(WorldSource(LEARNT).tasks("test", 120))
    assert [text for text in test if not matches(held_out, text)] == []
    for split in ("train", "validation"):
        seen = list_descriptions(WorldSource(LEARNT).tasks(split, 400))
        assert [text for text in seen if not matches(learnt, text)] == []
        assert seen.isdisjoint(test)


@pytest.mark.medium
def test_the_rule_and_the_verbs_that_are_held_out_stand_in_no_text_of_training():
    words = load_words()
    verbs = re.compile(rf"\b(?:{'|'.join(words.held_out_verbs)})\b", re.IGNORECASE)
    texts = [text for rule in words.rules if not rule.held_out for text in list_learnt_texts(rule.texts)]
    assert [text for text in texts if verbs.search(text)] == []

    def list_ratios(split):
        arguments = [dict(step.arguments) for task in WorldSource(LEARNT).tasks(split, 800) for step in
                     task.oracle_turn.steps]  # fmt: skip
        return [item for item in arguments if re.fullmatch(r"\$\d+ / \$\d+", str(item.get("expression")))]

    assert list_ratios("train") == [] and list_ratios("test")


def test_about_every_tenth_task_is_to_be_refused():
    tasks = WorldSource(LEARNT).tasks("train", 800)
    refused = [task for task in tasks if isinstance(task.verifier, RefusalVerifier)]
    assert 0.06 < len(refused) / len(tasks) < 0.15
    assert all(task.oracle_turn.steps == () and is_refusal(task.oracle_turn.answer) for task in refused)
    assert all(task.verifier.accepts(task.oracle_turn.answer) for task in refused)


def test_a_refusal_for_want_of_a_tool_names_a_need_that_no_plan_on_that_pool_has():
    tasks = open_source("worlds").tasks("train", 400)
    named = 0
    for _, group in groupby(tasks, key=lambda task: task.pool.name):
        turns = [task.oracle_turn for task in group]
        served = {step.need for turn in turns for step in turn.steps}
        unserved = {need for turn in turns if (need := read_refused_need(turn.answer))}
        named += len(unserved)
        assert not served & unserved
    assert named >= 15


def test_most_names_of_workers_say_nothing():
    words = load_words()
    workers = [worker for pool in list_pools(WorldSource(LEARNT).tasks("train", 400)) for worker in pool.workers]
    masked = [
        worker
        for worker in workers
        if re.fullmatch(rf"(?:{'|'.join(words.syllables)})+(_\d+)?", worker.name)
        or worker.name.rstrip("0123456789").split("_")[0] in {*words.nouns, *words.adjectives, *words.verbs}
    ]
    assert 0.45 < len(masked) / len(workers) < 0.8  # actions and natural names are the rest


def test_levels_are_numbers_of_steps():
    steps = [len(task.oracle_turn.steps) for task in WorldSource(LEARNT).tasks("train", 60, levels=(2,))]
    assert set(steps) <= {0, 3, 4}
    with pytest.raises(UnknownTask, match="the levels are 1, 2, 3, not 4"):
        WorldSource(LEARNT).tasks("train", 4, levels=(4,))


def test_held_out_domains_are_reached_by_that_name_only():
    assert open_worlds("held_out").domains == HELD_OUT
    assert open_worlds("").domains == LEARNT
    assert open_worlds("orchard").domains == ("orchard",)
    for argument in (HELD_OUT[0], "atlantis"):
        with pytest.raises(
            UnknownTask, match=rf"no domain '{argument}' to learn from; use held_out or some of: .*orchard"
        ):
            open_worlds(argument)


def test_every_shape_has_at_least_eight_wordings_besides_those_held_out_and_says_what_it_does_at_once():
    for shape, bank in load_words().descriptions.items():
        assert len(list_learnt_texts(bank)) >= 8, shape
        assert len(set(bank)) == len(bank), shape
        # a listing shows the first sentence
        assert [text for text in bank if re.match(r"(Input|Output)[^.]*\.", text) and "output" not in text] == []

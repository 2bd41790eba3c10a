"""Everyday questions: on pools of their own, exactly graded, solved by their own plan."""

from __future__ import annotations

import asyncio
import re
from random import Random

import pytest

from orchestrator.reader.refusal import is_refusal
from podium_lessons.casual.spell import spell_number
from podium_lessons.everyday.asks import ToolUse, add_days, make_turn, subtract_days
from podium_lessons.everyday.everyday_data import (
    HELD_OUT_TEXTS,
    load_combined,
    load_dates,
    load_ledger,
    load_money,
    load_places,
    load_refusals,
    load_sums,
    load_tools,
    load_units,
)
from podium_lessons.everyday.questions.companies import STATUS_WORDS
from podium_lessons.everyday.questions.countries import FACT_UNITS, FACT_WORDS
from podium_lessons.everyday.questions.draw_question import draw_question
from podium_lessons.everyday.questions.question import EverydayQuestion
from podium_lessons.everyday.solve_asks import solve_asks
from podium_lessons.everyday.style import LARGEST_WORD, write_query
from podium_lessons.wordings import expand_choices
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import check_pool
from pool_registry.starter import starter_pool
from pool_registry.starter.ledger import REGIONS
from pool_registry.workers import calendar
from trainer.errors import UnknownTask
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks.registry import open_source
from trainer.tasks.task import normalize_query
from trainer.tasks.verifier import RefusalVerifier

# The plainest questions of all are put as everybody puts them; their wordings are in the training bank, too.
PLAINEST = frozenset(
    normalize_query(query).casefold()
    for query in (
        "What is 17 * 23?", "Convert 5 miles to km", "How far is LHR from JFK?", "What is 15% of 80?",
        "What is the capital of France?", "What is the population of Germany?",
        "How many days are there between 2024-03-01 and 2024-05-10?", "What day of the week was July 4, 2024?",
        "What is the molar mass of water, H2O?", "What is the square root of 144?",
        "When it is 9:30 on 2025-04-20 in London, what time is it in Tokyo?",
        "Convert 100 degrees Fahrenheit to Celsius",
    )
)  # fmt: skip
NUMBERS = ("a", "b", "c", "d", "p", "v", "n", "w", "h", "t", "company", "year", "before")
FACT_TARGETS = [name for _, targets in FACT_UNITS.values() for name in targets]


def list_patterns() -> set[str]:
    """What every text that training draws from may become, in small letters; a gap holds up to five words."""
    texts = [text for bank in every_bank() for choice in bank[:-HELD_OUT_TEXTS] for text in expand_choices(choice)]
    units = load_units().units
    spellings = [name for group in (*units.groups, units) for unit in list_units(group) for name in unit]
    words = {"from": spellings, "to": spellings, "unit": FACT_TARGETS, "status": STATUS_WORDS, "region": REGIONS}
    words |= {"fact": [word for names in FACT_WORDS.values() for word in names], "which": ("first", "last")}
    number = rf"(?:[$€]?-?[0-9][0-9,.]*|{'|'.join(map(spell_number, range(LARGEST_WORD + 1)))})"

    def write_gap(match: re.Match[str]) -> str:
        if match[1] in NUMBERS:
            return number
        choices = "|".join(re.escape(word.casefold()) for word in words.get(match[1], ()))
        return f"(?:{choices})" if choices else r"\S+(?: \S+){0,2}"

    return {re.sub(r"\\\{(\w+)\\\}", write_gap, re.escape(normalize_query(text).casefold())) for text in texts}


def list_units(group) -> tuple[tuple[str, ...], ...]:
    return group.units if hasattr(group, "units") else group.temperatures


def every_bank() -> list[tuple[str, ...]]:
    sums, units, dates, places, ledger = load_sums(), load_units(), load_dates(), load_places(), load_ledger()
    sections = (
        sums.sums, sums.lists, load_money().sums, dates.dates, dates.zones, places.distances, places.airports,
        places.facts, places.compared, units.molecules, ledger.company, ledger.exchange,
        load_refusals().refusals, *load_combined().combined.values(),
    )  # fmt: skip
    return [bank.texts for section in sections for bank in section] + [units.units.texts, units.units.temperature_texts]


def draw(split: str, count: int, seed: int = 0, source: str = "everyday", **rest):
    return open_source(source).tasks(split, count, seed, **rest)


@pytest.mark.medium
def test_the_same_seed_draws_the_same_tasks():
    first, again, other = draw("train", 24), draw("train", 40)[:24], draw("train", 24, seed=1)
    assert first == again and [task.query for task in first] != [task.query for task in other]


def test_four_tasks_in_a_row_share_one_pool():
    tasks = draw("train", 80)
    hashes = [{task.pool.hash for task in tasks[place : place + 4]} for place in range(0, 80, 4)]
    assert all(len(group) == 1 for group in hashes) and len(set.union(*hashes)) > 15
    for task in tasks:
        check_pool(task.pool)
        assert set(task.workers) <= {spec.name for spec in task.pool.workers}


def test_half_of_the_pools_are_a_part_of_the_starter_pool():
    workers = {spec.name: spec for spec in starter_pool().workers}
    tasks = draw("train", 400)
    share = sum(all(workers.get(spec.name) == spec for spec in task.pool.workers) for task in tasks) / 400
    assert 0.35 < share < 0.65


@pytest.mark.medium
def test_splits_share_no_query():
    queries = {split: {task.query.casefold() for task in draw(split, 300)} for split in ("train", "validation", "test")}
    assert not queries["train"] & (queries["validation"] | queries["test"])
    assert not queries["validation"] & queries["test"]


def test_some_questions_are_to_be_refused_and_every_step_has_a_need():
    tasks = draw("train", 1200)
    refused = [task for task in tasks if isinstance(task.verifier, RefusalVerifier)]
    assert 0.04 < len(refused) / 1200 < 0.13
    assert all(is_refusal(task.oracle_turn.answer) and not task.oracle_turn.steps for task in refused)
    assert all(step.need for task in tasks for step in task.oracle_turn.steps)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_levels_are_numbers_of_steps(level):
    assert {min(max(len(task.oracle_turn.steps), 1), 3) for task in draw("train", 24, levels=(level,))} == {level}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("subject", "work"),
    [("sums", "evaluate an arithmetic"), ("problems", "evaluate an arithmetic"), ("units", "convert units")],
)
def test_a_subject_is_drawn_alone_and_its_tasks_are_no_others(subject, work):
    tasks = draw("train", 200, source=f"everyday:{subject}")
    planned = [task for task in tasks if task.oracle_turn.steps]
    assert 0.85 < len(planned) / 200 < 0.97
    works = [task for task in planned if any(step.need.startswith(work) for step in task.oracle_turn.steps)]
    assert len(works) > len(planned) / 2
    assert {task.ref.family for task in tasks} == {f"everyday:{subject}"}
    assert not {task.ref for task in tasks} & {task.ref for task in draw("train", 200)}


def test_what_there_is_not_is_said():
    with pytest.raises(UnknownTask, match=r"everyday:sums.*held_out"):
        open_source("everyday:nope")
    with pytest.raises(UnknownTask, match="everyday:sums has no questions of level 3"):
        draw("train", 4, source="everyday:sums", levels=(3,))
    with pytest.raises(UnknownTask, match="levels"):
        draw("train", 4, levels=(9,))
    with pytest.raises(UnknownTask, match="test"):
        open_source("everyday:held_out").tasks("train", 4)


@pytest.mark.medium
@pytest.mark.parametrize("split", ["train", "test"])
def test_reference_plans_earn_their_answers_through_the_real_workers(split):
    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", draw(split, 120, seed=7), pool)

    result = asyncio.run(scored())
    assert (result.mean, set(result.statuses), result.turn_errors) == (1.0, {"OK"}, 0)


def test_the_questions_written_by_hand_are_many_and_no_template_matches_them():
    tasks = open_source("everyday:held_out").tasks("test", 1000)
    queries = [normalize_query(task.query).casefold() for task in tasks]
    assert len(set(queries)) == len(queries) >= 200
    assert 15 <= sum(isinstance(task.verifier, RefusalVerifier) for task in tasks) <= 30
    patterns = [re.compile(pattern) for pattern in list_patterns()]
    assert len(patterns) > 500
    matches = {query for query in queries for pattern in patterns if pattern.fullmatch(query)}
    assert matches <= PLAINEST, sorted(matches - PLAINEST)


@pytest.mark.medium
def test_the_plans_of_the_questions_written_by_hand_earn_their_answers():
    tasks = open_source("everyday:held_out").tasks("test", 1000)

    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", tasks, pool)

    result = asyncio.run(scored())
    assert (result.mean, result.turn_errors) == (1.0, 0)


@pytest.mark.parametrize(
    ("ask", "request_text", "days"),
    [
        (add_days("2024-03-01", 2, "weeks"), "2024-03-01 plus 2 weeks", 14),
        (subtract_days("2024-03-15", 2, "weeks"), "2024-03-15 minus 2 weeks", 14),
        (add_days("2024-03-01", 3), "2024-03-01 plus 3 days", 3),
    ],
)
def test_a_tool_that_reads_spans_gets_them_in_the_words_of_the_question(ask, request_text, days):
    in_words = {
        name: ToolUse("calendar", tool.starter.arguments) for name, tool in load_tools().items() if tool.starter
    }
    in_days = {ask.work: ToolUse("shift", {"date": "{date}", "days": "{days}"})}
    assert make_turn([ask], in_words).steps[0].arguments == {"request": request_text}
    assert make_turn([ask], in_days).steps[0].arguments["days"] == days
    assert calendar.answer(request_text) == solve_asks((ask,))


def test_small_numbers_before_a_word_may_be_words_and_no_others():
    question = EverydayQuestion("{a} eggs for ${b}, {c}% off, 2 * {a}", {"a": "3", "b": "4", "c": "5"}, ())
    queries = {write_query(question, Random(seed)).casefold() for seed in range(60)}
    assert any("three eggs" in query for query in queries) and any("3 eggs" in query for query in queries)
    assert not any(word in query for query in queries for word in ("four", "five"))


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_question_fills_all_gaps_of_its_text(split):
    random = Random(f"gaps/{split}")
    for _ in range(1500):
        question = draw_question(split, random)
        assert "{" not in question.text.format(**question.gaps)


def test_of_two_countries_places_or_molecules_the_larger_is_named_first_where_a_text_says_so():
    random = Random("order")
    questions = [draw_question("train", random) for _ in range(3000)]
    texts = [
        text
        for bank in (*load_places().compared, *load_places().distances, *load_units().molecules)
        if bank.asks in ("farther", "heavier", "times_heavier") or (bank.asks == "difference" and bank.fact)
        for choice in bank.texts
        for text in expand_choices(choice)
    ]
    ordered = [question for question in questions if question.text in texts]
    assert len(ordered) > 20
    assert all(float(str(solve_asks(question.asks))) >= 0 for question in ordered)

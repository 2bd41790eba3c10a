"""The source `casual`: the families' own answers and plans, in words that hold all that a plan needs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_lessons.casual.families import CasualAtlas, CasualForge, CasualItinerary, CasualLedger, open_casual
from podium_lessons.casual.spell import spell_number, spell_quarter
from podium_lessons.families.atlas import SINGULARS, Atlas, load_figures
from podium_lessons.families.forge import COMPUTATIONS, Forge
from podium_lessons.families.itinerary import Itinerary
from podium_lessons.families.ledger import CURRENCIES, DESKS, Ledger
from podium_lessons.wordings import expand_choices
from trainer.errors import UnknownTask
from trainer.tasks.registry import open_source
from trainer.tasks.suite import SPLITS, make_random

PLACES = {2: {"a", "b"}, 3: {"a", "b", "c"}}


def gaps_of(text):
    return set(re.findall(r"\{(\w+)\}", text))


def list_texts(suite):
    """(level, what is asked, text) of every text with its choices made."""
    return [
        (query.level, query.asks, text)
        for query in suite.words.queries
        for texts in query.texts
        for text in expand_choices(texts)
    ]


def test_every_text_of_ledger_says_all_that_its_plan_needs():
    for level, _, text in list_texts(CasualLedger(Ledger())):
        gaps = gaps_of(text)
        assert {"company", "quarter"} <= gaps and gaps & {"region", "regional"}, text
        assert ("percent" in gaps) == (level == 1), text
        assert (level == 1) == (not gaps & {"nation", "national"}) == ("currency" not in gaps), text
        assert ("other" in gaps) == (level == 3), text


def test_every_text_of_atlas_says_all_that_its_plan_needs():
    suite = CasualAtlas(Atlas())
    wholes = [
        (int(level), "", text)
        for levels in suite.words.wholes.values()
        for level, texts in levels.items()
        for text in texts
    ]
    for level, _, text in (*list_texts(suite), *wholes):
        assert gaps_of(text) - {"figure"} == ({"country", "unit"} if level == 1 else {"country", "other"}), text
    assert all("figure" in gaps_of(text) for _, _, text in list_texts(suite))


def test_every_text_of_itinerary_says_all_that_its_plan_needs():
    for level, asks, text in list_texts(CasualItinerary(Itinerary())):
        gaps = gaps_of(text)
        assert "start" in gaps or {"start_date", "start_time"} <= gaps, text
        if level == 1:
            assert {"a", "b", "c", "d", "x", "y"} <= gaps and gaps & {"nation", "national"}, text
            assert "later" in gaps or {"later_date", "later_time"} <= gaps, text
        else:
            assert gaps >= PLACES[level] | ({"x"} if level == 2 else {"x", "y", "z"}), text
            assert ("until" in gaps) == (asks == "days"), text


def test_every_way_to_write_a_computation_holds_its_numbers():
    words = CasualForge(Forge()).words
    assert words.parts.keys() == {kind.name for kind in COMPUTATIONS}
    for kind in COMPUTATIONS:
        assert all(gaps_of(part) == set("abc"[: kind.count]) for part in words.parts[kind.name])
    assert all("part" in gaps_of(term) and gaps_of(term) & {"weight", "word"} for term in words.terms)
    assert all(gaps_of(item.whole) == {"terms", "modulus"} for item in words.queries)
    assert all(gaps_of(item.whole) == {"parts", "sum", "modulus"} for item in words.lettered)
    assert all(gaps_of(item.mark) == {"letter"} for item in words.lettered)


def test_every_value_has_a_spelling():
    ledger, atlas = CasualLedger(Ledger()).words, CasualAtlas(Atlas()).words
    assert ledger.currencies.keys() == set(CURRENCIES) and ledger.nations.keys() == set(DESKS)
    assert atlas.figures.keys() == load_figures().keys() and atlas.units.keys() <= SINGULARS.keys()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(SPLITS), st.integers(0, 10**6))
def test_a_casual_query_has_the_plan_and_the_answer_of_its_family(split, seed):
    for task in open_casual().tasks(split, 16, seed):
        assert task.oracle_turn is not None and not gaps_of(task.query)
        sql = [step.arguments["query"] for step in task.oracle_turn.steps if step.worker == "sql"]
        for company in re.findall(r"company_id = (\d+)", " ".join(sql)):
            assert company in task.query
        for code in re.findall(
            r"\b([A-Z]{3}) to ([A-Z]{3})\b", str([step.arguments for step in task.oracle_turn.steps])
        ):
            assert set(code) <= set(re.findall(r"[A-Z]{3}", task.query))


def test_the_source_gives_the_same_tasks_again_and_others_for_another_split():
    source = open_source("casual")
    queries = [task.query for task in source.tasks("train", 40, 3)]
    assert queries == [task.query for task in source.tasks("train", 40, 3)]
    assert not set(queries) & {task.query for task in source.tasks("test", 40, 3)}
    assert {task.ref.level for task in source.tasks("train", 40, levels=(1, 4))} == {1, 4}


def test_the_last_text_of_a_list_is_kept_for_the_test_split():
    suite = CasualForge(Forge())
    held_out = len(suite.words.queries) - 1
    random = make_random("held out")
    assert held_out not in {suite.sum_wordings.draw("train", random) for _ in range(400)}
    assert held_out in {suite.sum_wordings.draw("test", random) for _ in range(400)}


def test_families_are_named_behind_the_colon():
    assert {task.ref.family for task in open_source("casual:forge").tasks("train", 8)} == {"casual_forge"}
    with pytest.raises(UnknownTask, match="no family 'forgery'; use some of: ledger, atlas, forge, itinerary"):
        open_source("casual:forgery")


@pytest.mark.parametrize(
    ("number", "words"), [(3, "three"), (12, "twelve"), (20, "twenty"), (21, "twenty-one"), (40, "forty")]
)
def test_numbers_are_spelled(number, words):
    assert spell_number(number) == words


def test_a_quarter_is_spelled_by_its_months():
    assert spell_quarter(4, 2023, ("{first} to {last} {year}",), make_random("x")) == "October to December 2023"
    assert spell_quarter(1, 2024, ("{from}-{to} {year}",), make_random("x")) == "Jan-Mar 2024"

"""Follow-ups become questions that stand alone: a part of the earlier question is replaced, or something is added."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EarlierRun, EpisodeStarted, StepStarted, TurnStarted, TurnTaken
from orchestrator.follow_up import slots
from orchestrator.follow_up.languages import LANGUAGES, find_language
from orchestrator.follow_up.readings import MAX_READINGS, Understanding, list_readings
from orchestrator.follow_up.words import MAX_ITEMS, list_items, read_fragment
from orchestrator.plan import Step, Turn
from orchestrator.retrieval.likeness import Likeness
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

POOL = Pool(
    name="shop",
    workers=(
        WorkerSpec(name="calendar", kind="calendar", description="Days between dates."),
        WorkerSpec(name="calculator", kind="calculator", description="Sums."),
        WorkerSpec(name="units", kind="units", description="Converts."),
    ),
)
KINDS = (
    {"london", "paris", "oslo", "new york", "city", "rom"},
    {"euros", "pounds", "eur", "currency", "target currency"},
    {"rye loaf", "croissant", "apple", "item"},
    {"monday", "friday", "day"},
)


@pytest.fixture(autouse=True)
def likeness_by_kind(monkeypatch):
    """The sentence model stands at the edge: two texts are alike where they are of one kind."""

    def compare(texts: Sequence[str], others: Sequence[str]) -> Likeness:
        return Likeness([[0.7 * _are_alike(text, other) for other in others] for text in texts], "meaning")

    monkeypatch.setattr(slots, "compare_texts", compare)


def _are_alike(text: str, other: str) -> bool:
    return any(text.casefold() in kind and other.casefold() in kind for kind in KINDS)


def ask(question: str, *calls: tuple[str, dict[str, Any]]) -> Episode:
    """A run of a question with these calls."""
    steps = tuple(Step(k, worker, arguments) for k, (worker, arguments) in enumerate(calls, 1))
    episode = Episode("one")
    episode.apply(EpisodeStarted(question, "shop", "hash", "reader", {}, "2026-01-01T00:00:00+00:00"))
    episode.apply(TurnStarted(1, 0.0))
    episode.apply(TurnTaken(1, Turn(steps, "$1"), 0.1))
    for step in steps:
        episode.apply(StepStarted(step.id, 0.2, step.arguments))
    return episode


def understand(episode: Episode, text: str, answer: str = "4.2", value: JsonValue = None) -> Understanding:
    before = [EarlierRun("one", episode.query, answer, value)]

    async def read() -> Understanding:
        async with live_pool(POOL) as pool:
            return list_readings(episode, text, before, pool.workers)

    return asyncio.run(read())


def questions(understanding: Understanding) -> list[str]:
    return [reading.question for reading in understanding.readings]


WEATHER = ask("What is the weather in London on Monday?", ("weather", {"city": "London", "day": "Monday"}))
LOAF = ask("What does a rye loaf cost?", ("price", {"item": "rye loaf"}))
RATE = ask("How much is 20 EUR in pounds?", ("convert", {"amount": 20, "currency": "EUR"}))
ROUTE = ask("How far is LHR from JFK?", ("routes", {"route": "LHR to JFK"}))


@pytest.mark.parametrize(
    ("episode", "text", "question"),
    [
        (WEATHER, "and in Paris?", "What is the weather in Paris on Monday?"),
        (WEATHER, "what about paris", "What is the weather in paris on Monday?"),
        (WEATHER, "And for New York, please?", "What is the weather in New York on Monday?"),
        (WEATHER, "how about Friday?", "What is the weather in London on Friday?"),
        (LOAF, "and a croissant?", "What does a croissant cost?"),
        (LOAF, "and an apple?", "What does an apple cost?"),
        (LOAF, "croissant", "What does a croissant cost?"),
        (LOAF, "and in pounds?", "What does a rye loaf cost in pounds?"),
        (LOAF, "how much in pounds?", "What does a rye loaf cost in pounds?"),
        (LOAF, "and tomorrow?", "What does a rye loaf cost tomorrow?"),
        (RATE, "and 30?", "How much is 30 EUR in pounds?"),
        (RATE, "in euros?", "How much is 20 EUR in euros?"),
        (ROUTE, "and from SFO?", "How far is LHR from SFO?"),
        (WEATHER, "And how far is it to Paris?", "How far is it to Paris?"),
    ],
)
def test_a_follow_up_becomes_a_question_that_stands_alone(episode, text, question):
    assert questions(understand(episode, text)) == [question]


BROT = ask("Was kostet ein Roggenbrot?", ("price", {"item": "Roggenbrot"}))
WETTER = ask("Wie ist das Wetter in London am Montag?", ("weather", {"city": "London", "day": "Montag"}))


@pytest.mark.parametrize(
    ("episode", "text", "question"),
    [
        (WETTER, "und in Paris?", "Wie ist das Wetter in Paris am Montag?"),
        (WETTER, "Was ist mit Rom, bitte?", "Wie ist das Wetter in Rom am Montag?"),
        (BROT, "und in Euro?", "Was kostet ein Roggenbrot in Euro?"),
        (BROT, "und morgen?", "Was kostet ein Roggenbrot morgen?"),
        (BROT, "Was ist das in Pfund?", "Was ist 4.2 in Pfund?"),
        (BROT, "und wie weit ist es nach Rom?", "Wie weit ist es nach Rom?"),
        (BROT, "Was kostet der zweite?", "Was kostet Bo?"),
    ],
)
def test_another_language_is_a_row(episode, text, question):
    people = [EarlierRun("zero", "Wer?", "x", ["Ada", "Bo"]), EarlierRun("one", episode.query, "4.2", 4.2)]

    async def read() -> Understanding:
        async with live_pool(POOL) as pool:
            return list_readings(episode, text, people, pool.workers)

    assert questions(asyncio.run(read())) == [question]


@pytest.mark.parametrize(
    ("question", "city", "text", "reading"),
    [
        ("Quel temps fait-il à Londres ?", "Londres", "et à Paris ?", []),
        ("Che tempo fa a Londra?", "Londra", "e a Roma?", []),
        ("¿Qué tiempo hace en Londres?", "Londres", "¿Oslo?", ["¿Qué tiempo hace en Oslo?"]),
    ],
)
def test_in_a_language_that_has_no_row_only_the_form_of_a_word_is_read(question, city, text, reading):
    episode = ask(question, ("weather", {"city": city}))
    assert find_language((question, text)) is None
    assert questions(understand(episode, text)) == reading


def test_where_two_places_fit_alike_both_are_offered():
    assert questions(understand(ROUTE, "and SFO?")) == ["How far is SFO from JFK?", "How far is LHR from SFO?"]


@pytest.mark.parametrize("text", ["and cheese?", "why?", "thanks", "?", "and 7?"])
def test_where_nothing_fits_a_sentence_says_so(text):
    result = understand(LOAF, text)
    assert result.readings == () and "What does a rye loaf cost?" in result.problem


def test_a_number_takes_no_place_of_a_word_nor_a_word_of_a_number():
    assert questions(understand(RATE, "and 1,500.50?")) == ["How much is 1,500.50 EUR in pounds?"]
    assert not any("20" not in question for question in questions(understand(RATE, "and yen?")))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("What does the second one cost?", "What does Bo cost?"),
        ("how tall is the last one?", "How tall is Cy?"),
        ("and where does the first one live?", "Where does Ada live?"),
    ],
)
@pytest.mark.parametrize(
    ("answer", "value"),
    [("People:\n- Ada\n- Bo\n- Cy", None), ("Ada, Bo and Cy.", "Ada, Bo and Cy."), ("x", ["Ada", "Bo", "Cy"]),
     ("x", '[{"age": 3, "name": "Ada"}, {"name": "Bo"}, {"name": "Cy"}]'), ("x", {"people": ["Ada", "Bo", "Cy"]})],
)  # fmt: skip
def test_an_entry_of_the_list_before_is_named(text, question, answer, value):
    result = understand(ask("Who works here?"), text, answer, value)
    assert questions(result) == [question] and result.readings[0].quotes


def test_an_entry_takes_the_place_of_another_one():
    bo = ask("What does Ada cost?", ("price", {"name": "Ada"}))
    result = understand(bo, "and the second one?", "x", ["Ada", "Bo"])
    assert questions(result) == ["What does Bo cost?"] and result.readings[0].quotes


def test_what_no_list_has_is_said():
    assert "no answer before is a list" in understand(LOAF, "and the second one?").problem
    assert "2 entries" in understand(LOAF, "What does the third one cost?", "x", ["a", "b"]).problem


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("What is that in pounds?", "What is 4.2 EUR in pounds?"),
        ("how much is it in GBP", "How much is 4.2 EUR in GBP"),
        ("what is that times 3?", "What is 4.2 EUR times 3?"),
        ("Is it in stock?", "Is it in stock?"),
        ("How long is it to Rome?", "How long is it to Rome?"),
    ],
)
def test_that_is_the_number_before_where_a_unit_or_a_sum_follows(text, question):
    result = understand(LOAF, text, "Price (rye loaf): 4.2 EUR", 4.2)
    assert questions(result) == [question] and result.readings[0].quotes == ("4.2" in question)


@pytest.mark.parametrize("text", ["What is its price?", "and where does she live?", "how much are those?"])
def test_what_points_at_something_unnamed_is_not_asked_alone(text):
    result = understand(LOAF, text, "Ada")
    assert result.readings == () and "stands for" in result.problem


@given(st.text(max_size=60), st.text(max_size=40))
def test_no_text_is_refused_without_a_sentence(text, place):
    episode = ask(f"What is the weather in {place} on Monday?", ("weather", {"city": place, "n": 3, "x": [place]}))
    result = understand(episode, text)
    assert bool(result.readings) != bool(result.problem) and len(result.readings) <= MAX_READINGS
    assert all(question.strip() for question in questions(result))


@given(st.from_regex(r"[a-z]{3,9}", fullmatch=True), st.sampled_from(["in", "for", "from", "with"]))
def test_a_fragment_keeps_its_words_and_preposition(word, preposition):
    word = f"z{word}"
    fragment = read_fragment(f"and {preposition} the {word}, please?", LANGUAGES[0])
    assert (fragment.preposition, fragment.article, fragment.words) == (preposition, "the", word)


@given(st.text() | st.lists(st.text() | st.dictionaries(st.text(), st.integers())), st.text())
def test_the_entries_of_any_answer_are_texts(value, answer):
    items = list_items(EarlierRun("one", "q", answer, value))
    assert len(items) <= MAX_ITEMS and all(isinstance(item, str) for item in items)

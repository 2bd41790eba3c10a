"""Airports, distances, clocks, molar masses and memo rooms: right answers, and errors that say what to write."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import BadCall
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.starter.workers import airports, clock, elements, great_circle
from pool_registry.starter.workers.memos import SECTIONS, SUBJECTS, passage, total_of
from pool_registry.worker import Visible
from pool_registry.workers import calendar

KINDS = ("airports", "great_circle", "clock", "elements", "memos", "calendar", "extractor")
TOOLS = Pool(name="tools", workers=tuple(spec for spec in starter_pool().workers if spec.kind in KINDS))


def call(worker: str, text: str, visible: tuple[Visible, ...] = ()) -> Observation:
    async def once() -> Observation:
        async with live_pool(TOOLS) as live:
            name = live.workers[worker].instruction_parameter
            return await live.call(Action(worker, {name: text}), visible)

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("worker", "text", "value"),
    [
        ("airports", "country of LIS", "PT"),
        ("airports", "What is the country of airport lis?", "PT"),
        ("airports", "LIS country", "PT"),
        ("airports", "time zone of GRU", "America/Sao_Paulo"),
        ("airports", "timezone for GRU", "America/Sao_Paulo"),
        ("airports", "coordinates of LIS", {"lat": 38.7813, "lon": -9.13592}),
        ("airports", "elevation of LIS", 355.0),
        ("great_circle", "LIS to GRU", 7935.3),
        ("great_circle", "distance from LIS to GRU in km", 7935.3),
        ("great_circle", "gru -> lis", 7935.3),
        ("great_circle", "LIS to LIS", 0.0),
        ("clock", "2025-04-20 21:30 at LIS plus 7935.3 km / 840 km/h, local at GRU", "2025-04-21 02:57"),
        ("clock", "2025-04-20 21:30 at LIS plus 7,935.3 km / 840 km/h local at GRU", "2025-04-21 02:57"),
        ("clock", "2025-04-20 21:30 at LIS plus 90 minutes, local at GRU", "2025-04-20 19:00"),
        ("clock", "2025-04-20 21:30 at europe/lisbon minus 2 hours plus 15 minutes", "2025-04-20 19:45"),
        ("clock", "2025-04-20 21:30 at LIS, local at UTC", "2025-04-20 20:30"),
        ("clock", "2025-03-30 00:30 at Europe/Berlin plus 120 minutes", "2025-03-30 03:30"),
        ("clock", "2025-04-20 21:30 at UTC plus 0.5 minutes", "2025-04-20 21:31"),
        ("calendar", "is 2025-04-21 02:57 a public holiday in BR", "yes"),
        ("calendar", "business days from 2025-04-21 02:57 to 2025-05-01 in PT", 7),
        ("calendar", "next business day after 2025-04-20 21:30 in BR", "2025-04-22"),
        ("elements", "molar mass of CuSO4+5H2O", pytest.approx(249.677)),
        ("elements", "CuSO4·5H2O", pytest.approx(249.677)),
        ("elements", "molecular weight of Ca(OH)2 in g/mol", pytest.approx(74.092)),
    ],
)
def test_tools_answer(worker, text, value):
    assert call(worker, text).value == value


@pytest.mark.parametrize(
    ("worker", "text", "said"),
    [
        ("airports", "weather of LIS", "one of these forms"),
        ("airports", "country of QQQ", "no airport 'QQQ'"),
        ("great_circle", "LIS GRU", "LIS to GRU"),
        ("great_circle", "LIS to QQQ", "no airport 'QQQ'"),
        ("clock", "tomorrow at LIS", "one of these forms"),
        ("clock", "2025-13-20 21:30 at LIS", "month must be in 1..12"),
        ("clock", "2025-04-20 21:30 at Europe/Nope", "IATA code or a name"),
        ("clock", "2025-04-20 21:30 at ../../etc/passwd", "one of these forms"),
        ("clock", "2025-04-20 21:30 at LIS plus 3 km / 0 km/h", "must not be 0"),
        ("clock", "2025-04-20 21:30 at LIS plus 3 fortnights", "minutes, hours, days"),
        ("clock", "2025-04-20 21:30 at LIS plus 9999999 days", "100 years"),
        ("clock", "0001-01-01 00:00 at LIS", "between 1900 and 2100"),
        ("elements", "molar mass of Xx2", "not a formula that is known"),
        ("elements", "molar mass of", "not a formula"),
        ("elements", "__import__('os')", "not a formula"),
        ("elements", "((((((((((H))))))))))", "not a formula"),
        ("elements", "H99999999", "not a formula"),
        ("room_a", "the secret memo", "memo 17: penalty total, section 4"),
        ("room_a", "memo 0: penalty total, section 4", "memo 17: penalty total, section 4"),
        ("room_a", "memo 17: profit total, section 4", "subjects are penalty"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(worker, text, said):
    seen = call(worker, text)
    assert seen.status is Status.PARSE_ERR and said in seen.error.message


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from((airports.answer, great_circle.route_km, clock.answer, elements.molar_mass, calendar.answer)),
    st.text(max_size=80)
    | st.text("CHNOaelu0123456789()+.· ", max_size=70)
    | st.from_regex(
        r"20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} at (LIS|UTC) (plus|minus) [0-9]{1,9} days", fullmatch=True
    ),
)
def test_any_text_has_an_answer_or_a_plain_error(answer, text):
    try:
        answer(text)
    except BadCall as fault:
        assert str(fault)


@pytest.mark.parametrize(
    "text",
    ["(" * 60, "H" * 60, "((((" + "H" * 50 + "))))", "(H)" * 4 + "C" * 40, "molar mass of " + "1" * 60, "H+" * 30],
)
def test_no_formula_takes_long(text):
    elements.molar_mass("H2O")
    started = time.perf_counter()
    with suppress(BadCall):
        elements.molar_mass(text)
    assert time.perf_counter() - started < 0.25


@pytest.mark.parametrize(
    "request_text", ["2025-04-20 21:30 at LIS" + " plus 1 km" * 40, "2025-04-20 21:30 at " + "a/" * 200]
)
def test_no_time_takes_long_to_refuse(request_text):
    started = time.perf_counter()
    with pytest.raises(BadCall):
        clock.answer(request_text)
    assert time.perf_counter() - started < 0.25


def test_every_airport_has_a_time_zone_that_is_known():
    for code in airports.airports():
        assert clock.zone_at(code).key


def test_the_same_memo_says_the_same_and_each_room_something_else():
    texts = [call(f"room_{room}", "memo 17: penalty total, section 4").value for room in "abca"]
    assert texts[0] == texts[3] and len(set(texts)) == 3
    assert texts[0] == passage("a", 17, "penalty", 4)
    assert call("room_a", "Memo no. 17, the penalty total in section 4?").value == texts[0]


@given(st.sampled_from("abc"), st.integers(1, 9999), st.sampled_from(SUBJECTS), st.sampled_from(SECTIONS))
@settings(max_examples=60, deadline=None)
def test_the_reader_finds_the_figure_that_counts_among_others(room, memo, subject, section):
    from pool_registry.starter.workers.extractor import number

    text = passage(room, memo, subject, section)
    assert number(text) == total_of(room, memo, subject, section)
    assert len(text) > 250 and sum(word.strip(".,").replace(",", "").isdigit() for word in text.split()) >= 5


def test_a_memo_is_read_through_the_pool():
    text = call("room_b", "memo 17: penalty total, section 4").value
    shown = (Visible(1, "room_b", Observation(Status.OK, text)),)
    assert call("reader", "the number in the passage", shown).value == total_of("b", 17, "penalty", 4)

"""The tools of the starter pool: right answers, and errors that tell a model what to write."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import WorkerFault
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import Visible, WorkerSpec
from pool_registry.workers.calculator import evaluate
from pool_registry.workers.calendar import answer
from pool_registry.workers.units import convert

TOOLS = Pool(name="tools", workers=tuple(spec for spec in starter_pool().workers if spec.kind != "local_model"))


def call(worker: str, visible: tuple[Visible, ...] = (), pool: Pool = TOOLS, **arguments) -> Observation:
    async def once() -> Observation:
        async with live_pool(pool) as live:
            return await live.call(Action(worker, arguments), visible)

    return asyncio.run(once())


def passage(text: str, step: int = 1) -> Visible:
    return Visible(step, "atlas_search", Observation(Status.OK, text))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+2*3", 7),
        ("round([3,4][0]/7, 3)", 0.429),
        ("2**10 % 1000", 24),
        ("-3 + 5", 2),
        ("sqrt(16)", 4.0),
        ("7//2", 3),
    ],
)
def test_the_calculator_computes(expression, value):
    assert call("calculator", expression=expression).value == value


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        ("1/0", Status.EXEC_ERR),
        ("9**9**9", Status.EXEC_ERR),
        ("__import__('os')", Status.PARSE_ERR),
        ("'a'*10**9", Status.PARSE_ERR),
        ("[0]*10**9", Status.PARSE_ERR),
        ("1+", Status.PARSE_ERR),
        ("59,910 sq km", Status.PARSE_ERR),
        ("1e308*10", Status.EXEC_ERR),
        ("[x for x in [1,2,3]]", Status.PARSE_ERR),
        ("().__class__", Status.PARSE_ERR),
    ],
)
def test_the_calculator_refuses_what_is_no_bounded_arithmetic(expression, status):
    seen = call("calculator", expression=expression)
    assert seen.status is status and seen.error.code != "worker_raised"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("0123456789+-*/%()., []<>='\"x", max_size=40))
def test_any_expression_has_a_value_or_a_plain_error(text):
    try:
        evaluate(text)
    except WorkerFault as fault:
        assert str(fault)


def test_units_convert_and_name_what_is_unknown():
    assert call("units", value=59910, from_unit="square kilometer", to_unit="acre").value == pytest.approx(
        14804024.19, abs=0.01
    )
    assert convert(1, "nautical mile", "meter") == pytest.approx(1852)
    assert convert(100, "degC", "degF") == pytest.approx(212)
    for wrong in ({"from_unit": "smoot", "to_unit": "acre"}, {"from_unit": "meter", "to_unit": "second"}):
        seen = call("units", value=1, **wrong)
        assert seen.status is Status.PARSE_ERR and seen.error.code == "bad_arguments"


@pytest.mark.parametrize(
    ("request_text", "value"),
    [
        ("last business day of Q2 2023 in US", "2023-06-30"),
        ("Last business day of Q4 2023 in DE", "2023-12-29"),
        ("first business day of January 2024 in GB", "2024-01-02"),
        ("next business day after 2024-12-24 in DE", "2024-12-27"),
        ("is 2025-04-21 a public holiday in BR?", "yes"),
        ("is 2025-04-22 a public holiday in BR", "no"),
        ("2025-12-25 is a public holiday in DE", "yes"),
        ("is the 25th of December 2025 a bank holiday in DE", "yes"),
        ("days from 1 March 2024 to March 8th, 2024", 7),
        ("weekday of 11 Nov 1918", "Monday"),
        ("business days from 2024-03-01 to 2024-03-15 in PT", 11),
    ],
)
def test_the_calendar_knows_business_days(request_text, value):
    assert call("calendar", request=request_text).value == value


@given(st.text(max_size=80))
def test_any_calendar_request_has_an_answer_or_lists_the_forms(text):
    try:
        answer(text)
    except WorkerFault as fault:
        assert "business day" in str(fault) or fault.code == "bad_arguments"


def test_sql_returns_scalars_lists_and_rows():
    assert call("sql", query="select count(*) from companies").value == 900
    assert call("sql", query="select id from companies where id < 2 order by id").value == [0, 1]
    rows = call("sql", query="select id, name from companies where id = 7").value
    assert rows == [{"id": 7, "name": "Company 7"}]
    assert call("fx_desk", day="2023-06-30", currency="GBP").value == pytest.approx(0.79, rel=0.11)


@pytest.mark.parametrize(
    "query",
    [
        "delete from items",
        "update companies set name = 'x'",
        "drop table items",
        "attach database '/tmp/podium-x.db' as x",
        "pragma journal_mode=delete",
        "insert into companies values (5000, 'x', 'US')",
        "create table x (y)",
        "select load_extension('x')",
        "vacuum",
    ],
)
def test_nothing_can_be_written_through_sql(query):
    seen = call("sql", query=query)
    assert seen.status is Status.PARSE_ERR
    assert call("sql", query="select count(*) from companies").value == 900


def test_sql_errors_name_the_tables_there_are():
    assert "companies" in call("sql", query="select * from nope").error.message
    assert call("sql", query="select 1 where 0").error.code == "no_rows"
    assert call("sql", query="select * from items").error.code == "too_many_rows"


def test_an_endless_query_is_cut_off():
    spec = TOOLS.worker("sql").model_copy(update={"timeout_s": 0.3})
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"
    seen = call("sql", pool=Pool(name="p", workers=(spec,)), query=endless)
    assert seen.status is Status.TIMEOUT


@pytest.mark.parametrize("database", ["mysql://h/d", "no/such/file.db"])
def test_a_database_that_cannot_be_read_is_told(database, tmp_path):
    spec = WorkerSpec(name="sql", kind="sql", description="d", config={"database": database})
    if "://" in database:
        with pytest.raises(Exception, match="read-only"):
            call("sql", pool=Pool(name="p", workers=(spec,)), query="select 1")
    else:
        seen = call("sql", pool=Pool(name="p", workers=(spec,)), query="select 1")
        assert seen.error.code == "database_missing"


def test_search_finds_the_passage_by_its_title():
    assert call("atlas_search", query="Mexico Geography Irrigated land").value.startswith(
        "Mexico — Geography — Irrigated land: "
    )
    assert call("atlas_search", query="Government Capital name Bangkok").value.startswith("Thailand")
    assert call("atlas_search", query="zzzzqqq").error.code == "no_hits"


def test_search_reads_a_persons_own_files(tmp_path):
    (tmp_path / "notes.md").write_text("Penguins live in the south.\n\nBears live in the north.")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps({"title": t, "text": f"about {t}"}) for t in ("cats", "dogs")))
    for place, query, found in ((tmp_path, "bears", "notes: Bears"), (corpus, "dogs", "dogs: about dogs")):
        spec = WorkerSpec(name="s", kind="search", description="d", config={"corpus": str(place)})
        assert call("s", pool=Pool(name="p", workers=(spec,)), query=query).value.startswith(found)
    corpus.write_text('{"title": 1}\n')
    spec = WorkerSpec(name="s", kind="search", description="d", config={"corpus": str(corpus)})
    assert "line 1" in call("s", pool=Pool(name="p", workers=(spec,)), query="x").error.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Mexico — Geography — Irrigated land: 59,910 sq km (2018)", 59910),
        ("X — Economy — GDP: $3.5 trillion (2024 est.)", 3.5e12),
        ("X — Elevation: -10 m", -10),
        ("X — Growth: 1.5% (2024)", 1.5),
    ],
)
def test_the_reader_reads_numbers(text, value):
    assert call("reader", (passage(text),), instruction="the number in the passage").value == value


def test_the_reader_reads_each_passage_and_countries():
    both = (passage("Peru — A: 5 km"), passage("Chile — A: 7 km", 2))
    assert call("reader", both, instruction="the number in each passage").value == [5, 7]
    assert call("reader", both[:1], instruction="the country in the passage").value == "Peru"


def test_the_reader_does_not_guess():
    both = (passage("Peru — A: 5 km"), passage("Chile — A: 7 km", 2))
    assert call("reader", both, instruction="the number in the passage").error.code == "ambiguous"
    assert call("reader", (), instruction="the number in the passage").error.code == "nothing_to_read"
    assert call("reader", both, instruction="write a poem").status is Status.PARSE_ERR


def test_a_recursive_worker_needs_an_episode():
    assert call("self", instruction="what?").error.code == "no_episode"

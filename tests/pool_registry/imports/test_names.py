"""What imported workers are called: other scripts keep their meaning, and a prefix gives way to the name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.imports import FreeNames, shorten_prefix, worker_name
from pool_registry.worker import NAME_PATTERN


@pytest.mark.parametrize(
    ("suggestion", "name"),
    [
        ("Get.Weather", "get_weather"),
        ("найти_заказ", "nayti_zakaz"),
        ("Größe_ändern", "grosse_andern"),
        ("Straße", "strasse"),
        ("mise à jour", "mise_a_jour"),
        ("Ελλάδα", "ellada"),
        ("ひらがな", "hiragana"),
        ("查询weather", "weather"),
        ("123", "tool_123"),
    ],
)
def test_names_keep_their_meaning_in_latin_letters(suggestion, name):
    assert worker_name(suggestion) == name


def test_a_name_that_cannot_be_written_is_made_of_the_title_or_the_description():
    names = FreeNames()
    assert names.choose("查询天气", "odd", ("Weather report", "Query the weather")) == "odd_weather_report"
    assert names.choose("查询天气", "odd", ("天气", "Query the weather of a city now")) == "odd_query_the_weather_of"
    assert names.choose("查询天气", "odd", ("", "天气")) == "odd_tool"
    assert names.choose("找", "odd", ("", "天气")) == "odd_tool_2"


def test_a_long_prefix_is_cut_before_the_name():
    long = "trigger-long-running-operation"
    assert worker_name(long, prefix="mcp-server-everything") == f"everything_{long}"
    assert worker_name("x" * 47, prefix="home") == "x" * 47
    assert worker_name("list", prefix="files") == "files_list"
    assert shorten_prefix("mcp-server-sequential-thinking", 24) == "sequential-thinking"
    assert shorten_prefix("mcp-server", 4) == "mcp"


@given(
    st.text(max_size=80), st.from_regex(r"[a-z][a-z0-9_-]{0,23}", fullmatch=True) | st.just(""), st.text(max_size=40)
)
def test_every_name_is_valid_and_unique(suggestion, prefix, title):
    names = FreeNames()
    chosen = [names.choose(suggestion, prefix, (title,)) for _ in range(3)]
    assert len(set(chosen)) == 3 and all(re.fullmatch(NAME_PATTERN, name) for name in chosen)

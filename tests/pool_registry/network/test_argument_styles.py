"""What is written can be read back: the other side gets the arguments, or nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pool_registry.errors import BadCall
from pool_registry.network.argument_styles import (
    ArgumentStyle,
    write_cookie,
    write_field,
    write_header,
    write_path,
    write_query,
)

TEXTS = st.text(max_size=6) | st.text(st.sampled_from(",.;=&|[] %+/#?"), max_size=4)
LISTS = st.lists(TEXTS, min_size=1, max_size=4)
OBJECTS = st.dictionaries(TEXTS.filter(bool), TEXTS, min_size=1, max_size=4)
TREES = st.dictionaries(
    st.text("ab_ é[]", min_size=1, max_size=3),
    st.recursive(TEXTS, lambda inner: st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, min_size=1)),
    min_size=1,
    max_size=3,
)  # fmt: skip


def write(writer: Callable[..., Any], value: Any, style: str, explode: bool = False, reserved: bool = False) -> Any:
    place = ArgumentStyle.model_validate({"wire": "c", "style": style, "explode": explode, "allow_reserved": reserved})
    try:
        return writer(value, place)
    except BadCall:
        assume(False)


def pair_up(parts: list[str], value: Any) -> Any:
    """Parts as what was sent: a list, or names and values by turns."""
    texts = [unquote(part) for part in parts]
    return dict(zip(texts[::2], texts[1::2], strict=True)) if isinstance(value, dict) else texts


def read_pairs(parts: list[str], value: Any) -> Any:
    pairs = [tuple(map(unquote, part.partition("=")[::2])) for part in parts]
    return dict(pairs) if isinstance(value, dict) else [text for _, text in pairs]


@settings(deadline=None)
@given(LISTS | OBJECTS, st.booleans())
def test_paths(value, explode):
    assert read_simple(write(write_path, value, "simple", explode), value, explode, ",") == value
    label = write(write_path, value, "label", explode)
    assert label[0] == "." and read_simple(label[1:], value, explode, "." if explode else ",") == value
    matrix = write(write_path, value, "matrix", explode)
    if explode:
        assert read_pairs(matrix[1:].split(";"), value) == value
    else:
        assert matrix.startswith(";c=") and pair_up(matrix[3:].split(","), value) == value


def read_simple(text: str, value: Any, explode: bool, between: str) -> Any:
    parts = text.split(between)
    return read_pairs(parts, value) if explode and isinstance(value, dict) else pair_up(parts, value)


@settings(deadline=None)
@given(LISTS | OBJECTS, st.booleans())
def test_queries_whose_parts_repeat(value, reserved):
    parts = write(write_query, value, "form", True, reserved)
    pairs = parse_qsl("&".join(parts), keep_blank_values=True)
    assert (dict(pairs) if isinstance(value, dict) else [text for _, text in pairs]) == value


@pytest.mark.parametrize(("style", "between"), [("form", ","), ("space", "%20"), ("pipe", "%7C")])
@settings(deadline=None)
@given(value=LISTS | OBJECTS, reserved=st.booleans())
def test_queries_whose_parts_are_divided(style, between, value, reserved):
    [part] = write(write_query, value, style, False, reserved)
    assert part.startswith("c=") and pair_up(part[2:].split(between), value) == value


@pytest.mark.parametrize("writer", [write_query, write_field])
@settings(deadline=None)
@given(value=TREES, reserved=st.booleans())
def test_objects_within_objects(writer, value, reserved):
    tree: dict[str, Any] = {}
    for name, text in parse_qsl("&".join(write(writer, value, "deep", True, reserved)), keep_blank_values=True):
        *folders, last = name.removeprefix("c[").removesuffix("]").split("][")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = text
    assert tree == value


@settings(deadline=None)
@given(st.lists(TEXTS | st.booleans() | st.integers(), max_size=4))
def test_fields_of_a_form(value):
    pairs = parse_qsl("&".join(write(write_field, value, "field")), keep_blank_values=True)
    assert pairs == [("c", str(item).lower() if isinstance(item, bool) else str(item)) for item in value]


@settings(deadline=None)
@given(LISTS | OBJECTS)
def test_headers_and_cookies(value):
    assert (
        pair_up([part.replace("%", "%25") for part in write(write_header, value, "simple").split(",")], value) == value
    )
    exploded = write(write_header, value, "simple", True).replace("%", "%25")
    assert read_simple(exploded, value, True, ",") == value
    [cookie] = write(write_cookie, value, "form")
    assert pair_up(cookie.partition("=")[2].split(","), value) == value and not {";", " ", '"'} & set(cookie)


@settings(deadline=None)
@given(TEXTS.filter(bool), st.booleans())
def test_one_text(value, reserved):
    assert unquote(write(write_path, value, "simple")) == value
    assert parse_qsl(write(write_query, value, "form", True, reserved)[0], keep_blank_values=True) == [("c", value)]

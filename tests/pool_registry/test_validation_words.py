"""What a validator finds is told in words of our own, whatever kind of error it is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import core_schema

from pool_registry.errors import InvalidPool
from pool_registry.pool import import_pool
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.validation_words import (
    VIOLATIONS,
    describe_item,
    describe_problems,
    drop_library_words,
    field_problems,
)

LIBRARY = re.compile(
    "pydantic|Input should|Field required|Extra inputs|Failed validating|On instance|validation error|Value error|"
    "Assertion failed|meta-schema|registry|keyword|is not of type|required property|were unexpected|was unexpected|"
    "was expected|is not valid under|under the given schema|does not match|non-unique",
    re.IGNORECASE,
)
ROOT = Path(__file__).parents[2]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,23}$")
    size: int = Field(gt=0, lt=1000, default=1)
    share: float = Field(default=0.5, ge=0.25)
    flag: bool = False
    mode: Literal["a", "b", "c"] = "a"
    stop: str | list[str] | None = None
    table: dict[str, int] = {}
    words: Annotated[list[str], Field(max_length=2)] = []
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    rows: Sequence[object] = ()
    day: str = ""

    @field_validator("day")
    @classmethod
    def _is_a_day(cls, value: str) -> str:
        if value == "never":
            raise ValueError("write a day of the week")
        return value


def problems_of(**values: object) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"name": "x", **values})
    return dict(field_problems(caught.value))


@pytest.mark.parametrize(
    ("values", "place", "sentence"),
    [
        ({"name": "No"}, "name", "use small letters, digits, _ and -, starting with a letter; 24 at most"),
        ({"name": None}, "name", "this must be text"),
        ({"size": "many"}, "size", "this must be a whole number"),
        ({"size": 0}, "size", "this must be above 0"),
        ({"size": 1000}, "size", "this must be below 1,000"),
        ({"share": 0.1}, "share", "this must be at least 0.25"),
        ({"flag": "perhaps"}, "flag", "this must be true or false"),
        ({"mode": "d"}, "mode", "use one of: 'a', 'b', 'c'"),
        ({"stop": 3}, "stop", "this must be text or a list"),
        ({"stop": [3]}, "stop.0", "this must be text"),
        ({"table": []}, "table", "this must be an object: names with values"),
        ({"table": {"x": "y"}}, "table.x", "this must be a whole number"),
        ({"words": ["a", "b", "c"]}, "words", "this has more than 2 entries"),
        ({"pet": {"kind": "cow"}}, "pet", "'kind' must be one of: 'cat', 'dog'"),
        ({"pet": {}}, "pet", "'kind' is missing; it says which kind this is"),
        ({"pet": {"kind": "cat", "lives": 10}}, "pet.cat.lives", "this must be at most 9"),
        ({"rows": 5}, "rows", "this must be a list"),
        ({"rows": "text"}, "rows", "this must be a list"),
        ({"day": "never"}, "day", "write a day of the week"),
        ({"colour": 1}, "colour", "there is no such setting here"),
    ],
)
def test_each_kind_of_problem_has_a_sentence(values, place, sentence):
    assert problems_of(**values)[place] == sentence


@given(values=st.dictionaries(st.sampled_from([*Settings.model_fields, "other"]), JSON))
def test_no_value_brings_a_librarys_text(values):
    try:
        Settings.model_validate(values)
    except ValidationError as error:
        assert not LIBRARY.search(describe_problems(error))


@pytest.mark.parametrize("kind", get_args(core_schema.ErrorType))
def test_every_kind_of_error_that_the_library_has_is_put_into_words(kind):
    """Also those that no field here can cause yet."""
    details = dict.fromkeys(
        [
            "gt",
            "ge",
            "lt",
            "le",
            "multiple_of",
            "min_length",
            "max_length",
            "expected",
            "class",
            "discriminator",
            "expected_tags",
            "pattern",
            "error",
        ],
        3,
    )
    sentence = describe_item({"type": kind, "loc": (), "msg": "Input should be different", "ctx": details})
    assert sentence and not LIBRARY.search(sentence)


def test_a_file_that_is_no_json_says_where(tmp_path: Path):
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate_json('{"name": x}')
    assert describe_problems(caught.value) == "this is not JSON (line 1, character 10)"


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"properties": {"a": {"type": "dict"}}}, "there is no type 'dict'; use string, number"),
        ({"properties": None}, r"None cannot stand here \(at properties\)"),
        ({"required": True}, r"True cannot stand here \(at required\)"),
        ({"$schema": "http://nope"}, "its [$]schema is none that is known"),
        ({"properties": {"a": {"pattern": "("}}}, "'[(]' is no regular expression"),
        ({"$ref": "#/x"}, "a [$]ref points nowhere"),
        ({"$ref": "http://a/b"}, "a [$]ref points nowhere"),
        ({"minimum": "x"}, r"'x' cannot stand here \(at minimum\)"),
    ],
)
def test_a_schema_that_is_none_is_refused_in_words(schema, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        SchemaCheck(schema)
    assert isinstance(caught.value.__cause__, jsonschema_rs.ValidationError) and not LIBRARY.search(str(caught.value))


@given(
    schema=st.dictionaries(
        st.sampled_from(["type", "properties", "required", "items", "enum", "$ref", "pattern"]), JSON
    )
)
def test_no_schema_brings_a_librarys_text(schema):
    try:
        SchemaCheck(schema)
    except ValueError as error:
        assert not LIBRARY.search(str(error))


@given(document=st.dictionaries(st.sampled_from(["name", "workers", "limits", "mode", "other"]), JSON))
def test_no_pool_file_brings_a_librarys_text(document):
    try:
        import_pool(json.dumps({"podium_pool": 1, **document}))
    except InvalidPool as error:
        assert not LIBRARY.search(str(error)), document


@pytest.mark.parametrize(
    ("rule", "value", "sentence"),
    [
        ({"type": "integer"}, "x", 'a: this must be a whole number, not "x"'),
        ({"type": ["null", "string"]}, 3, "a: this must be text or null, not 3"),
        ({"enum": ["tea", "oil"]}, "salt", 'a: use one of "tea", "oil", not "salt"'),
        ({"enum": list(range(30))}, 31, "a: use one of 0, 1, 2, 3, 4, 5, 6, 7 and 22 more, not 31"),
        ({"const": 3}, 4, "a: this must be 3, not 4"),
        ({"required": ["b"]}, {}, "a.b: this is missing"),
        ({"dependentRequired": {"c": ["b"]}}, {"c": 1}, "a.b: this is missing"),
        ({"if": {"required": ["c"]}, "then": {"required": ["b"]}}, {"c": 1}, "a.b: this is missing"),
        ({"properties": {"c": {}}, "additionalProperties": False}, {"b": 1}, "a: leave out what is not known here: "),
        ({"unevaluatedProperties": False}, {"b": 1}, 'a: leave out what is not known here: "b"'),
        ({"minimum": 3}, 1, "a: this must be at least 3"),
        ({"exclusiveMinimum": 3}, 3, "a: this must be above 3"),
        ({"maximum": 2.5}, 5, "a: this must be at most 2.5"),
        ({"exclusiveMaximum": 3}, 3, "a: this must be below 3"),
        ({"multipleOf": 3}, 5, "a: this must be a multiple of 3"),
        ({"minLength": 3}, "a", "a: this has fewer than 3 characters"),
        ({"maxLength": 2}, "abc", "a: this has more than 2 characters"),
        ({"pattern": "^[0-9]+$"}, "b", "a: this must be of the form ^[0-9]+$ (a regular expression)"),
        ({"minItems": 1}, [], "a: this must not be empty"),
        ({"maxItems": 2}, [1, 2, 3], "a: this has more than 2 entries"),
        ({"uniqueItems": True}, [1, 1], "a: no entry may stand in this list twice"),
        ({"contains": {"type": "string"}}, [1], "a: this list has not the entries that are needed here"),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], "a: leave out the last entries: "),
        ({"maxProperties": 2}, {"b": 1, "c": 1, "d": 1}, "a: this has more than 2 fields"),
        ({"propertyNames": {"pattern": "^x"}}, {"b": 1}, "a: one of its names cannot be used here"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 1.5, "a: this must be text or a whole number"),
        (
            {"oneOf": [{"required": ["id"]}, {"required": ["name"]}]},
            {},
            "a: this has none of the forms that are allowed here: a.id: this is missing, or a.name: this is missing",
        ),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, 1, "a: this has several of the allowed forms at once"),
        ({"not": {"type": "string"}}, "x", "a: this is what may not stand here; use another value"),
        (False, 1, "a: nothing can stand here; leave it out"),
    ],
)  # fmt: skip
def test_a_value_that_breaks_a_rule_is_described_in_words(rule, value, sentence):
    words = SchemaCheck({"type": "object", "properties": {"a": rule}}).explain({"a": value}, "arguments")
    assert words.startswith(sentence) and not LIBRARY.search(words)


RULES = ("type", "enum", "const", "required", "properties", "items", "anyOf", "not", "minimum", "pattern", "maxItems")


@given(rule=st.dictionaries(st.sampled_from(RULES), JSON), value=JSON)
def test_no_value_of_an_argument_brings_a_librarys_text(rule, value):
    try:
        check = SchemaCheck({"type": "object", "properties": {"a": rule}})
    except ValueError:
        return
    arguments = {"a": value}
    if not check.accepts(arguments) and "://" not in json.dumps([rule, value]):
        assert not LIBRARY.search(check.explain(arguments, "arguments")), (rule, value)


KINDS = [name for name in vars(jsonschema_rs.ValidationErrorKind) if name[0].isupper()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_violation_has_its_sentence_or_the_plain_one(kind):
    never_met = {"ContentEncoding", "ContentMediaType", "Custom", "Format", "FromUtf8", "Referencing"}
    assert kind in VIOLATIONS or kind in never_met, f"{kind} would be told as a value that cannot be used"


def test_a_tools_error_keeps_its_words_without_the_librarys_address():
    words = "1 problem\na\n  no number [type=int_parsing]\n    For further information visit https://errors.pydantic.dev/2.11/v/int_parsing"
    assert drop_library_words(words) == "1 problem\na\n  no number [type=int_parsing]"
    assert drop_library_words("plain words") == "plain words"


PACKAGES = ("pool_registry", "orchestrator", "trainer", "studio")
HANDS_ON = {"studio/cli/runs/what_if.py", "studio/model_server/app.py", "studio/frame/bad_requests.py",
            "pool_registry/processes/function_host.py", "pool_registry/validation_words.py"}  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_nobody_else_reads_a_validators_findings(package):
    """Whoever lists them hands them on to the translator; whoever catches them quotes them by it."""
    for path in sorted((ROOT / package).rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        assert ".errors(" not in text or name in HANDS_ON, name
        for handler in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ExceptHandler)):
            quoted = [f"{{{handler.name}}}", f"str({handler.name})"]
            if handler.name and handler.type and ast.unparse(handler.type) == "ValidationError":
                assert not any(words in ast.unparse(handler) for words in quoted), f"{name}:{handler.lineno}"

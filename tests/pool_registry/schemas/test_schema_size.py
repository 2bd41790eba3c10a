"""Schemas that ask for more work than their text shows, and values that are too large to be checked."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

import mcp_types
import pytest

from pool_registry.actions import Action, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.imports.mcp import _offers
from pool_registry.imports.openapi import operations
from pool_registry.imports.space import UnfitEndpoint, _arguments
from pool_registry.kinds import load_config
from pool_registry.pool import Pool, check_pool, export_pool, import_pool
from pool_registry.schemas.argument_schema import schema_problem
from pool_registry.schemas.output_check import Output
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.schemas.schema_size import MAX_PARTS, SchemaSize, SchemaTooLarge
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpServer

TOO_LARGE = f"more than {MAX_PARTS:,} parts when its references are expanded"
QUICK_S = 2.0  # on a busy machine; without a limit these take minutes, or all memory


def bomb(levels: int, word: str = "anyOf") -> dict[str, Any]:
    """A schema in which each definition names the next one twice: 2**levels checks of one argument."""
    definitions: dict[str, Any] = {
        f"L{n}": {word: [{"$ref": f"#/$defs/L{n + 1}"}, {"$ref": f"#/$defs/L{n + 1}"}]} for n in range(levels)
    }
    definitions[f"L{levels}"] = {"type": "integer"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/L0"}}, "$defs": definitions}


def mcp_tool(schema: dict[str, Any], **changes: Any) -> WorkerSpec:
    config = {
        "server": {"name": "s", "transport": "http", "url": "https://mcp.example.com"},
        "tool": "t",
        "parameters": schema,
    }
    return WorkerSpec(name="bomb", kind="mcp", description="a tool", config=config, **changes)


def calculator(**changes: Any) -> WorkerSpec:
    return WorkerSpec(name="calculator", kind="calculator", description="sums", **changes)


@pytest.mark.parametrize("word", ["anyOf", "allOf", "oneOf"])
@pytest.mark.parametrize("levels", [14, 18, 30, 40])
def test_a_schema_that_doubles_is_refused_in_no_time(word: str, levels: int):
    started = time.perf_counter()
    assert TOO_LARGE in schema_problem(bomb(levels, word))
    assert time.perf_counter() - started < QUICK_S


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"$ref": "#top"}}, "$defs": {"a": {"$anchor": "top", "allOf": []}}},
        {"$id": "https://example.com/whole", "type": "object", "$ref": "whole#/$defs/L0"},
        {"$id": "https://example.com/whole", "type": "object", "allOf": [{"$dynamicRef": "#top"}]},
        {"type": "object", "dependentSchemas": {"a": {"$ref": "#/$defs/L0"}}},
        {"type": "object", "patternProperties": {"a": {"$ref": "#/$defs/L0"}}},
        {"type": "object", "additionalProperties": {"items": {"contains": {"not": {"$ref": "#/%24defs/L0"}}}}},
    ],
)
def test_no_way_of_referring_hides_the_size(schema: dict[str, Any]):
    inner = bomb(20)["$defs"]
    inner["L0"] |= {"$anchor": "top", "$dynamicAnchor": "top"}
    with pytest.raises(SchemaTooLarge, match="expanded"):
        SchemaSize(schema | {"$defs": inner})


def test_a_schema_may_refer_to_itself_below_but_not_in_a_circle():
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}, "name": {"type": "string"}}}
    assert schema_problem(tree) == ""
    assert SchemaCheck(tree).accepts({"child": {"child": {"name": "leaf"}}})
    assert "lead in a circle" in schema_problem({"type": "object", "allOf": [{"$ref": "#"}]})
    deep: dict[str, Any] = {"type": "integer"}
    for _ in range(150):
        deep = {"items": deep}
    assert "nested more than 100 deep" in schema_problem({"type": "object", "properties": {"x": deep}})


def test_large_schemas_without_doubling_are_usable():
    wide = {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(2_000)}}
    assert schema_problem(wide) == ""
    assert schema_problem(bomb(10)) == ""


def test_a_pool_file_with_such_a_schema_is_refused():
    pool = Pool(name="p", workers=(calculator(), mcp_tool(bomb(30))))
    with pytest.raises(InvalidPool, match=r"workers\.1\.config\.parameters: the schema has more than"):
        import_pool(export_pool(pool))
    with pytest.raises(InvalidPool, match=r"workers\.0\.output\.json_schema: the schema has more than"):
        check_pool(Pool(name="p", workers=(calculator(output=Output(json_schema=bomb(30))),)))
    inner = mcp_tool(bomb(30)).model_dump(mode="json")
    wrapped = WorkerSpec(name="w", kind="flaky", description="fails", config={"inner": inner, "share": 0.5, "seed": 1})
    with pytest.raises(InvalidPool):
        check_pool(Pool(name="p", workers=(wrapped,)))
    check_pool(Pool(name="p", workers=(calculator(), mcp_tool(bomb(30), enabled=False))))  # so it can be switched off


@pytest.mark.parametrize(
    "spec", [mcp_tool(bomb(30)), calculator(output=Output(json_schema=bomb(30))).model_copy(update={"name": "bomb"})]
)
def test_of_a_stored_pool_only_that_worker_is_refused(spec: WorkerSpec):
    stored = Pool.model_validate(Pool(name="p", workers=(calculator(), spec)).model_dump(mode="json"))
    load_config(stored.workers[1])

    async def call_both() -> None:
        async with live_pool(stored) as pool:
            arguments = {"expression": "6*7"} if spec.kind == "calculator" else {"x": "a"}
            refused = await pool.call(Action("bomb", arguments))
            assert refused.status is Status.PARSE_ERR and refused.error is not None
            assert refused.error.message.startswith("bomb cannot be called: ") and TOO_LARGE in refused.error.message
            assert (await pool.call(Action("calculator", {"expression": "6*7"}))).ok

    started = time.perf_counter()
    asyncio.run(call_both())
    assert time.perf_counter() - started < QUICK_S


def test_endpoints_of_spaces_are_refused_with_the_same_sentence():
    inner = {"$id": "https://example.com/inner", **bomb(30)}
    with pytest.raises(UnfitEndpoint, match=TOO_LARGE):
        _arguments({"parameters": [{"parameter_name": "x", "type": inner}]})


def offer_by_mcp(schema: dict[str, Any]) -> str:
    server = McpServer(name="s", transport="http", url="https://mcp.example.com")
    [offer] = _offers(server, [mcp_types.Tool(name="t", input_schema=schema)], taken=())
    return describe_offer(offer)


def offer_by_openapi(schema: dict[str, Any]) -> str:
    inner = json.loads(json.dumps(schema["$defs"]).replace("#/$defs/", "#/components/schemas/"))
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}}}
    document = {
        "openapi": "3.1.0",
        "paths": {"/p": {"post": {"operationId": "o", "requestBody": body}}},
        "components": {"schemas": inner},
        "servers": [{"url": "https://a.example"}],
    }
    [offer] = operations.list_operations(json.dumps(document))
    return describe_offer(offer)


def describe_offer(offer: Offer) -> str:
    """Why a tool cannot be taken, or what of its schema was left out so that it can be."""
    if offer.problem:
        return offer.problem
    SchemaCheck(offer.spec.config["parameters"])  # raises where it still asks for too much
    return "; ".join(offer.spec.config.get("mended", []))


@pytest.mark.parametrize("offer", [offer_by_mcp, offer_by_openapi])
def test_an_import_offers_no_such_schema(offer: Callable[[dict[str, Any]], str]):
    started = time.thread_time()
    assert re.search("more than|too large", offer(bomb(30))) and offer(bomb(3)) == ""
    assert time.thread_time() - started < QUICK_S


SMALL = {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "integer"}}}}
TREE = {
    "type": "object",
    "properties": {"t": {"$ref": "#/$defs/T"}},
    "$defs": {"T": {"oneOf": [{"properties": {"c": {"$ref": "#/$defs/T"}}, "minProperties": n} for n in (1, 2, 3)]}},
}


def nest(levels: int) -> Any:
    value: Any = 3
    for _ in range(levels):
        value = {"c": value}
    return {"t": value}


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        (SMALL, {"x": ["a"] * 400_000}, "x.0: this must be a whole number"),
        (SMALL, {"x": [1] * 600_000}, "more than 500,000 parts; give less at once"),
        (SMALL, {"x": "a" * 10_000_000}, "x: this must be a list"),
        (SMALL, nest(200_000), "nested more than 100 deep"),
        (TREE, nest(40), "may take more than 10,000,000 steps; give less at once"),
        (bomb(11), {"x": "a"}, "check each part of it"),
        (bomb(5), {"x": "a"}, "this has none of the forms that are allowed here"),
        ({"type": "object", "additionalProperties": False}, {str(n): 1 for n in range(100_000)}, "arguments: "),
    ],
)
def test_what_is_wrong_is_said_in_little_time_and_few_words(schema: dict[str, Any], value: Any, sentence: str):
    check = SchemaCheck(schema)
    started = time.perf_counter()
    assert not check.accepts(value)
    explained = check.explain(value, "arguments")
    assert time.perf_counter() - started < QUICK_S
    assert sentence in explained and len(explained) < 1_000


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(a+)+$",
        r"^(?!x)(a+)+$",
        r"^(?:(?!b)(?:a|a)(?=a|$|!))+$",
        r"^((a|a)(?=\2|!))+\1{2}$",
        r"(?:(a+)(a+)(?=(\1|\2)*y))+",
        r"^(?=(a+)+$)x|(?!y)(a|aa)+$",
    ],
)
def test_patterns_that_backtrack_end_soon(pattern: str):
    check = SchemaCheck({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}})
    started = time.perf_counter()
    assert not check.accepts({"x": "a" * 2_000 + "!"})
    assert time.perf_counter() - started < QUICK_S


def test_a_wide_pattern_meets_no_long_text():
    check = SchemaCheck({"type": "object", "properties": {"x": {"pattern": r"[\s\S]{1,5000}\w$"}}})
    assert check.accepts({"x": "a" * 300})
    assert "give less at once" in check.explain({"x": "a" * 1_000_000}, "arguments")
    plain = SchemaCheck({"type": "object", "properties": {"x": {"pattern": "^[a-z]+$"}}})
    assert plain.accepts({"x": "a" * 1_000_000})


def test_patterns_that_take_long_to_compile_are_refused():
    many = {"type": "object", "allOf": [{"pattern": rf"\w{{1,{80 + n}}}(?=a)"} for n in range(100)]}
    started = time.perf_counter()
    assert "patterns of the schema are larger than" in schema_problem(many)
    assert time.perf_counter() - started < QUICK_S


def test_many_unequal_items_are_compared_in_little_time():
    check = SchemaCheck({"type": "object", "properties": {"x": {"type": "array", "uniqueItems": True}}})
    items: list[Any] = [{"a": [n]} for n in range(100_000)]
    started = time.perf_counter()
    assert check.accepts({"x": items}) and not check.accepts({"x": [*items, items[0]]})
    assert time.perf_counter() - started < QUICK_S


def test_the_bomb_is_as_small_as_it_looks():
    assert len(json.dumps(bomb(30))) < 3_000

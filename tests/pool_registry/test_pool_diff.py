"""Differences between two versions of a pool, and pools with every kind of import as files."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.pool import Limits, Pool, check_pool, export_pool, import_pool
from pool_registry.pools.pool_diff import Change, diff, summary
from pool_registry.wants import disarm_pool, list_wants
from pool_registry.worker import WorkerSpec

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,11}", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=30)
STDIO = st.fixed_dictionaries(
    {"name": NAMES, "command": WORDS.filter(str.strip), "args": st.lists(WORDS, max_size=3)},
    optional={"cwd": WORDS, "env": st.dictionaries(st.sampled_from(["A", "B_KEY"]), st.just("env:NAME"))},
)
HTTP = st.fixed_dictionaries(
    {"name": NAMES, "transport": st.just("http"), "url": st.just("https://tools.example/mcp")},
    optional={"headers": st.just({"Authorization": "Bearer keyring:NAME"}), "allow_private": st.booleans()},
)
MCP = st.fixed_dictionaries({"server": STDIO | HTTP, "tool": WORDS, "parameters": st.just(SCHEMA)})
FUNCTION = st.fixed_dictionaries(
    {"target": st.sampled_from(["a.b:f", "/tools.py:f"])}, optional={"parameters": st.just(SCHEMA), "python": WORDS}
)


def spec(kind: str, config: st.SearchStrategy[Any]) -> st.SearchStrategy[WorkerSpec]:
    more = {"enabled": st.booleans(), "price_call": st.floats(0, 9), "timeout_s": st.integers(1, 60).map(float)}
    return st.builds(WorkerSpec, name=NAMES, kind=st.just(kind), description=WORDS, config=config, **more)


SPECS = spec("mcp", MCP) | spec("function", FUNCTION) | spec("calculator", st.just({}))
POOLS = st.builds(
    Pool,
    name=st.just("p"),
    description=WORDS,
    workers=st.lists(SPECS, max_size=4, unique_by=lambda each: each.name).map(tuple),
    limits=st.builds(Limits, max_rounds=st.integers(1, 3)),
)


@settings(max_examples=40, deadline=None)
@given(POOLS)
def test_a_pool_of_every_kind_comes_back_equal_from_its_file(pool):
    again = import_pool(export_pool(pool))
    assert again == pool and again.hash == pool.hash


@settings(max_examples=40, deadline=None)
@given(POOLS)
def test_a_pool_from_a_file_starts_nothing_before_a_person_agrees(pool):
    safe, wants, _ = disarm_pool(pool)
    assert [each.model_copy(update={"enabled": True}) for each in safe.workers] == [
        each.model_copy(update={"enabled": True}) for each in pool.workers
    ]
    starting = {each.name for each in pool.enabled if each.kind == "function" or _is_stdio(each)}
    assert starting <= set(wants) and not any(list_wants(each) for each in safe.enabled)
    assert {each.name for each in safe.enabled} == {each.name for each in pool.enabled} - set(wants)


def _is_stdio(each: WorkerSpec) -> bool:
    return each.kind == "mcp" and "command" in each.config["server"]


def test_a_wrapped_worker_that_starts_a_program_is_disarmed_and_named():
    inner = {"name": "i", "kind": "function", "description": "d", "config": {"target": "os:getcwd"}}
    wrapped = WorkerSpec(name="outer", kind="flaky", description="d", config={"inner": inner})
    safe, wants, _ = disarm_pool(Pool(name="p", workers=(wrapped,)))
    assert safe.enabled == ()
    assert wants == {"outer": ["starts the Python function os:getcwd on this machine, with your rights"]}


def test_nothing_falls_back_on_a_disarmed_worker():
    function = WorkerSpec(name="f", kind="function", description="d", config={"target": "os:getcwd"})
    safe, wants, notes = disarm_pool(Pool(name="p", workers=(worker("a", fallback="f"), function)))
    check_pool(safe)
    assert (safe.worker("a").fallback, safe.worker("a").enabled, len(notes), len(wants)) == ("", True, 1, 1)


@settings(max_examples=40, deadline=None)
@given(POOLS, POOLS)
def test_there_is_no_difference_exactly_when_the_content_is_the_same(before, after):
    assert (diff(before, after) == ()) == (before.hash == after.hash)
    json.dumps([[change.before, change.after] for change in diff(before, after)])  # data, fit for the page


@settings(max_examples=40, deadline=None)
@given(POOLS, POOLS)
def test_the_difference_the_other_way_round_is_its_mirror(before, after):
    mirrored = {"added": "removed", "removed": "added", "changed": "changed"}
    forth = {(each.what, each.field.partition(".")[0], json.dumps(each.before)) for each in diff(before, after)}
    back = {(mirrored[each.what], each.field.partition(".")[0], json.dumps(each.after)) for each in diff(after, before)}
    assert forth == back


def worker(name: str, **settings: Any) -> WorkerSpec:
    return WorkerSpec(**{"name": name, "kind": "calculator", "description": "d", **settings})


def test_every_kind_of_change_is_told_with_its_place():
    server = {"name": "s", "command": "npx", "args": ["-y", "a"]}
    tool = worker("tool", kind="mcp", config={"server": server, "tool": "t", "parameters": SCHEMA})
    other = {"server": {**server, "command": "uvx", "cwd": "/x"}, "tool": "t", "parameters": SCHEMA}
    before = Pool(
        name="p", workers=(worker("gone", timeout_s=3), worker("a"), worker("b"), tool, worker("old", retries=5))
    )
    after = Pool(
        name="p",
        description="new words",
        limits=Limits(max_rounds=2),
        workers=(
            worker("b"),
            worker("a", retries=0),
            tool.model_copy(update={"config": other}),
            worker("fresh", timeout_s=4),
            worker("new", retries=5),
        ),
    )
    found = diff(before, after)
    assert [change for change in found if change.field] == [
        Change("changed", "", "description", "", "new words"),
        Change("changed", "", "limits.max_rounds", 6, 2),
        Change("changed", "a", "retries", 2, 0),
        Change("changed", "tool", "config.server.command", "npx", "uvx"),
        Change("added", "tool", "config.server.cwd", None, "/x"),
        Change("changed", "new", "name", "old", "new"),
        Change("changed", "", "order", ["a", "b", "tool", "old"], ["b", "a", "tool", "old"]),
    ]
    assert [(each.what, each.worker) for each in found if not each.field] == [("removed", "gone"), ("added", "fresh")]
    assert summary(found) == (
        "added fresh, removed gone, renamed old to new, changed a, tool, "
        "changed description, changed limits, changed order"
    )
    assert summary(()) == "no change"

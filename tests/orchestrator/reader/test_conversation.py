"""What a reader is shown before it plans: the listing, the query, and the lines of the workers most like it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.cards import LISTED_FIELDS_CHARS, ListingFormat, format_listed
from orchestrator.reader.conversation import HINT, open_conversation
from orchestrator.reader.needs import Need, parse_needs
from orchestrator.retrieval import sentence_vectors
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from pool_registry.schemas.output_check import Output
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec

QUERY = "What is the distance between the airports LHR and JFK?"


@pytest.fixture
def starter(monkeypatch) -> LivePool:
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    return open_live_pool(starter_pool())


def test_without_hints_the_query_stands_alone(starter):
    listing, query = open_conversation(QUERY, starter.workers.values())
    assert query.content == QUERY
    assert all(f"- {format_listed(worker)}" in listing.content for worker in starter.workers.values())


@given(st.text(alphabet="abc ()$'.,:é1\n", min_size=1).filter(lambda text: any(letter.isalpha() for letter in text)))
def test_a_need_can_repeat_every_line(description):
    pool = Pool(name="p", workers=(WorkerSpec(name="w", kind="calculator", description=description),))
    line = format_listed(open_live_pool(pool).workers["w"])
    if any(letter.isalpha() for letter in line):
        assert parse_needs(f"1. {line}\n2. {line} (1)") == [Need(line), Need(line, (1,))]
    assert not set("()$") & set(line)


def test_asides_and_examples_in_brackets_are_left_out_of_a_line():
    workers = open_live_pool(starter_pool()).workers
    assert format_listed(workers["calculator"]) == "Evaluates one arithmetic expression"
    assert format_listed(workers["room_a"]).startswith("Room A's memos: 'memo 17")


def test_hints_are_lines_of_the_listing_with_the_likeliest_worker_among_them(starter):
    listing, query = open_conversation(QUERY, starter.workers.values(), ListingFormat(hints=3))
    head, _, lines = query.content.partition(f"\n\n{HINT}\n")
    assert head == QUERY and len(lines.splitlines()) == 3
    assert set(lines.splitlines()) <= set(listing.content.splitlines())
    assert f"- {format_listed(starter.workers['great_circle'])}" in lines.splitlines()
    assert listing == open_conversation("another query", starter.workers.values(), ListingFormat(hints=3))[0]


def test_agents_are_marked_where_a_reader_learnt_them_so_and_other_lines_stay(starter):
    plain, marked = (
        open_conversation(QUERY, starter.workers.values(), ListingFormat(marks_agents=marks))[0].content.splitlines()
        for marks in (False, True)
    )
    agents = [name for name, worker in starter.workers.items() if worker.role == "agent"]
    changed = [(before, after) for before, after in zip(plain, marked, strict=True) if before != after]
    assert len(changed) == len(agents) > 0
    assert all(after == before.replace("- ", "- Agent: ", 1) for before, after in changed)


def list_one(schema: dict) -> str:
    pool = starter_pool()
    units = next(worker for worker in pool.workers if worker.name == "units")
    units = units.model_copy(update={"description": "Converts.", "output": Output(json_schema=schema)})
    workers = open_live_pool(pool.model_copy(update={"workers": (units,)})).workers.values()
    return open_conversation(QUERY, workers, ListingFormat(lists_fields=True))[0].content.splitlines()[1]


def test_fields_are_listed_where_they_are_known_of_one_object_or_of_those_of_a_list_and_needs_leave_them_out():
    row = {"type": "object", "properties": {"value": {"type": "number"}, "unit": {"type": "object"}}}
    assert list_one(row) == "- Converts {value, unit}"
    assert list_one({"type": "array", "items": row}) == "- Converts [{value, unit}]"
    assert list_one({"type": "number"}) == "- Converts"
    wide = {"type": "object", "properties": {f"a_field_of_{k}": {"type": "number"} for k in range(12)}}
    assert len(list_one(wide)) <= len("- Converts ") + LISTED_FIELDS_CHARS and list_one(wide).endswith("…")


@pytest.mark.parametrize(
    "listing",
    [ListingFormat(0), ListingFormat(4), ListingFormat(2, marks_agents=True), ListingFormat(2, lists_fields=True)],
)
def test_a_reader_is_shown_the_pool_as_it_learnt_it(starter, listing):
    shown = []

    async def write(messages, _grammar, _draw):
        shown.append(messages)
        return Completion("No worker of this pool can do this")

    asyncio.run(run_episode(EpisodeSpec(QUERY), ReaderPolicy("r", starter, write, listing=listing), starter))
    assert shown[0] == open_conversation(QUERY, starter.workers.values(), listing)

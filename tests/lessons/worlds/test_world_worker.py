"""A tool of a world: what its shape does on the table, and what it says to arguments that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_lessons.worlds.tables import MAX_INDIVIDUALS, MIN_INDIVIDUALS, fold_name, make_table
from podium_lessons.worlds.worker import WorldConfig, run_shape
from podium_lessons.worlds.world_data import list_worlds
from pool_registry.errors import BadCall, InvalidPool, WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.worker import WorkerSpec

TABLE = make_table("orchard", 7)
TREE, ROW = TABLE.names("tree")[0], TABLE.names("row")[0]
FIRST_ROW = TABLE.value("tree", TREE, "row")


def run(shape, arguments, **config):
    """The result of a shape whose parameters are named as their roles."""
    roles = {name: name for name in arguments}
    content = WorldConfig(domain="orchard", seed=7, shape=shape, roles=roles, arguments={}, **config)
    return run_shape(content, arguments)


def run_on_trees(shape, **config):
    return run(shape, {"target": FIRST_ROW}, entity="tree", field="row", **config)


@pytest.mark.parametrize("written", [TREE, TREE.upper(), f"the {TREE}", f" {TREE.lower()} ?", f"tree {TREE}"])
def test_a_name_is_found_as_people_write_it(written):
    assert run("get", {"name": written}, entity="tree", field="harvest_kg") == TABLE.value("tree", TREE, "harvest_kg")


def test_groups_are_listed_counted_added_up_and_ranked():
    members = [name for name in TABLE.names("tree") if TABLE.value("tree", name, "row") == FIRST_ROW]
    figures = [TABLE.value("tree", name, "harvest_kg") for name in members]
    assert run_on_trees("list") == members and run_on_trees("count") == len(members)
    assert run_on_trees("total", over="harvest_kg") == pytest.approx(sum(figures))
    assert run_on_trees("average", over="harvest_kg") == pytest.approx(sum(figures) / len(figures))
    assert run_on_trees("top", over="harvest_kg") == members[figures.index(max(figures))]
    by_choice = run("list", {"target": "cox"}, entity="tree", field="variety")
    assert by_choice == TABLE.members("tree", "variety", "Cox")


def test_a_passage_is_found_by_its_name_and_topic_and_its_number_is_read():
    note = TABLE.notes[0, TREE]
    assert run("find_note", {"request": f"branches cut from {TREE.lower()}?"}) == note.text
    assert run("note_about", {"name": TREE}, entity="tree", topic=0) == note.text
    assert run("read_number", {"text": note.text}) == note.figure
    assert run("find_note", {"request": "branches"}) == "No note fits."


def test_measures_come_in_the_unit_that_is_asked_for():
    spellings = {"kg": "own", "pounds": "other"}
    config = {"entity": "tree", "field": "harvest_kg", "spellings": spellings, "units": ("kilogram", "pound")}
    kilos, pounds = (run("get", {"name": TREE, "to": unit}, **config) for unit in spellings)
    assert pounds == pytest.approx(kilos * 2.20462, rel=1e-4)
    assert run("convert", {"value": 200, "to": "back"}, spellings={"back": "from"}) == pytest.approx(200 / 0.055)


@pytest.mark.parametrize(
    ("shape", "arguments", "value"),
    [
        ("days_between", {"start": "2024-03-01", "end": "2024-02-01"}, 29),
        ("add_days", {"start": "2024-02-27", "days": 3}, "2024-03-01"),
        ("larger", {"name_a": "a", "value_a": 1, "name_b": "b", "value_b": "2.5"}, "b"),
        ("threshold", {"value": 3, "limit": 3}, "no"),
        ("action", {"text_0": "x"}, "done"),
    ],
)
def test_general_tools(shape, arguments, value):
    assert run(shape, arguments) == value


@pytest.mark.parametrize(
    ("shape", "arguments", "config", "message"),
    [
        ("get", {"name": "tree 0"}, {"entity": "tree", "field": "row"}, "no tree 'tree 0'; they are called such as"),
        ("record", {"name": TREE, "field": "age"}, {"entity": "tree", "spellings": {"row": "row"}}, "use one of: row"),
        ("list", {"target": "nowhere"}, {"entity": "tree", "field": "variety"}, "nothing is called 'nowhere'"),
        ("add_days", {"start": "soon", "days": 3}, {}, "write it as 2024-03-31"),
        ("add_days", {"start": "2024-01-01", "days": 1e12}, {}, "too many days"),
        ("threshold", {"value": "much", "limit": 3}, {}, "'much' is not a number"),
        ("read_number", {"text": "no figure here"}, {}, "no number"),
        ("arithmetic", {"left": 1, "operation": "mod", "right": 2}, {"spellings": {"+": "add"}}, "use one of: \\+"),
    ],
)
def test_an_argument_that_means_nothing_is_explained(shape, arguments, config, message):
    with pytest.raises(BadCall, match=message):
        run(shape, arguments, **config)


def test_an_empty_group_has_no_average():
    empty = next(name for seed in range(50) for table in [make_table("orchard", seed)] for name in table.names("row")
                 if not table.members("tree", "row", name))  # fmt: skip
    seed = next(seed for seed in range(50) if empty in make_table("orchard", seed).names("row")
                and not make_table("orchard", seed).members("tree", "row", empty))  # fmt: skip
    content = WorldConfig(domain="orchard", seed=seed, shape="average", roles={"target": "t"}, arguments={},
                          entity="tree", field="row", over="harvest_kg")  # fmt: skip
    with pytest.raises(WorkerFault, match="no average"):
        run_shape(content, {"t": empty})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list_worlds()), st.integers(0, 2**26))
def test_every_world_has_distinct_individuals_with_values_in_range(domain, seed):
    table = make_table(domain, seed)
    names = [fold_name(name) for entity in table.records for name in table.names(entity)]
    assert len(set(names)) == len(names)
    for entity in table.data.entities:
        assert MIN_INDIVIDUALS <= len(table.names(entity.name)) <= MAX_INDIVIDUALS
        for field in entity.fields:
            values = [record[field.name] for record in table.records[entity.name].values()]
            if field.kind == "number":
                assert all(field.low <= value <= field.high for value in values)
            if field.kind == "reference":
                assert set(values) <= set(table.names(field.target))


def test_a_pool_with_an_unknown_domain_is_an_error_that_names_it():
    config = {"domain": "../projects/choir", "seed": 7, "shape": "count", "arguments": {"type": "object"}}
    with pytest.raises(InvalidPool, match=r"no domain '\.\./projects/choir'"):
        open_worker(WorkerSpec(name="f", kind="world", description="x", config=config))

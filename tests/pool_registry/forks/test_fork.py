"""Forks of pools: workers change copies, and the originals cannot be written to."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pool_registry.actions import Action, Observation
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import CannotFork
from pool_registry.forks import copies as limits
from pool_registry.forks.copies import Copies
from pool_registry.forks.differences import list_changes
from pool_registry.forks.fork import Fork, fork_pool
from pool_registry.mcp_client.copied_server import move_server
from pool_registry.mcp_client.server import McpServer
from pool_registry.processes import write_fence
from tests.pool_registry.forks.shop_pool import make_database, make_notes, make_pool

pytestmark = pytest.mark.medium


@pytest.fixture
def database(tmp_path) -> Path:
    return make_database(tmp_path)


@pytest.fixture
def notes(tmp_path) -> Path:
    return make_notes(tmp_path)


def call(fork: Fork, *actions: Action) -> list[Observation]:
    """Call workers of a fork, one after another."""

    async def once() -> list[Observation]:
        async with live_pool(fork.pool) as live:
            return [await live.call(action) for action in actions]

    return asyncio.run(once())


def count_orders(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("select count(*) from orders").fetchone()[0]


def test_a_server_of_a_database_changes_the_copy_which_readers_see(database, notes, tmp_path):
    fork = fork_pool(make_pool(database, notes), tmp_path / "fork", ["place_order"])
    assert fork.moved == {"place_order", "write_diary", "count_orders"}
    ordered, counted = call(fork, Action("place_order", {"item": "cup", "count": 3}), Action("count_orders", {}))
    assert ordered.error is None and counted.value == 2
    assert count_orders(database) == 1
    (change,) = fork.compare()
    assert change.place == str(database) and change.item == "a row of orders"
    assert (change.original, change.on_copy) == ("", "id 2, item cup, count 3")
    fork.delete()
    assert not (tmp_path / "fork").exists()


def test_a_program_on_copies_can_write_nowhere_else(database, notes, tmp_path):
    diary = tmp_path / "diary.txt"
    fork = fork_pool(make_pool(database, notes), tmp_path / "fork", ["place_order", "write_diary"])
    (refused,) = call(fork, Action("write_diary", {"path": str(diary)}))
    assert refused.error is not None
    assert not diary.exists()


def test_a_function_changes_the_copy_by_its_full_path_and_beside_itself(database, notes, tmp_path):
    fork = fork_pool(make_pool(database, notes), tmp_path / "fork", ["add_note"])
    (written,) = call(fork, Action("add_note", {"text": "sell eggs"}))
    assert written.value == "buy milk\nsell eggs\n"
    assert (notes / "list.txt").read_text() == "buy milk\n"
    (change,) = fork.compare()
    assert (Path(change.place), change.item) == (notes / "list.txt", "line 2")
    assert (change.original, change.on_copy) == ("", "sell eggs")


@pytest.mark.slow
def test_the_originals_are_untouched_in_fifty_trials(database, notes, tmp_path):
    pool, before = make_pool(database, notes), (database.read_bytes(), (notes / "list.txt").read_bytes())
    for trial in range(50):
        fork = fork_pool(pool, tmp_path / f"fork{trial}", ["place_order", "add_note"])
        ordered, noted = call(
            fork,
            Action("place_order", {"item": f"cup {trial}", "count": trial}),
            Action("add_note", {"text": f"note {trial}"}),
        )
        assert ordered.error is None and noted.error is None
        assert len(fork.compare()) == 2
        fork.delete()
    assert (database.read_bytes(), (notes / "list.txt").read_bytes()) == before


@pytest.mark.parametrize(
    "change",
    [
        {"permissions": None},
        {"permissions": {"write": ["{notes}"], "network": True}},
        {"permissions": {}},
    ],
)
def test_what_cannot_be_copied_is_refused_by_name(change, database, notes, tmp_path):
    pool = make_pool(database, notes)
    fields = {name: value for name, value in change.items() if value is not None}
    if fields.get("permissions", {}).get("write"):
        fields["permissions"]["write"] = [str(notes)]
    config = {key: value for key, value in pool.workers[2].config.items() if key != "permissions"} | fields
    pool = pool.model_copy(update={"workers": (pool.workers[2].model_copy(update={"config": config}),)})
    with pytest.raises(CannotFork, match="add_note may change something that cannot be copied"):
        fork_pool(pool, tmp_path / "fork", ["add_note"])
    assert not (tmp_path / "fork").exists()


def test_too_much_to_copy_is_refused(database, notes, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_FILES", 3)
    for number in range(3):
        (notes / f"{number}.txt").write_text("")
    with pytest.raises(CannotFork, match="holds too much"):
        fork_pool(make_pool(database, notes), tmp_path / "fork", ["add_note"])


def test_files_folders_and_tables_are_compared(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, extra in ((before, "gone.txt"), (after, "new.txt")):
        folder.mkdir()
        (folder / extra).write_text("x")
        (folder / "same.txt").write_text("same")
        (folder / "picture").write_bytes(b"\xff" + extra.encode())
    stock = "create table stock (item text primary key, count int); insert into stock values"
    with closing(sqlite3.connect(before / "a.db")) as connection:
        connection.executescript(f"{stock} ('pen', 1)")
    with closing(sqlite3.connect(after / "a.db")) as connection:
        connection.executescript(f"{stock} ('pen', 2), ('cup', 5); create table sales (item text)")
    listed = list_changes(before, after)
    changes = [(Path(one.place).name, one.item, one.original, one.on_copy) for one in listed]
    assert sorted(changes) == [
        ("a.db", "a row of stock", "", "item cup, count 5"),
        ("a.db", "a row of stock", "item pen, count 1", "item pen, count 2"),
        ("a.db", "table sales", "", "CREATE TABLE sales (item text)"),
        ("gone.txt", "", "a file of 1 bytes", ""),
        ("new.txt", "", "", "a file of 1 bytes"),
        ("picture", "", "a file of 9 bytes", "a file of 8 bytes"),
    ]


def test_no_link_is_followed(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the key is 7")
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        (folder / "note.txt").write_text("buy milk")
        (folder / "kept").symlink_to(secret)
    (after / "note.txt").unlink()
    (after / "note.txt").symlink_to(secret)
    (after / "zeros").symlink_to("/dev/zero")
    os.mkfifo(after / "pipe")
    changes = {Path(change.place).name: change.on_copy for change in list_changes(before, after)}
    assert changes == {
        "note.txt": f"a link to {secret}",
        "zeros": "a link to /dev/zero",
        "pipe": "no file of data, such as a pipe",
    }


def test_code_that_is_a_link_stays_as_it_is(database, notes, tmp_path):
    shared = tmp_path / "shared.py"
    shared.write_text(f"FOLDER = {str(notes)!r}")
    package = notes.parent / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "places.py").symlink_to(shared)
    code = notes.parent / "notes.py"
    code.write_text(f"import helpers\n{code.read_text()}")
    fork_pool(make_pool(database, notes), tmp_path / "fork", ["add_note"]).delete()
    assert shared.read_text() == f"FOLDER = {str(notes)!r}"


def test_a_folder_that_holds_the_copies_is_refused(tmp_path):
    with pytest.raises(CannotFork, match="holds Podium's own data folder"):
        Copies(tmp_path / "home" / "forks" / "one" / "after").add(tmp_path)


def test_computed_columns_and_damaged_databases_are_compared_as_far_as_they_can_be(tmp_path):
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    table = "create table sales (id integer primary key, price int, tax int generated always as (price / 5))"
    for file, price in ((before, 10), (after, 20)):
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(f"{table}; insert into sales (price) values ({price})")
    (change,) = list_changes(before, after)
    assert (change.original, change.on_copy) == ("id 1, price 10, tax 2", "id 1, price 20, tax 4")
    after.write_bytes(after.read_bytes()[:100] + b"\xff" * 3000)
    (change,) = list_changes(before, after)
    assert "cannot be compared" in change.on_copy


def test_an_argument_that_is_no_path_refuses_no_fork(tmp_path):
    copies = Copies(tmp_path / "copies")
    for text in ("x" * 300, "~nobody-at-all/x", "--limit=" + "9" * 300, "a\0b"):
        server = McpServer.model_construct(name="s", transport="stdio", command="run", args=(text,), env={}, cwd="")
        assert move_server(server, copies) is None


def test_a_fenced_program_has_no_sockets(tmp_path):
    ask = "import socket\ntry: socket.socket(socket.{})\nexcept OSError as e: print(e.errno)"
    for family in ("AF_INET", "AF_UNIX"):
        command = [sys.executable, write_fence.__file__, str(tmp_path), "--", sys.executable, "-c", ask.format(family)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"

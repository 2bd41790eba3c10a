"""A pool whose workers change something: an MCP server of a SQLite file, a function that writes to a folder."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

SHOP = Path(__file__).with_name("shop.py")
NOTES = '''from pathlib import Path

NOTES = Path({folder!r})
BESIDE = Path(__file__).with_name("notes")

def add_note(text: str) -> str:
    """Write a note down."""
    (NOTES / "list.txt").open("a").write(text + "\\n")
    return (BESIDE / "list.txt").read_text()
'''


def make_database(folder: Path) -> Path:
    """A SQLite file of one order."""
    file = folder / "shop" / "orders.db"
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table orders (id integer primary key, item text, count integer)")
        connection.execute("insert into orders (item, count) values ('pen', 1)")
        connection.commit()
    return file


def make_notes(folder: Path) -> Path:
    """A folder with one note, and beside it the function that adds to it."""
    notes = folder / "code" / "notes"
    notes.mkdir(parents=True)
    (notes / "list.txt").write_text("buy milk\n")
    (notes.parent / "notes.py").write_text(NOTES.format(folder=str(notes)))
    return notes


def make_pool(database: Path, notes: Path) -> Pool:
    """place_order, write_diary, add_note, and count_orders, which only reads."""
    server: JsonValue = {"name": "shop", "command": sys.executable, "args": [str(SHOP), str(database)]}
    order, diary, text = describe(item="string", count="integer"), describe(path="string"), describe(text="string")
    note: dict[str, JsonValue] = {
        "target": f"{notes.parent / 'notes.py'}:add_note",
        "permissions": {"write": [str(notes)]},
        "parameters": text,
    }
    count: dict[str, JsonValue] = {"database": str(database), "query": "select count(*) as orders from orders"}
    configs: dict[str, tuple[str, dict[str, JsonValue]]] = {
        "place_order": ("mcp", {"server": server, "tool": "place_order", "parameters": order}),
        "write_diary": ("mcp", {"server": server, "tool": "write_diary", "parameters": diary}),
        "add_note": ("function", note),
        "count_orders": ("sql", count),
    }
    workers = [
        WorkerSpec(name=name, kind=kind, description=name, config=config) for name, (kind, config) in configs.items()
    ]
    return Pool(name="shop", workers=tuple(workers))


def describe(**types: str) -> dict[str, JsonValue]:
    """The schema of required arguments of these types."""
    properties: dict[str, JsonValue] = {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(types)}

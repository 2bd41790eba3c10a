"""A pool that is not ours: a database of customers, a look-up of their cities and a calculator."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

CITIES = {"Lisbon": 545796, "Oslo": 709037, "Kyoto": 1463723, "Quito": 1763275, "Cairo": 10100166}


def describe_worker(name: str, kind: str, description: str, **config: JsonValue) -> WorkerSpec:
    return WorkerSpec(name=name, kind=kind, description=description, config=config)


def build_shop(folder: Path) -> Pool:
    """The pool, with its database in a folder."""
    file = folder / "crm.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("create table customers (id integer primary key, name text, city text, debt real)")
        rows = [(f"Firm {chr(65 + k)}", list(CITIES)[k % 5], 100.5 + 17 * k) for k in range(15)]
        database.executemany("insert into customers (name, city, debt) values (?, ?, ?)", rows)
        database.commit()
    query = "select city from customers where name = :customer"
    lookup = describe_worker(
        "city_of", "sql", "Returns the city of a customer.",
        database=str(file), query=query, parameters={"customer": "the name of a customer"},
    )  # fmt: skip
    tables = describe_worker("crm", "sql", "Reads the company's database.", database=str(file))
    return Pool(
        name="shop", workers=(lookup, tables, describe_worker("calc", "calculator", "Evaluates an expression."))
    )

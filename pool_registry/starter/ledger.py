"""The shipped database: synthetic companies and a currency desk, made from hashes.

Deterministic to the last row, so that every machine has the same facts, and known to no model: they can
only be looked up. Companies are split into training (0-299), validation (1000-1299) and test (2000-2299).
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from pool_registry.atomic_write import draft_file
from pool_registry.storage.data_folder import Home, find_home

VERSION = 1
COMPANIES = {"train": range(300), "validation": range(1000, 1300), "test": range(2000, 2300)}
REGIONS = ("north", "south", "east", "west")
STATUSES = ("paid", "paid", "paid", "open", "returned")
COUNTRIES = ("US", "DE", "FR", "GB", "PT", "BR", "CA", "AU", "SE", "JP")
# How many of each currency one US dollar buys, about which the fixings move.
CURRENCIES = {
    "EUR": 0.92, "GBP": 0.79, "JPY": 141.0, "CHF": 0.88, "CAD": 1.35, "AUD": 1.50, "SEK": 10.5, "NOK": 10.6,
}  # fmt: skip
FIRST_DAY, LAST_DAY = date(2022, 1, 1), date(2024, 12, 31)
ORDERS_A_QUARTER = 2  # per company and region, at least one of them paid

SCHEMA = """
CREATE TABLE companies (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE customers (id INTEGER PRIMARY KEY, company_id INTEGER NOT NULL REFERENCES companies, name TEXT NOT NULL, region TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, company_id INTEGER NOT NULL REFERENCES companies, name TEXT NOT NULL, unit_price REAL NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, company_id INTEGER NOT NULL, customer_id INTEGER NOT NULL REFERENCES customers, placed TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE items (order_id INTEGER NOT NULL REFERENCES orders, product_id INTEGER NOT NULL REFERENCES products, qty INTEGER NOT NULL, discount REAL NOT NULL);
CREATE TABLE fixings (day TEXT NOT NULL, currency TEXT NOT NULL, rate REAL NOT NULL, PRIMARY KEY (day, currency)) WITHOUT ROWID;
CREATE INDEX orders_by_company ON orders (company_id, placed);
CREATE INDEX items_by_order ON items (order_id);
CREATE VIEW sales AS
  SELECT o.company_id, c.region, o.status, o.placed, i.qty * p.unit_price * (1 - i.discount) AS revenue
  FROM orders o JOIN customers c ON c.id = o.customer_id JOIN items i ON i.order_id = o.id
  JOIN products p ON p.id = i.product_id;
"""  # noqa: E501

_build_lock = threading.Lock()


def ledger_database(home: Home | None = None) -> Path:
    """Return the database file, built on first use (about two seconds)."""
    path = (home or find_home()).built / f"ledger-v{VERSION}.db"
    if not path.exists():
        with _build_lock:
            if not path.exists():
                _build(path)
    return path


def _build(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_file(path) as draft, closing(sqlite3.connect(draft)) as database:
        database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + SCHEMA)
        for split in COMPANIES.values():
            for company in split:
                _add_company(database, company)
        database.executemany("INSERT INTO fixings VALUES (?, ?, ?)", _fixings())
        database.commit()


def _add_company(database: sqlite3.Connection, company: int) -> None:
    numbers = _numbers(f"company/{company}")
    database.execute(
        "INSERT INTO companies VALUES (?, ?, ?)",
        (company, f"Company {company}", COUNTRIES[next(numbers) % len(COUNTRIES)]),
    )
    customers = [(company * 10 + k, company, f"Customer {company}-{k}", region) for k, region in enumerate(REGIONS)]
    products = [
        (company * 10 + k, company, f"Product {company}-{k}", 5 + (next(numbers) % 49_500) / 100) for k in range(6)
    ]
    database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", customers)
    database.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
    orders, items = [], []
    for number, (quarter_start, days, customer) in enumerate(_slots(company)):
        order = company * 1000 + number
        placed = quarter_start + timedelta(days=next(numbers) % days)
        # Every slot's first order is paid, so that every quarter of every region has revenue.
        status = "paid" if number % ORDERS_A_QUARTER == 0 else STATUSES[next(numbers) % len(STATUSES)]
        orders.append((order, company, customer, placed.isoformat(), status))
        product, quantity, discount = next(numbers) % 6, 1 + next(numbers) % 40, (next(numbers) % 5) * 0.05
        items.append((order, company * 10 + product, quantity, round(discount, 2)))
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", orders)
    database.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", items)


def _slots(company: int) -> Iterator[tuple[date, int, int]]:
    """Yield (first day, days, customer id) of every order: some in each region and quarter."""
    for year in range(FIRST_DAY.year, LAST_DAY.year + 1):
        for month in (1, 4, 7, 10):
            start = date(year, month, 1)
            end = date(year + (month == 10), (month + 3) % 12 or 12, 1)
            for k in range(len(REGIONS)):
                for _ in range(ORDERS_A_QUARTER):
                    yield start, (end - start).days, company * 10 + k


def _fixings() -> Iterator[tuple[str, str, float]]:
    for currency, level in CURRENCIES.items():
        numbers = _numbers(f"fixing/{currency}")
        for offset in range((LAST_DAY - FIRST_DAY).days + 1):
            swing = (next(numbers) % 2001 - 1000) / 10_000  # up to 10 % either way
            yield (FIRST_DAY + timedelta(days=offset)).isoformat(), currency, round(level * (1 + swing), 4)


def _numbers(seed: str) -> Iterator[int]:
    """Yield 32-bit numbers without end, from a hash of the seed."""
    block = 0
    while True:
        digest = hashlib.blake2b(f"podium/ledger/{VERSION}/{seed}/{block}".encode()).digest()
        yield from struct.unpack("<16I", digest)
        block += 1

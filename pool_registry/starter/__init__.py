"""The starter pool: what a new user finds. Works without a key, a GPU or a download.

The language model in it is the small one that ships as a package; `reader` is rule-based and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

if TYPE_CHECKING:
    from pool_registry.storage.pool_store import PoolStore  # a published Space has the starter's data, and no database

STARTER_MODEL = "starter:smollm2"

SOLVER = "You answer questions. Give the final answer in one short line."
PLANNER = "You split a task into a few numbered steps, one short line each."
VERIFIER = "You check a proposed answer and reply with the final answer in one short line."


# Hashes of starter pools of earlier versions: one that nobody changed is brought up to date.
EARLIER = {"216586125135b5e423d13a2c95b996bf128aec61cf02a8ea82e845a4b57338a3"}


def seed_starter(pools: PoolStore) -> None:
    """Make the starter pool be there, and be this version's unless somebody has edited it."""
    if "starter" not in pools.names() or pools.latest("starter").pool.hash in EARLIER:
        pools.save(starter_pool())


def starter_pool() -> Pool:
    """The pool that start-up seeds when there is none."""
    return Pool(
        name="starter",
        description="Real tools on real data, and a small local model. No key, no GPU, no download.",
        workers=(*_tools(), *_agents(), _self()),
    )


def _tools() -> tuple[WorkerSpec, ...]:
    return (
        WorkerSpec(
            name="calculator",
            kind="calculator",
            description="Evaluates one arithmetic expression, for example round((3 + 4.5) / 2, 2).",
        ),
        WorkerSpec(
            name="sql",
            kind="sql",
            description=(
                "Reads the company database with one SELECT. View sales(company_id, region, status, placed, "
                "revenue): region is north, south, east or west; status is paid, open or returned; placed is "
                "an ISO date in 2022-2024; revenue in US dollars is net of item discounts."
            ),
            config={"database": "starter:ledger"},
        ),
        WorkerSpec(
            name="fx_desk",
            kind="sql",
            description="The desk's fixing: how much of a currency one US dollar bought on a day.",
            config={
                "database": "starter:ledger",
                "query": "select rate from fixings where day = :day and currency = :currency",
                "parameters": {
                    "day": "ISO date, 2022-2024",
                    "currency": "EUR, GBP, JPY, CHF, CAD, AUD, SEK or NOK",
                },
                "sample": {"day": "2023-06-30", "currency": "EUR"},
            },
        ),
        WorkerSpec(
            name="calendar",
            kind="calendar",
            description="Business days and public holidays: 'last business day of Q2 2023 in US'.",
        ),
        WorkerSpec(
            name="units",
            kind="units",
            description="Converts a value between units of measure.",
        ),
        WorkerSpec(
            name="atlas_search",
            kind="search",
            description="Finds one passage of the CIA World Factbook: 'Mexico Geography Irrigated land'.",
            config={"corpus": "starter:factbook", "top_k": 1},
        ),
        WorkerSpec(
            name="reader",
            kind="extractor",
            description=(
                "Reads the passages it may see: 'the number in the passage', 'the country in the passage', "
                "'the number in each passage'."
            ),
        ),
        WorkerSpec(
            name="python",
            kind="python",
            description="Runs a Python snippet in a sandbox and returns its last value or what it printed.",
            timeout_s=20,
        ),
        WorkerSpec(
            name="airports",
            kind="airports",
            description="Tells where an airport is: 'country of LIS', 'time zone of LIS', 'coordinates of LIS'.",
        ),
        WorkerSpec(
            name="great_circle",
            kind="great_circle",
            description="Distance in kilometers between two airports: 'LIS to GRU'.",
        ),
        WorkerSpec(
            name="clock",
            kind="clock",
            description=(
                "Local times: '2025-04-20 21:30 at LIS plus 90 minutes, local at GRU', or "
                "'... plus 7935.3 km / 840 km/h, local at GRU'."
            ),
        ),
        WorkerSpec(
            name="elements",
            kind="elements",
            description="Molar mass in grams per mole: 'molar mass of CuSO4+5H2O'.",
        ),
        *(
            WorkerSpec(
                name=f"room_{room}",
                kind="memos",
                description=f"Room {room.upper()}'s memos (generated text): 'memo 17: penalty total, section 4'.",
                config={"room": room},
            )
            for room in "abc"
        ),
    )


def _agents() -> tuple[WorkerSpec, ...]:
    parts = (
        ("solver", "A small general language model that answers short questions.", SOLVER),
        ("planner", "The same small model, told to split a task into steps.", PLANNER),
        ("verifier", "The same small model, told to check an answer.", VERIFIER),
    )
    return tuple(
        WorkerSpec(
            name=name,
            kind="local_model",
            description=description,
            config={"model": STARTER_MODEL, "role": role, "max_tokens": 96},
            max_concurrency=16,
            timeout_s=300,
        )
        for name, description, role in parts
    )


def _self() -> WorkerSpec:
    return WorkerSpec(
        name="self",
        kind="orchestrator",
        description="Solves a self-contained part of the query with an episode of its own.",
        timeout_s=300,
    )

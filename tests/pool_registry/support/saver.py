"""A process of savers: each edits a worker of its own in one pool, again and again, and notes what was acknowledged.

    python -m tests.pool_registry.support.saver HOME FIRST COUNT EDITS ACKNOWLEDGED

Saver K writes 1, 2, ... EDITS into the description of worker wK, every other time from a stale version, and appends
"K N" to the file once its save has returned. A process that goes on after a kill begins behind what is saved.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import partial

from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.storage.upgrade import open_engine

POOL = "shared"


def main(home: str, first: str, count: str, edits: str, acknowledged: str) -> None:
    pools = PoolStore(open_engine(find_home(home)))
    file = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    savers = range(int(first), int(first) + int(count))
    threads = [threading.Thread(target=save_edits, args=(pools, saver, int(edits), file)) for saver in savers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def save_edits(pools: PoolStore, saver: int, edits: int, file: int) -> None:
    seen = pools.latest(POOL).pool
    for number in range(read_number(seen, saver) + 1, edits + 1):
        saved = pools.edit(POOL, partial(write_number, saver, number), seen.hash if number % 2 else "")
        os.write(file, f"{saver} {number}\n".encode())
        seen = saved.stored.pool  # stale by the next edit: the other savers go on


def read_number(pool: Pool, saver: int) -> int:
    return int(pool.worker(f"w{saver}").description)


def write_number(saver: int, number: int, pool: Pool) -> Pool:
    spec = pool.worker(f"w{saver}")
    return pool.with_worker(spec.model_copy(update={"description": str(number)}), spec.name)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Values that are loaded once per process."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from pool_registry.load_once import LoadOnce


def test_concurrent_first_calls_load_once() -> None:
    loads = []

    def load() -> object:
        time.sleep(0.05)
        loads.append(threading.get_ident())
        return object()

    once = LoadOnce(load)
    with ThreadPoolExecutor(4) as threads:
        values = list(threads.map(lambda _: once(), range(4)))
    assert len(loads) == 1
    assert all(value is values[0] for value in values)


def test_ready_loads_in_another_thread() -> None:
    once = LoadOnce(threading.get_ident)
    asyncio.run(once.ready())
    assert once() != threading.get_ident()

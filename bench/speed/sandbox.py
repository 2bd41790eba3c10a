"""What a call of the sandbox costs, beside a bare interpreter, measured in one run on one machine.

    python bench/speed/sandbox.py [--json] [--calls N] [--save PATH]

Every level that stands the self-test here, and `python -I -S -c` as a subprocess: no isolation at all, and no
imports, so it is the floor of every design that starts an interpreter for each call. The snippet is `1 + 1`.
Warm calls follow each other at once. A cold call is the first of a sandbox: it starts the fork server. CPU time is
that of the processes inside, per warm call; it depends less on what else the machine does than wall-clock time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from pool_registry.sandbox import runner  # noqa: E402
from pool_registry.sandbox.levels import Level  # noqa: E402
from pool_registry.sandbox.runner import Sandbox  # noqa: E402

SNIPPET = "1 + 1"
GOAL_MS = 25.0
Call = Callable[[], Awaitable[object]]


async def sequential(call: Call, count: int) -> list[float]:
    """Milliseconds of each of `count` calls, one after the other."""
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


async def rate(call: Call, count: int, at_a_time: int) -> float:
    """Calls per second with `at_a_time` under way."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_a_time)))
    return count / (time.perf_counter() - started)


async def figures(call: Call, count: int) -> dict[str, float]:
    taken = sorted(await sequential(call, count))
    return {
        "median_ms": round(statistics.median(taken), 2),
        "p95_ms": round(taken[int(0.95 * (len(taken) - 1))], 2),
        "calls_per_s_2": round(await rate(call, count, 2), 1),
        "calls_per_s_8": round(await rate(call, count, 8), 1),
    }


async def time_sandbox(level: Level, count: int) -> dict[str, float]:
    cold = []
    for _ in range(5):
        fresh = Sandbox(level=level)
        cold += await sequential(lambda fresh=fresh: fresh.run(SNIPPET), 1)
        await fresh.close()
    sandbox = Sandbox(level=level)
    try:
        assert (await sandbox.run(SNIPPET)).value == 2
        before = await _inside_s(sandbox)
        await sequential(lambda: sandbox.run(SNIPPET), count)
        cpu_ms = (await _inside_s(sandbox) - before) / count * 1000
        measured = await figures(lambda: sandbox.run(SNIPPET), count)
    finally:
        await sandbox.close()
    return {**measured, "cold_ms": round(statistics.median(cold), 2), "cpu_ms": round(cpu_ms, 2)}


async def _inside_s(sandbox: Sandbox) -> float:
    """CPU seconds of the fork server and of all its children that have ended."""
    top = psutil.Process((await sandbox._server()).process.pid)
    return sum(sum(item.cpu_times()[:4]) for item in (top, *top.children(recursive=True)))


async def bare() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", f"print({SNIPPET})", stdout=asyncio.subprocess.PIPE, env={}
    )
    said, _ = await process.communicate()
    assert said == b"2\n"


async def measure(count: int) -> dict[str, Any]:
    load = os.getloadavg()[0]
    result: dict[str, Any] = {"bare": await figures(bare, count)}
    for level in Level:
        if await runner._attack(level) is None:
            result[level.name.lower()] = await time_sandbox(level, count)
    result["goal"] = {"warm_median_ms": GOAL_MS}
    result["machine"] = {
        "cpus": os.cpu_count(),
        "load_1min": round(load, 2),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    return result


def table(result: dict[str, Any]) -> str:
    names = ("median_ms", "p95_ms", "calls_per_s_2", "calls_per_s_8", "cold_ms", "cpu_ms")
    lines = [f"{'':8}" + "".join(f"{name:>15}" for name in names)]
    for row in ("bare", "full", "kernel"):
        if row in result:
            lines.append(f"{row:8}" + "".join(f"{result[row].get(name, ''):>15}" for name in names))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--calls", type=int, default=200, help="warm calls for each figure")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    result = asyncio.run(measure(options.calls))
    if options.save:
        options.save.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()

"""How long a served pool takes to answer "Hello!", which no trained checkpoint can plan for: its fallback's time.

    python bench/speed/greeting.py [--json] [--requests N] [--save PATH]

Real servers (`podium serve`), one request after another. A first request comes as soon as the server answers, while the
fallback's model is still being loaded; warm ones follow. `waiting` is the time that the process was not given a core,
where the system counts it: on quiet cores the answer would have come about that much sooner.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

LIMIT_S = 5.0
START_S = 240.0
ORCHESTRATOR = "starter-grpo"


@dataclass(frozen=True, slots=True)
class GreetingTimes:
    """Seconds until "Hello!" was answered, and how: the first words of the answer."""

    pool: str
    first_s: float
    warm_s: tuple[float, ...]
    waiting_s: float  # of the median warm request, all threads of the server together
    load: float  # of the machine over the last minute
    answer: str

    @property
    def warm_median_s(self) -> float:
        return median(self.warm_s)


def add_pool_without_model(home: str) -> None:
    """A pool with tools alone: its fallback is a sentence."""
    from studio.prepare import prepare_store

    tools = [WorkerSpec(name=name, kind=name, description=f"{name}.") for name in ("calculator", "units", "calendar")]
    store = prepare_store(home)
    store.pools.save(Pool(name="tools", workers=tuple(tools)))
    store.close()


@contextmanager
def serve(home: str, pool: str) -> Iterator[tuple[str, int]]:
    """A server of the pool: its address, once it answers, and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--pool", pool, "--orchestrator", ORCHESTRATOR, "--port", str(port), "--home", home]
    process = subprocess.Popen([sys.executable, "-m", "studio", "serve", *options], stdout=subprocess.DEVNULL)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
    try:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
                break
            time.sleep(0.05)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def greet(url: str, pool: str) -> tuple[float, str]:
    """Seconds until the answer to "Hello!", and the answer."""
    body = {"model": f"podium-{pool}", "messages": [{"role": "user", "content": "Hello!"}]}
    headers = {"content-type": "application/json"}
    started = time.perf_counter()
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        reply = json.load(answer)
    return time.perf_counter() - started, str(reply["choices"][0]["message"]["content"])


def waiting_seconds(process: int) -> float:
    """How long the threads of a process have waited for a core; 0 where the system does not say."""
    waited = 0
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with suppress(OSError):
            waited += int(path.read_text().split()[1])
    return waited / 1e9


def measure(home: str, pool: str, requests: int) -> GreetingTimes:
    """Greet a served pool once cold and `requests` times warm."""
    with serve(home, pool) as (url, process):
        first_s, _ = greet(url, pool)
        greet(url, pool)  # the model may have come only now
        rows = []
        for _ in range(requests):
            before = waiting_seconds(process)
            seconds, answer = greet(url, pool)
            rows.append((seconds, waiting_seconds(process) - before, answer))
    rows.sort()
    middle = rows[len(rows) // 2]
    load = round(os.getloadavg()[0], 1)
    return GreetingTimes(pool, first_s, tuple(row[0] for row in rows), middle[1], load, middle[2][:60])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as home:
        subprocess.run([sys.executable, "-m", "studio", "prepare", "--home", home], check=True, stdout=sys.stderr)
        add_pool_without_model(home)
        results = [measure(home, pool, options.requests) for pool in ("starter", "tools")]
    rows = [{**asdict(result), "warm_median_s": result.warm_median_s} for result in results]
    document = json.dumps({"cores": os.cpu_count(), "limit_s": LIMIT_S, "rows": rows}, indent=1)
    if options.save:
        options.save.write_text(document + "\n")
    if options.json:
        print(document)
        return
    for row in results:
        figures = f"first {row.first_s:.1f} s, warm {row.warm_median_s:.2f} s, of which {row.waiting_s:.2f} s waiting"
        print(f"{row.pool:8} {figures}  (load {row.load})  {row.answer!r}")


if __name__ == "__main__":
    main()

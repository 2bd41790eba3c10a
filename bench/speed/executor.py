"""Podium's executor beside bare asyncio and two graph engines, measured in one run on one machine.

    python bench/speed/executor.py [--json] [--quick] [--save PATH]

Three workloads (DESIGN.md, section 7): an uneven graph of 5 steps whose critical path takes 120 ms and whose
layers take 210 ms; 50 steps that do nothing, 10 layers of 5 that each see the whole layer before; 1,000 concurrent
runs of 6 steps of 50 ms, 3 deep. Every engine runs in a process of its own. Podium runs as it does in the studio:
`run_episode` over a `LivePool`, access lists enforced, every event traced to SQLite. `podium_on_disk` is the same run
until its last event is fsynced. The peers build their graph once; Podium gets a new plan with every run.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import operator
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

Run = Callable[[], Awaitable[object]]
ENGINES = ("podium", "asyncio", "langgraph", "langgraph_functional", "pydantic_graph")
GOALS = {"uneven_graph_ms": 125, "noop_us_per_step": 40, "concurrent_s": 0.45, "concurrent_mb": 30}


@dataclass(frozen=True)
class Graph:
    """Steps 1, 2, 3 ...: the steps each one waits for, and how long each one sleeps."""

    access: dict[int, tuple[int, ...]]
    seconds: dict[int, float]

    @staticmethod
    def layers(widths: list[int], seconds: float) -> Graph:
        access: dict[int, tuple[int, ...]] = {}
        before: tuple[int, ...] = ()
        for width in widths:
            layer = tuple(range(len(access) + 1, len(access) + width + 1))
            access.update(dict.fromkeys(layer, before))
            before = layer
        return Graph(access, dict.fromkeys(access, seconds))

    @property
    def last(self) -> tuple[int, ...]:
        """Steps that nobody waits for."""
        return tuple(k for k in self.access if not any(k in waits for waits in self.access.values()))


UNEVEN = Graph({1: (), 2: (), 3: (1,), 4: (2,), 5: (3, 4)}, {1: 0.010, 2: 0.100, 3: 0.100, 4: 0.010, 5: 0.010})
NOOP = Graph.layers([5] * 10, 0.0)
SMALL = Graph.layers([2, 3, 1], 0.050)


async def work(seconds: float) -> str:
    """What every step of every engine does."""
    if seconds:
        await asyncio.sleep(seconds)
    return "done"


# Engines: `ENGINE(graph)` builds what can be built once and returns a function that runs the graph.


def bare_asyncio(graph: Graph) -> Run:
    """The limit: a task per step, started by a counter of what it still waits for."""
    readers: dict[int, list[int]] = {k: [] for k in graph.access}
    for k, waits in graph.access.items():
        for before in waits:
            readers[before].append(k)

    async def run() -> dict[int, str]:
        loop = asyncio.get_running_loop()
        waiting = {k: len(waits) for k, waits in graph.access.items()}
        values: dict[int, str] = {}
        tasks: dict[int, asyncio.Task[None]] = {}
        finished = loop.create_future()

        async def step(k: int) -> None:
            values[k] = await work(graph.seconds[k])
            for reader in readers[k]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    tasks[reader] = loop.create_task(step(reader))
            if len(values) == len(waiting):
                finished.set_result(None)

        for k, count in list(waiting.items()):
            if not count:
                tasks[k] = loop.create_task(step(k))
        await finished
        return values

    return run


def langgraph(graph: Graph) -> Run:
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        values: Annotated[dict[int, str], operator.or_]

    def node(k: int) -> Callable[[State], Awaitable[State]]:
        async def step(_state: State) -> State:
            return {"values": {k: await work(graph.seconds[k])}}

        return step

    builder = StateGraph(State)
    for k, waits in graph.access.items():
        builder.add_node(str(k), node(k))
        builder.add_edge([str(before) for before in waits] if waits else START, str(k))
    for k in graph.last:
        builder.add_edge(str(k), END)
    compiled = builder.compile()
    return lambda: compiled.ainvoke({"values": {}}, {"recursion_limit": 100})


def langgraph_functional(graph: Graph) -> Run:
    from langgraph.func import entrypoint, task

    @task
    async def call(k: int, _seen: list[str]) -> str:
        return await work(graph.seconds[k])

    @entrypoint()
    async def workflow(_: object) -> list[str]:
        steps: dict[int, asyncio.Task[str]] = {}

        async def step(k: int) -> str:
            seen = [await steps[before] for before in graph.access[k]]
            return await call(k, seen)

        for k in graph.access:
            steps[k] = asyncio.create_task(step(k))
        return await asyncio.gather(*steps.values())

    return lambda: workflow.ainvoke({})


def pydantic_graph(graph: Graph) -> Run:
    from pydantic_graph import GraphBuilder, StepContext, reduce_list_append

    builder = GraphBuilder(output_type=list[str])

    def node(k: int) -> Any:
        async def step(_: StepContext[None, None, Any]) -> str:
            return await work(graph.seconds[k])

        return builder.step(step, node_id=f"step{k}")

    steps = {k: node(k) for k in graph.access}
    joins: dict[tuple[int, ...], Any] = {}
    edges = []

    def after(waits: tuple[int, ...]) -> Any:
        """What a step with this access list hangs on: the start, one step, or a join of several."""
        if len(waits) < 2:
            return steps[waits[0]] if waits else builder.start_node
        if waits not in joins:
            joins[waits] = builder.join(reduce_list_append, initial_factory=list[str], node_id=f"join{len(joins)}")
            edges.append(builder.edge_from(*(steps[k] for k in waits)).to(joins[waits]))
        return joins[waits]

    targets: dict[tuple[int, ...], list[Any]] = {}
    for k, waits in graph.access.items():
        targets.setdefault(waits, []).append(steps[k])
    for waits, nodes in targets.items():
        edges.append(builder.edge_from(after(waits)).to(*nodes))
    end = after(graph.last) if len(graph.last) > 1 else steps[graph.last[0]]
    if len(graph.last) == 1:

        async def as_list(context: StepContext[None, None, str]) -> list[str]:
            return [context.inputs]

        collect = builder.step(as_list, node_id="collect")
        edges.append(builder.edge_from(end).to(collect))
        end = collect
    edges.append(builder.edge_from(end).to(builder.end_node))
    builder.add(*edges)
    built = builder.build()
    return lambda: built.run(state=None, deps=None)


def podium(graph: Graph, traces: Any) -> Run:
    """The public path: a pool of workers, a fixed orchestrator that writes one turn, `run_episode`."""
    from orchestrator.engine.episode import Episode
    from orchestrator.engine.episode_loop import EpisodeSpec, Orchestrator, run_episode
    from orchestrator.plan import Step, Turn
    from pool_registry.calls.live_pool import open_live_pool
    from pool_registry.kinds import add_kind
    from pool_registry.pool import Limits, Pool
    from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec

    class Sleeper(Worker[NoConfig]):
        @property
        def parameters(self) -> Mapping[str, Any]:
            seconds = {"type": "number", "minimum": 0}
            return {
                "type": "object",
                "properties": {"seconds": seconds},
                "required": ["seconds"],
                "additionalProperties": False,
            }

        async def call(self, call: Call) -> Reply:
            return Reply(await work(call.arguments["seconds"]))

    module = sys.modules[__name__]
    module.Sleeper = Sleeper  # type: ignore[attr-defined]
    Sleeper.__qualname__ = "Sleeper"  # kinds name their class by module and qualified name
    add_kind("sleeper", Sleeper)
    workers = tuple(
        WorkerSpec(name=f"w{k}", kind="sleeper", description="sleeps", max_concurrency=1024) for k in range(6)
    )

    class Fixed(Orchestrator):
        name = "fixed"

        async def turn(self, _episode: Episode) -> Turn:
            return Turn(
                tuple(Step(k, f"w{k % 6}", {"seconds": graph.seconds[k]}, waits) for k, waits in graph.access.items()),
                answer=f"${len(graph.access)}",
            )

    pool = open_live_pool(Pool(name="bench", workers=workers, limits=Limits(max_steps=100)))
    fixed = Fixed()

    async def run() -> object:
        episode = await run_episode(EpisodeSpec("sleep"), fixed, pool, sink=traces)
        assert episode.answer == "done", episode.ended
        return episode.answer

    return run


# Measuring


def measure(engine: str, quick: bool) -> dict[str, float]:
    """Every figure of one engine, in this process, with the collector set as the studio and the trainer set it."""
    from orchestrator.engine.gc_settings import expect_many_episodes

    expect_many_episodes()
    if engine != "podium":
        build = globals()["bare_asyncio" if engine == "asyncio" else engine]
        return asyncio.run(_measure_engine(engine, build, lambda: None, quick))
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home

    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        store = open_store(find_home(folder))
        try:
            return asyncio.run(_measure_engine(engine, lambda g: podium(g, store.traces), store.traces.flush, quick))
        finally:
            store.close()


async def _measure_engine(
    _engine: str, build: Callable[[Graph], Run], flush: Callable[[], None], quick: bool
) -> dict[str, float]:
    uneven, noop, small = build(UNEVEN), build(NOOP), build(SMALL)
    runs, repeats = (200, 2) if quick else (1000, 5)
    back_to_back = 10
    await uneven()
    for _ in range(5):
        await noop()
    await asyncio.gather(*(small() for _ in range(20)))
    flush()

    figures = {"uneven_graph_ms": 1e3 * await _best(uneven, repeats)}
    flush()
    per_step, on_disk = [], []
    for _ in range(repeats * 2):
        await asyncio.sleep(0.02)
        started = time.perf_counter()
        for _ in range(back_to_back):
            await noop()
        per_step.append((time.perf_counter() - started) / back_to_back / len(NOOP.access))
        flush()
        on_disk.append((time.perf_counter() - started) / back_to_back / len(NOOP.access))
    figures["noop_us_per_step"] = 1e6 * min(per_step)
    figures["noop_us_per_step_on_disk"] = 1e6 * min(on_disk)

    trim()
    before = reset_peak_mb()
    seconds, on_disk = [], []
    for repeat in range(repeats):
        await asyncio.sleep(0.05)
        gc.collect()
        started = time.perf_counter()
        await asyncio.gather(*(small() for _ in range(runs)))
        seconds.append(time.perf_counter() - started)
        flush()
        on_disk.append(time.perf_counter() - started)
        if repeat == 0:
            figures["concurrent_mb"] = max(0.0, peak_mb() - before)
    figures["concurrent_s"], figures["concurrent_s_on_disk"] = min(seconds), min(on_disk)
    return figures


async def _best(run: Run, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        await run()
        best = min(best, time.perf_counter() - started)
    return best


def trim() -> None:
    """Give free memory back to the system, so that the next peak is the workload's own."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return


def reset_peak_mb() -> float:
    """Resident memory now; the peak counts from here (on Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_mb()
    return _status_mb("VmRSS")


def peak_mb() -> float:
    if Path("/proc/self/status").exists():
        return _status_mb("VmHWM")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _status_mb(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def compare(quick: bool) -> dict[str, Any]:
    """The figures of all engines, by figure and engine."""
    result: dict[str, Any] = {name: {} for name in GOALS}
    for engine in ENGINES:
        command = [sys.executable, str(Path(__file__).resolve()), "--engine", engine, *["--quick"] * quick]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        figures = json.loads(done.stdout)
        for name in GOALS:
            result[name][engine] = round(figures[name], 3)
            if engine == "podium" and f"{name}_on_disk" in figures:
                result[name]["podium_on_disk"] = round(figures[f"{name}_on_disk"], 3)
    result["goals"] = {name: {"limit": limit, "met": result[name]["podium"] <= limit} for name, limit in GOALS.items()}
    result["concurrent_runs"] = 200 if quick else 1000
    result["machine"] = {
        "cpus": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version(name) for name in ("langgraph", "pydantic-graph")},
    }
    return result


def table(result: Mapping[str, Any]) -> str:
    rows = ["podium", "podium_on_disk", *ENGINES[1:]]
    lines = [f"{'':24}" + "".join(f"{name:>20}" for name in GOALS)]
    for row in rows:
        cells = (result[name].get(row) for name in GOALS)
        lines.append(f"{row:24}" + "".join(f"{'' if cell is None else format(cell, '.2f'):>20}" for cell in cells))
    met = (f"{'' if goal['met'] else 'MISSED '}<= {goal['limit']}" for goal in result["goals"].values())
    lines.append(f"{'goal (podium)':24}" + "".join(f"{cell:>20}" for cell in met))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, 200 concurrent runs")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(measure(options.engine, options.quick)))
        return
    result = compare(options.quick)
    if options.save:
        options.save.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()

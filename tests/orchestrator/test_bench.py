"""The benchmark runs, and says that the engine with tracing on is ahead of LangGraph: ratios of one run only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "speed" / "executor.py"
RUNS = 3  # at most: what else the machine does can slow one engine down and not the other
AHEAD_OF = {
    "uneven_graph_ms": ("langgraph",),  # by a factor of 1.7 and more
    "noop_us_per_step": ("langgraph", "langgraph_functional"),  # the functional interface waits for single steps, too
    "concurrent_s": ("langgraph", "langgraph_functional"),
}


def measure() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", "--quick"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def list_slower_figures(results: list[dict[str, Any]]) -> list[str]:
    """The figures of which the engine's best of all runs is not better than a peer's best."""

    def best(figure: str, engine: str) -> float:
        return min(result[figure][engine] for result in results)

    return [
        f"{figure} {peer}"
        for figure, peers in AHEAD_OF.items()
        for peer in peers
        if best(figure, "podium") >= best(figure, peer)
    ]


@pytest.mark.slow
def test_the_engine_is_ahead_of_langgraph_on_every_workload():
    results = [measure()]
    assert set(results[0]["goals"]) == {*AHEAD_OF, "concurrent_mb"}
    for figure in results[0]["goals"]:
        assert {"podium", "asyncio", "langgraph", "langgraph_functional", "pydantic_graph"} <= set(results[0][figure])
    while (slower := list_slower_figures(results)) and len(results) < RUNS:
        results.append(measure())
    assert not slower

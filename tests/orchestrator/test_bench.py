"""The benchmark runs, and says that the engine with tracing on is ahead of LangGraph: ratios of one run only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "executor.py"


@pytest.mark.slow
def test_the_engine_is_ahead_of_langgraph_on_every_workload():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", "--quick"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["goals"]) == {"uneven_graph_ms", "noop_us_per_step", "concurrent_s", "concurrent_mb"}
    for figure in result["goals"]:
        engines = {"podium", "asyncio", "langgraph", "langgraph_functional", "pydantic_graph"}
        assert engines <= set(result[figure])
    for figure in ("uneven_graph_ms", "noop_us_per_step", "concurrent_s"):  # by a factor of 1.7 and more
        assert result[figure]["podium"] < result[figure]["langgraph"]
    for figure in ("noop_us_per_step", "concurrent_s"):  # its functional interface waits for single steps, too
        assert result[figure]["podium"] < result[figure]["langgraph_functional"]

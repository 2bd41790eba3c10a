"""The benchmark runs, and says that rollouts are ahead of a round barrier: ratios of one run only. What it says of TRL
is looked at in test_bench_gpu.py, which measures all three."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "speed" / "rollouts.py"


def measured(size: int, *options: str) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "--json", "--sizes", str(size), "--repeats", "1", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rollouts"][str(size)]


@pytest.mark.slow
def test_rollouts_are_ahead_of_a_round_barrier():
    found = measured(8, "--no-trl", "--scale", "2")  # slow workers: it must not matter how busy the machine is
    podium, barrier = found["podium"], found["barrier"]
    assert podium["calls"] == barrier["calls"]
    assert podium["tokens"] == barrier["tokens"]
    assert podium["batches"] > barrier["batches"] == 2
    assert found["bound_s"] == max(found["generation_s"], found["chain_s"])
    assert podium["wall_s"] < 0.95 * barrier["wall_s"]  # measured: 0.7

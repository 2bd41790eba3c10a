"""Importing the engine is quick and brings no model library along."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.medium

CODE = """
import sys, time
started = time.perf_counter()
import {module}
seconds = time.perf_counter() - started
heavy = [name for name in ("torch", "transformers", "gradio", "trl", "vllm") if name in sys.modules]
assert not heavy, heavy
print(seconds)
"""


def seconds_to_import(module: str) -> float:
    done = subprocess.run([sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_importing_orchestrator_takes_less_than_300_ms():
    assert min(seconds_to_import("orchestrator") for _ in range(3)) < 0.3


@pytest.mark.parametrize(
    "module",
    [
        "orchestrator.engine.episode_loop",
        "orchestrator.traces.store",
        "orchestrator.dialects",
        "orchestrator.policies.registry",
    ],
)
def test_the_engine_needs_no_model_library(module):
    seconds_to_import(module)

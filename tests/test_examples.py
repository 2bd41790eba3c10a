"""Every script in examples/ runs as a reader would run it and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[1]
PRINTS = {
    "run_a_plan": "answer: 54.0",
    "access_lists": "4 PARSE_ERR $1 is used but not in access; add 1 to access",
    "worker_kind": "PARSE_ERR text is blank; write something to turn around",
    "reward": "oracle: 0.50",
    "task_source": "in 7 boxes? 42 correct",
    "policy": "ada saw step 1: ada saw nothing, step 2: bob saw nothing",
    "evaluate": "oracle: 5 of 5",
    "train": "checkpoint at step 2",
    "serve": "answer: 5539.6",
}


def run(name: str) -> str:
    script = str(ROOT / "examples" / f"{name}.py")
    done = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


LONG = ("evaluate", "train", "serve")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in PRINTS]
)
def test_an_example_prints_what_it_promises(name):
    assert PRINTS[name] in run(name)


def test_no_example_is_left_out():
    helpers = {"shop"}  # functions that the others register
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} - helpers == set(PRINTS)

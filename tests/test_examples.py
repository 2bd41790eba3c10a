"""Every script in examples/ runs as a reader would run it and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
    "serve": "answer: JFK to LHR: 5539.6 km",
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


def test_the_slurm_example_is_a_script_that_bash_reads_with_options_that_slurm_reads():
    script = ROOT / "examples" / "slurm.sh"
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True).returncode == 0
    options = [line.split(maxsplit=1)[1] for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
    assert {"--gpus=1", "--requeue"} < set(options) and all(option.startswith("--") for option in options)


def test_the_slurm_example_trains_to_the_end_and_resumes_when_it_is_queued_again(tmp_path):
    trainer = tmp_path / ".venv" / "bin" / "python"
    trainer.parent.mkdir(parents=True)
    trainer.write_text(
        '#!/bin/bash\n[ "$1" = -c ] && { echo done; exit; }\n'
        f'echo "$*" >> {tmp_path}/calls\n[ "$3" = train ] && echo job-1\nexit 0\n'
    )
    trainer.chmod(0o755)
    sleep = tmp_path / "bin" / "sleep"
    sleep.parent.mkdir()
    sleep.symlink_to("/bin/true")
    variables = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7", "PATH": f"{sleep.parent}:/usr/bin:/bin"}
    command = ["bash", str(ROOT / "examples" / "slurm.sh"), "mine.yaml"]
    for _ in range(2):
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "job-1: done" in done.stdout, done.stderr
    calls = [line.split()[2:5] for line in (tmp_path / "calls").read_text().splitlines()]
    assert calls[0] == ["train", "mine.yaml", "--detach"] and calls[2] == ["jobs", "resume", "job-1"]


def test_the_skypilot_example_has_the_keys_of_a_sky_task():
    task = yaml.safe_load((ROOT / "examples" / "skypilot.yaml").read_text())
    assert set(task) == {"name", "resources", "workdir", "envs", "secrets", "setup", "run"}
    assert task["resources"]["accelerators"] == "L4:1" and '"$RECIPE"' in task["run"]
    assert subprocess.run(["bash", "-n"], input=task["run"], text=True).returncode == 0

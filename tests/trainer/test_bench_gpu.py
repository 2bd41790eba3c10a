"""The benchmark for a GPU runs whole at toy size, and one part that fails leaves the others their figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import gpu

SCRIPT = Path(gpu.__file__)
PARTS = ("sft", "grpo", "rollouts", "preset", "memory")


@pytest.mark.slow
def test_every_part_has_its_figures_and_the_file_says_where_they_are_from(tmp_path):
    out = tmp_path / "gpu.json"
    command = [sys.executable, str(SCRIPT), "--minutes", "20", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1300)
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert report["device"]["name"] and report["machine"]["packages"]["trl"]
    assert {name: report[name].get("error") for name in PARTS} == dict.fromkeys(PARTS)
    assert all(0 <= report[name]["busy"] <= 1 and report[name]["seconds"] > 0 for name in PARTS)
    for name in ("podium", "trl"):
        assert report["sft"][name]["tokens_per_s"] > 0
        step = report["grpo"][name]
        assert 0 < step["sampling_s"] < step["step_s"] and step["new_tokens"] > 0
    assert report["sft"]["speedup"] > 0 and report["grpo"]["speedup"] > 0
    (compared,) = report["rollouts"]["rollouts"].values()
    assert {"podium", "barrier", "trl"} <= set(compared) and compared["podium"]["ratio"] > 0
    assert len(report["preset"]["steps"]) >= 4 and report["preset"]["estimate_gb"] > 0
    points = report["memory"]["points"]
    assert len(points) == 6 and all("error" not in point for point in points.values())


@pytest.mark.medium
def test_a_part_that_fails_is_recorded_and_the_others_are_kept(tmp_path, monkeypatch, capsys):
    out = tmp_path / "gpu.json"
    out.write_text(json.dumps({"memory": {"points": {}}}))
    failing = tmp_path / "failing.py"
    failing.write_text("import sys; sys.exit('the driver is gone')")
    monkeypatch.setattr(gpu, "describe_device", lambda: {"name": "a card"})
    monkeypatch.setattr(gpu, "choose_size", lambda: gpu.TOY)
    monkeypatch.setattr(gpu, "has_gpu", lambda: False)
    monkeypatch.setattr(gpu, "__file__", str(failing))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--only", "sft", "grpo", "--minutes", "1", "--out", str(out)])
    gpu.main()
    report = json.loads(out.read_text())
    assert report == json.loads(capsys.readouterr().out)
    assert report["memory"] == {"points": {}}
    for name in ("sft", "grpo"):
        assert report[name]["error"] == "it ended with status 1" and "the driver is gone" in report[name]["log"]


@pytest.mark.medium
def test_a_part_that_hangs_is_ended_when_its_time_is_over(tmp_path, monkeypatch):
    hanging = tmp_path / "hanging.py"
    hanging.write_text("import time; time.sleep(600)")
    monkeypatch.setattr(gpu, "__file__", str(hanging))
    assert gpu.run_part("sft", 2.0)["error"] == "not done within 2 s"
    assert "no time was left" in gpu.measure_part("sft", 0.0)["error"]


@pytest.mark.medium
def test_the_contender_that_fails_does_not_lose_the_other():
    def fail():
        raise RuntimeError("CUDA out of memory")

    found = gpu.try_each({"podium": lambda: {"step_s": 2.0}, "trl": fail})
    assert found["podium"]["step_s"] == 2.0 and found["trl"] == {"error": "RuntimeError: CUDA out of memory"}
    assert gpu.divide(found, "step_s") is None
    assert gpu.make_slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"

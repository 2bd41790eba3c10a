"""The benchmark for a GPU runs whole at toy size, and one part that fails leaves the others their figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import gpu
from bench.support import contenders
from bench.support.small_presets import make_config
from pool_registry.language_models.model_files import model_path

SCRIPT = Path(gpu.__file__)
PARTS = ("sft", "grpo", "rollouts", "preset", "memory")


@pytest.mark.slow
def test_every_part_has_its_figures_and_the_file_says_where_they_are_from(tmp_path):
    out = tmp_path / "gpu.json"
    command = [sys.executable, str(SCRIPT), "--toy", "--minutes", "20", "--out", str(out)]
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
    assert compared["trl"]["calls"] == compared["podium"]["calls"]
    idle = {name: compared[name]["wall_s"] - compared[name]["generation_s"] for name in ("trl", "podium")}
    assert idle["trl"] > idle["podium"], "TRL's model waits for one rollout's workers after another's"
    steps = report["preset"]["steps"]
    assert [step["stage"] for step in steps][:2] == ["sft", "sft"] and len(steps) >= 4
    assert 0 < steps[0]["at_s"] < steps[-1]["at_s"] and report["preset"]["estimate_gb"] > 0
    points = report["memory"]["points"]
    assert set(points) == set(gpu.TOY.points) and all("error" not in point for point in points.values())


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
    assert gpu.run_part("sft", 2.0, gpu.TOY)["error"] == "cut off after 2 s, before its first figure"
    assert "no time was left" in gpu.measure_part("sft", 0.0, gpu.TOY)["error"]


@pytest.mark.medium
def test_a_part_that_is_cut_off_keeps_what_it_has_measured(tmp_path, monkeypatch):
    hanging = tmp_path / "hanging.py"
    lines = ['print("a log line")', 'print(\'{"trl": {"all_step_s": [0.2]}}\', flush=True)']
    hanging.write_text("\n".join([*lines, 'print("{half", flush=True)', "import time; time.sleep(600)"]))
    monkeypatch.setattr(gpu, "__file__", str(hanging))
    found = gpu.run_part("sft", 3.0, gpu.TOY)
    assert found == {"trl": {"all_step_s": [0.2]}, "cut_off": "cut off after 3 s"}


def test_what_is_wanted_most_comes_first_and_no_part_takes_the_time_of_the_others():
    assert list(gpu.PARTS)[:3] == ["sft", "grpo", "preset"] and gpu.SHARES.keys() == gpu.PARTS.keys()
    left = 480.0
    for place in range(len(PARTS)):
        seconds = gpu.share_time(list(gpu.PARTS)[place:], left)
        assert 60 <= seconds <= 150
        left -= seconds
    assert left == pytest.approx(0)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("size", "parameters", "vocabulary", "layers", "hidden"),
    [("FULL", 596_049_920, 151_936, 28, 1024), ("TOY", 336_320, 4_096, 2, 64)],
)
def test_a_size_builds_the_model_that_it_names(size, parameters, vocabulary, layers, hidden):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    chosen = getattr(gpu, size)
    tokenizer = AutoTokenizer.from_pretrained(model_path("starter:tiny"))
    config = make_config(contenders.REFERENCE, chosen.shape, tokenizer, chosen.vocabulary)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert sum(weight.numel() for weight in model.parameters()) == parameters
    assert model.get_input_embeddings().num_embeddings == vocabulary
    assert (len(model.model.layers), model.config.hidden_size, model.config.model_type) == (layers, hidden, "qwen3")
    assert chosen.toy is (size == "TOY")


@pytest.mark.medium
def test_a_base_has_the_shape_that_it_is_given_and_takes_nothing_else(tmp_path):
    contenders.make_base(tmp_path / "base", gpu.TOY.shape, gpu.TOY.vocabulary)
    config = json.loads((tmp_path / "base" / "config.json").read_text())
    assert (config["num_hidden_layers"], config["vocab_size"]) == (2, gpu.TOY.vocabulary)
    with pytest.raises(TypeError):
        contenders.make_base(tmp_path / "other", True)
    with pytest.raises(TypeError):
        contenders.make_base(tmp_path / "other", gpu.FULL)


@pytest.mark.medium
def test_it_travels_without_the_folder_of_scripts():
    block = "import sys; sys.modules['scripts'] = None; import bench.gpu, bench.memory, bench.speed.rollouts"
    done = subprocess.run([sys.executable, "-c", block], cwd=SCRIPT.parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.medium
def test_the_contender_that_fails_does_not_lose_the_other():
    def fail(_keep):
        raise RuntimeError("CUDA out of memory")

    found = gpu.try_each({"podium": lambda _: {"step_s": 2.0}, "trl": fail})
    assert found["podium"]["step_s"] == 2.0 and found["trl"] == {"error": "RuntimeError: CUDA out of memory"}
    assert gpu.divide(found, "step_s") is None
    assert gpu.make_slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"

"""Scores on data sets of the Hub go into `.eval_results/` of the model repository, in the form of the Hub's client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from pool_registry.storage.data_folder import Home, find_home
from studio.publish.eval_results import make_eval_results
from tests.studio.support.hub_stand_in import client_environment, hub_stand_in

GSM8K = "hub:openai/gsm8k:main"


def write_row(index: int, correct: bool, **more: object) -> dict[str, object]:
    return {
        "orchestrator": "starter-grpo", "source": GSM8K, "family": "gsm8k", "level": 0, "split": "test", "index": index,
        "query": f"q{index}", "episode": f"e{index}", "correct": correct, "outcome": "answered", "turns": 1,
        "turn_errors": 0, "steps": 1, "depth": 1, "width": 1, "statuses": {"OK": 1}, "failed_calls": 0,
        "wall_s": 1.0, "serial_s": 1.0, "tokens_in": 1, "tokens_out": 1, "cost": 0.0, "workers": {"calc": 1},
        "at": 1_790_000_000.0, **more,
    }  # fmt: skip


def write_results(home: Home, *rows: dict[str, object]) -> None:
    folder = home.jobs / "measured"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_score_has_its_data_set_its_share_and_what_was_measured(tmp_path: Path):
    home = find_home(str(tmp_path))
    write_results(
        home,
        *(write_row(k, k < 3) for k in range(4)),
        write_row(5, True, split="train"),
        write_row(6, True, condition="renamed"),
        write_row(7, True, source="suite"),
        write_row(8, True, orchestrator="other"),
        write_row(9, False, source="hub:me/riddles"),
    )
    entries = {entry.path: entry.content for entry in make_eval_results(home, "starter-grpo", "shop")}
    assert set(entries) == {".eval_results/gsm8k_main.yaml", ".eval_results/riddles.yaml"}
    (score,) = parse_eval_result_entries(yaml.safe_load(entries[".eval_results/gsm8k_main.yaml"]))
    assert (score.dataset_id, score.task_id, score.value) == ("openai/gsm8k", "main", 0.75)
    assert score.date == "2026-09-21T14:13:20Z" and "the pool shop" in score.notes and "4 held-out tasks" in score.notes
    (other,) = parse_eval_result_entries(yaml.safe_load(entries[".eval_results/riddles.yaml"]))
    assert (other.dataset_id, other.task_id, other.value) == ("me/riddles", "default", 0.0)


def test_evaluations_on_tasks_from_elsewhere_make_no_score(tmp_path: Path):
    home = find_home(str(tmp_path))
    write_results(home, write_row(1, True, source="practice:shop"), write_row(2, True, source="hub:a/b + ledger"))
    assert make_eval_results(home, "starter-grpo", "shop") == []


@pytest.mark.medium
def test_a_published_checkpoint_has_its_scores(tmp_path: Path):
    home = find_home(str(tmp_path / "home"))
    write_results(home, write_row(1, True), write_row(2, False))
    with hub_stand_in() as (address, hub):
        options = ["publish", "--pool", "starter", "--orchestrator", "starter-grpo", "--repo", "tiny", "--static"]
        done = subprocess.run(
            [sys.executable, "-m", "studio", *options, "--home", str(home.root)],
            env={**os.environ, **client_environment(address, str(tmp_path / "hf"))},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        (score,) = parse_eval_result_entries(yaml.safe_load(hub.model("tiny").files[".eval_results/gsm8k_main.yaml"]))
    assert (score.dataset_id, score.value) == ("openai/gsm8k", 0.5)

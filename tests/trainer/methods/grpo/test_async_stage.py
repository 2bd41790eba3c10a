"""A job whose episodes run on while it trains, on a CPU: a stand-in of the server, the trainer is TRL's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import choose_home
from tests.trainer.support.async_grpo import open_server, stand_in_for_hopper
from tests.trainer.support.presets import run_as_job
from trainer.errors import InvalidRecipe
from trainer.job_process import run_job
from trainer.jobs.job_folder import read_lines
from trainer.jobs.queue import JobStore
from trainer.learner.token_transcript import ChatTokens
from trainer.recipe import Recipe, parse_recipe

REWARD = """
import itertools
draws = itertools.count()
def draw(sample, group):
    return next(draws) % 3
"""
RECIPE = """
name: beside
model: {{base: "{base}", prompt: query, turn_tokens: 32, lora: {{rank: 2, targets: [q_proj]}}}}
tasks: {{source: ledger, levels: [1], count: 4}}
threads: 1
{sft}
grpo:
  steps: {steps}
  micro_batch: 4
  rollouts:
    {{backend: vllm-async, vllm_url: "{url}", prompts: 2, group: 4, max_rounds: 1, max_length: 900, mixed_only: false}}
  rewards: [{{term: "{reward}:draw"}}]
  optimizer: {{learning_rate: 0.01}}
  saving: {{every: 2, keep: 2, check_tasks: 0}}
"""


def make_recipe(base: Path, folder: Path, url: str, steps: int, sft: str = "") -> Recipe:
    reward = folder / "reward.py"
    reward.write_text(REWARD)
    return parse_recipe(RECIPE.format(base=base, url=url, reward=reward, steps=steps, sft=sft))


@pytest.fixture
def chat(tiny_base):
    from transformers import AutoTokenizer

    return ChatTokens(AutoTokenizer.from_pretrained(tiny_base, padding_side="left"))


@pytest.mark.medium
@pytest.mark.slow
def test_a_job_learns_from_episodes_that_run_on_while_it_trains(chat, tiny_base, tmp_path, monkeypatch):
    stand_in_for_hopper(monkeypatch)
    sft = "sft: {steps: 1, batch: 4, demonstrations: {faults: 0}, saving: {check_tasks: 0}}"
    with open_server(chat) as server:
        job = run_as_job(make_recipe(tiny_base, tmp_path, server.url, 3, sft), tmp_path, monkeypatch)
    assert job.row.state == "done", job.row.message
    rows = [row for row in read_lines(job.folder.metrics) if row["stage"] == "grpo" and "loss" in row]
    assert [row["step"] for row in rows] == [2, 3, 4] and all(row["grad_norm"] > 0 for row in rows)
    steps = complete_steps(job.folder.checkpoints)
    assert [step for step, _ in steps] == [4, 3, 1] and read_checkpoint(steps[0][1], verify=True).kind == "adapter"
    groups = read_lines(job.folder.rollouts)
    assert {row["step"] for row in groups} >= {2, 3} and all(len(row["episodes"]) == 4 for row in groups)
    assert len(server.adapters) == len(set(server.adapters)) == 4 and set(server.models) <= set(server.adapters)


@pytest.mark.medium
@pytest.mark.slow
def test_a_server_that_dies_ends_the_job_and_a_resume_goes_on(chat, tiny_base, tmp_path, monkeypatch):
    stand_in_for_hopper(monkeypatch)
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(choose_home(str(tmp_path)))
    jobs = JobStore(store.engine, store.home)
    try:
        with open_server(chat) as server:
            server.dies_at = 3  # after the second step, at which there is a checkpoint; two more have their episodes
            job = jobs.submit(make_recipe(tiny_base, tmp_path, server.url, 6), here=True).id
            assert not run_job(job, store, jobs)
            row = jobs.get(job)
            assert (row.state, row.code) == ("failed", "vllm") and "then resume" in row.message
            server.broken = False
            jobs.resume(job)
            assert run_job(job, store, jobs) and jobs.get(job).state == "done", jobs.get(job).message
            assert len(server.adapters) == len(set(server.adapters)), "the server knows the names of before"
        steps = [row["step"] for row in read_lines(jobs.folder(job).metrics) if "loss" in row]
        assert steps == [1, 2, 3, 4, 5, 6]
    finally:
        store.close()


@pytest.mark.medium
@pytest.mark.slow
def test_a_server_that_takes_no_adapters_ends_the_job_with_what_to_do(chat, tiny_base, tmp_path, monkeypatch):
    stand_in_for_hopper(monkeypatch)
    with open_server(chat) as server:
        server.info = {"vllm_config": {"lora_config": None}}
        job = run_as_job(make_recipe(tiny_base, tmp_path, server.url, 1), tmp_path, monkeypatch)
    assert (job.row.state, job.row.code) == ("failed", "vllm"), job.row.message
    assert server.url in job.row.message or "docs/scale.md" in job.row.message


LORA, URL = "lora: {rank: 2}", "vllm_url: http://gpu:8000/v1"
CHECKS = "saving: {check_tasks: 0}"


@pytest.mark.parametrize(
    ("model", "rollouts", "grpo", "advice"),
    [
        (LORA, "", CHECKS, "set grpo.rollouts.vllm_url"),
        ("", URL, CHECKS, "set model.lora"),
        (LORA, URL, "", "set grpo.saving.check_tasks: 0"),
        (LORA, URL, f"{CHECKS}, phases: [{{name: more}}]", "leave grpo.phases out"),
        (LORA, URL, f"{CHECKS}, loss: {{beta: 0.1}}", "leave loss.type, beta"),
        (LORA, URL, f"{CHECKS}, rewards: [{{term: accuracy, anneal: 0.5}}]", "leave anneal out"),
    ],
)
def test_what_sampling_beside_training_cannot_do_is_refused_with_what_to_change(model, rollouts, grpo, advice):
    sections = f"rollouts: {{backend: vllm-async, {rollouts}}}, {grpo}"
    with pytest.raises(InvalidRecipe) as refusal:
        parse_recipe(f"{{model: {{{model}}}, grpo: {{{sections}}}}}")
    assert advice in str(refusal.value)

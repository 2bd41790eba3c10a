"""A real training on pairs: the better side gains, workers' outputs do not count, and a resume repeats its steps."""

from __future__ import annotations

import shutil

import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from trainer.errors import TrainingFailed
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.recipe import parse_recipe
from trainer.run_recipe import run_recipe

pytestmark = pytest.mark.medium

RECIPE = """
name: pref
pool: shop
model: {base: BASE, prompt: query, turn_tokens: 24, lora: {rank: 4}}
dpo:
  steps: 4
  batch: 2
  accumulation: 1
  max_length: 400
  optimizer: {learning_rate: 0.01}
  pairs: {held_out: 0.4}
  saving: {every: 2, check_tasks: 0}
threads: 1
"""


@pytest.fixture
def train(store, tiny_base, tmp_path):
    """Runs the recipe in one job folder, from where it was left; returns its figures by step."""
    job_folder = JobFolder(tmp_path / "job").create()
    recipe = parse_recipe(RECIPE.replace("BASE", str(tiny_base)))

    def run():
        assert run_recipe(recipe, store, store.pools.latest("shop").pool, job_folder, lambda *_: None)
        rows = read_lines(job_folder.metrics)
        return {row["step"]: row["rewards/margins"] for row in rows if "rewards/margins" in row}, job_folder

    return run


def test_without_pairs_the_job_says_what_makes_some(train):
    with pytest.raises(TrainingFailed, match="no recorded runs make a pair on the pool shop: a pair is a right and a"):
        train()


@pytest.mark.slow
def test_the_better_side_gains_and_a_resume_repeats_the_steps(train, record):
    for k in range(6):
        record(f"What is {k} * 7?", f"{k} * 7", correct=True)
        record(f"What is {k} * 7?", f"{k} + 7", correct=False)
    margins, job_folder = train()
    assert list(margins) == [1, 2, 3, 4] and margins[1] == 0 and margins[4] > 0.1, margins
    held_out = [row for row in read_lines(job_folder.metrics) if "eval_rewards/margins" in row]
    assert [row["step"] for row in held_out] == [2, 4]
    newest = complete_steps(job_folder.checkpoints)[0][1]
    assert read_checkpoint(newest, verify=True).stage == "dpo"
    assert not list(newest.glob("ref*")), "the adapter of the start is no part of a checkpoint"

    shutil.rmtree(newest)
    assert train()[0] == pytest.approx(margins, rel=1e-4), "rewards count from the start also after a resume"

"""Two processes that train together on the CPU: the same steps as one, and an end that is clear when one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import choose_home
from tests.trainer.support.presets import run_as_job
from tests.trainer.support.waiting import until
from trainer.errors import InvalidRecipe, SpendCapReached, TrainingFailed
from trainer.job_process import run_job
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import JobStore
from trainer.learner.ranks import RankEnd, explain_failure
from trainer.memory_fit.model_sizes import measure_model
from trainer.memory_fit.must_fit import check_it_fits
from trainer.memory_fit.stages import Machine, find_largest_stage
from trainer.recipe import Recipe, dump_recipe, load_recipe, parse_recipe

ROOT = Path(__file__).parents[3]
SFT = """
sft:
  steps: STEPS
  batch: 4
  accumulation: 2
  demonstrations: {faults: 0}
  saving: {every: 4, keep: 2, check_tasks: 1}
"""
GRPO = """
grpo:
  steps: STEPS
  micro_batch: 4
  rollouts: {prompts: 2, group: 4, max_rounds: 1, max_length: 900, mixed_only: false}
  rewards: [{term: "REWARD:draw"}]
  loss: {iterations: 2}
  optimizer: {learning_rate: 0.01}
  saving: {every: 2, keep: 2, check_tasks: 0}
"""
REWARD = """
import zlib
def draw(sample, group):
    return zlib.crc32(repr(sample.episode.rounds[0].turn).encode()) % 7 / 6  # a term lies in [0, 1]
"""


ADAPTER = "lora: {rank: 2, targets: [q_proj]}"
UNMEASURED = SFT.replace("check_tasks: 1", "check_tasks: 0")


def make_recipe(base: Path, stage: str, processes: int, steps: int, model: str = ADAPTER, more: str = "") -> Recipe:
    return parse_recipe(f"""
name: ranks
model: {{base: {base}, prompt: query, turn_tokens: 16, {model}}}
tasks: {{source: ledger, levels: [1], count: 12}}
threads: 1
processes: {processes}
{more}
{stage.replace("STEPS", str(steps))}
""")


def read_figures(job_folder: JobFolder, *names: str) -> list[float]:
    return [float(str(row[name])) for row in read_lines(job_folder.metrics) if "loss" in row for name in names]


def read_groups(job_folder: JobFolder) -> list[tuple[object, ...]]:
    """Each group of episodes: its query and the rewards."""
    rows = read_lines(job_folder.rollouts)
    return [(row["query"], *(episode["reward"] for episode in row["episodes"])) for row in rows]


@pytest.mark.medium
@pytest.mark.slow
def test_two_processes_take_the_same_sft_steps_as_one(tiny_base, tmp_path, monkeypatch):
    one, two = (
        run_as_job(make_recipe(tiny_base, SFT, processes, 4), tmp_path / str(processes), monkeypatch)
        for processes in (1, 2)
    )
    assert (one.row.state, two.row.state) == ("done", "done"), two.row.message
    names = ("step", "loss", "grad_norm", "entropy")
    assert read_figures(two.folder, *names) == pytest.approx(read_figures(one.folder, *names), rel=1e-4)
    (step, checkpoint), *_ = complete_steps(two.folder.checkpoints)
    assert step == 4 and len(list(checkpoint.glob("rng_state_*.pth"))) == 2
    assert [row["step"] for row in read_lines(two.folder.metrics) if "check/correct" in row] == [4]


@pytest.mark.medium
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "weights"),
    [(f"{ADAPTER}, checkpointing: true", "adapter_model.safetensors"), ("checkpointing: false", "model.safetensors")],
    ids=["adapter", "every weight"],
)
def test_two_processes_that_share_out_a_model_take_the_steps_of_one_and_write_it_whole(
    tiny_base, tmp_path, monkeypatch, model, weights
):
    from safetensors.torch import load_file

    from trainer.learner.load_and_save import load_learner

    one, two = (
        run_as_job(make_recipe(tiny_base, UNMEASURED, processes, 4, model, more), tmp_path / more[:8], monkeypatch)
        for processes, more in ((1, ""), (2, "sharding: full"))
    )
    assert (one.row.state, two.row.state) == ("done", "done"), two.row.message
    names = ("step", "loss", "grad_norm")
    assert read_figures(two.folder, *names) == pytest.approx(read_figures(one.folder, *names), rel=1e-3)
    (_, whole), (_, gathered) = (complete_steps(job.folder.checkpoints)[0] for job in (one, two))
    assert (gathered / "pytorch_model_fsdp.bin").exists(), "the weights were not shared out"
    expected, written = load_file(whole / weights), load_file(gathered / weights)
    assert written.keys() - expected.keys() <= {"lm_head.weight"}, "a tied head is written, too"
    for name, tensor in expected.items():
        assert written[name].dtype == tensor.dtype and (written[name] - tensor).abs().max() < 1e-4, name
    assert read_checkpoint(gathered, verify=True).kind == read_checkpoint(whole).kind
    load_learner(parse_recipe(f"model: {{base: {tiny_base}}}\nsft: {{}}").model, 0, gathered)


@pytest.mark.medium
@pytest.mark.slow
def test_two_processes_take_the_same_grpo_steps_as_one_and_the_first_writes_alone(tiny_base, tmp_path, monkeypatch):
    """The second step updates from the episodes of the first, with the weights that it made."""
    reward = tmp_path / "reward.py"
    reward.write_text(REWARD)
    grpo = GRPO.replace("REWARD", str(reward))
    one, two = (
        run_as_job(make_recipe(tiny_base, grpo, processes, 2), tmp_path / str(processes), monkeypatch)
        for processes in (1, 2)
    )
    assert (one.row.state, two.row.state) == ("done", "done"), two.row.message
    names = ("step", "loss", "grad_norm")
    figures = read_figures(one.folder, *names)
    assert read_figures(two.folder, *names) == pytest.approx(figures, rel=1e-3, abs=1e-6)
    assert min(read_figures(one.folder, "grad_norm")) > 0
    groups = [read_groups(job.folder) for job in (one, two)]
    assert len(groups[0]) == 2 and groups[0] == groups[1]
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "2"))
    store = open_store(choose_home(str(tmp_path / "2")))
    recorded = {str(episode["id"]) for row in read_lines(two.folder.rollouts) for episode in row["episodes"]}
    try:
        assert len(recorded) == 8 and all(store.traces.row(episode).state for episode in recorded)
    finally:
        store.close()


@pytest.mark.medium
@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_a_killed_rank_ends_the_job_clearly_and_a_resume_goes_on(tiny_base, tmp_path, monkeypatch, sharding):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(choose_home(str(tmp_path)))
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(make_recipe(tiny_base, UNMEASURED, 2, 400, more=f"sharding: {sharding}"), here=True).id
    job_folder = jobs.folder(job)
    try:
        running = threading.Thread(target=run_job, args=(job, store, jobs))
        running.start()
        until(lambda: job_folder.find_newest_checkpoint())
        ranks = list_ranks(os.getpid())
        ranks["1"].kill()
        running.join(30)
        row = jobs.get(job)
        assert (row.state, row.code) == ("failed", "rank_killed") and "process 2 of 2 was killed" in row.message
        until(lambda: not any(rank.is_running() for rank in ranks.values()), 10)

        kept, _ = job_folder.find_newest_checkpoint()
        jobs.resume(job)
        running = threading.Thread(target=run_job, args=(job, store, jobs))
        running.start()
        until(lambda: max(read_figures(job_folder, "step")) > kept and list_ranks(os.getpid()))
        jobs.stop(job)
        running.join(30)
        assert jobs.get(job).state == "stopped", jobs.get(job).message
        steps = read_figures(job_folder, "step")
        assert steps == list(range(1, len(steps) + 1)) and job_folder.find_newest_checkpoint()[0] == steps[-1]
    finally:
        store.close()


@pytest.mark.medium
@pytest.mark.slow
def test_ranks_end_with_a_killed_job(tiny_base, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(dump_recipe(make_recipe(tiny_base, SFT, 2, 400)))
    command = [sys.executable, "-m", "trainer", "train", str(recipe), "--home", str(tmp_path / "home")]
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
    ranks = until(lambda: ranks if len(ranks := list_ranks(process.pid)) == 2 else None)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    until(lambda: not any(is_alive(rank) for rank in ranks.values()), 20)


def list_ranks(parent: int) -> dict[str, psutil.Process]:
    """The processes that train, by their rank."""
    ranks = {}
    for child in psutil.Process(parent).children():
        with suppress(psutil.NoSuchProcess):  # a helper process of the job may end between the listing and the reading
            if "rank" in child.cmdline():
                ranks[child.environ()["RANK"]] = child
    return ranks


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def fail(*codes: int) -> SimpleNamespace:
    """What the agent reports: the exit code of each rank that failed."""
    return SimpleNamespace(failures={rank: SimpleNamespace(exitcode=code) for rank, code in enumerate(codes)})


@pytest.mark.parametrize(
    ("failure", "ends", "kind", "code", "words"),
    [
        (fail(1, -9), [RankEnd(code="unexpected", message="peer gone")], TrainingFailed, "rank_killed", "2 of 2 was"),
        (
            fail(1, -15),
            [RankEnd(code="unexpected", message="peer gone"), RankEnd(code="out_of_memory", message="no memory")],
            TrainingFailed,
            "out_of_memory",
            "no memory",
        ),
        (fail(1), [RankEnd(code="max_cost", message="3 dollars")], SpendCapReached, None, "3 dollars"),
        (fail(1), [], TrainingFailed, "ranks", "Resume tries again"),
    ],
    ids=["killed", "cause before what follows", "spent", "silent"],
)
def test_the_cause_of_a_failure_is_told_and_not_what_the_other_ranks_then_missed(failure, ends, kind, code, words):
    error = explain_failure(failure, ends, 2)
    assert isinstance(error, kind) and getattr(error, "code", None) == code and words in str(error)


@pytest.mark.parametrize(
    ("recipe", "advice"),
    [
        ("sft: {batch: 5}", "sft.batch must be a multiple of 2: set it to 6"),
        ("grpo: {micro_batch: 1}", "grpo.micro_batch must be a multiple of 2: set it to 2"),
        ("grpo: {rollouts: {backend: vllm-colocate}}", "set grpo.rollouts.backend: vllm (a server) or transformers"),
        ("evaluate: {}", "an evaluation is one process, leave processes out"),
    ],
)
def test_a_recipe_that_cannot_be_shared_out_is_refused_with_what_to_change(recipe, advice):
    parse_recipe("{processes: 1, %s}" % recipe)
    with pytest.raises(InvalidRecipe) as refusal:
        parse_recipe("{processes: 2, %s}" % recipe)
    assert advice in str(refusal.value)


@pytest.mark.parametrize(
    ("recipe", "advice"),
    [
        ("sft: {saving: {check_tasks: 0}}", "set processes: 2 or more"),
        ("processes: 2, grpo: {}", "leave grpo out, or set sharding: none"),
        ("processes: 2, sft: {}", "set sft.saving.check_tasks: 0"),
    ],
)
def test_a_recipe_whose_weights_cannot_be_shared_out_is_refused_with_what_to_change(recipe, advice):
    parse_recipe("{sharding: none, %s}" % recipe)
    with pytest.raises(InvalidRecipe) as refusal:
        parse_recipe("{sharding: full, %s}" % recipe)
    assert advice in str(refusal.value)


def test_a_model_too_large_for_one_gpu_fits_when_it_is_shared_out(tiny_base):
    shared, whole = (
        make_recipe(tiny_base, UNMEASURED, 2, 4, "checkpointing: true", f"sharding: {sharding}")
        for sharding in ("full", "none")
    )
    memory = 3 * measure_model(whole.model, gpu=True).weights  # with gradients and moments it is 4, so 2 for each
    gpu = Machine("a small GPU", True, memory, memory)
    check_it_fits(shared, gpu)
    with pytest.raises(TrainingFailed):
        check_it_fits(whole, gpu)
    needs = [sum(part.bytes for part in find_largest_stage(recipe, gpu)[1]) for recipe in (shared, whole)]
    assert needs[0] < needs[1]


def test_a_recipe_of_one_process_is_written_without_the_key():
    recipe = load_recipe("single-gpu-24gb")
    assert "processes" not in dump_recipe(recipe) and "sharding" not in dump_recipe(recipe)
    shared = recipe.model_copy(update={"processes": 2, "grpo": None})
    assert parse_recipe(dump_recipe(shared)).processes == 2
    assert shared.with_only("sft").processes == 2 and shared.with_only("evaluate").processes == 1

"""The whole of training through its command line: a random model, real TRL, SFT and GRPO, two steps each; then
what came out is loaded and orchestrates.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from orchestrator.checkpoints import complete_steps, find_checkpoint, read_checkpoint
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import TraceFilter, open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.waiting import until
from trainer.demonstrations.transcripts import load_demonstrations
from trainer.errors import TrainerError, TrainingFailed
from trainer.job_process import explain_job_failure, run_job
from trainer.jobs.job_folder import read_lines
from trainer.jobs.outcome import describe_outcome
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe, dump_recipe, parse_recipe
from trainer.tasks import find_task

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.medium


def started(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PODIUM_HOME": "/nowhere"}
    command = [sys.executable, "-m", "trainer", *arguments, "--home", str(home)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)


def trainer(home: Path, *arguments: str, code: int = 0) -> str:
    """Run a command to its end; what it printed on stdout (on stderr if it should fail)."""
    process = started(home, *arguments)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, f"{out}\n{err}"
    return err if code else out


def recipe_file(folder: Path, base: Path, **sections) -> Path:
    """A recipe for the tiny model; `sections` are stages."""
    document = {
        "name": "smoke",
        "model": {"base": str(base), "prompt": "query", "turn_tokens": 24},
        "tasks": {"source": "ledger,forge", "levels": [1], "count": 8},
        "threads": 1,
        **sections,
    }
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_base):
    """(home, job, what `train` printed) of a finished job: 2 steps of SFT, 2 of GRPO."""
    folder = tmp_path_factory.mktemp("trained")
    sft = {"steps": 2, "batch": 2, "saving": {"every": 1, "check_tasks": 2}}
    rollouts = {"prompts": 2, "group": 2, "max_rounds": 2, "max_length": 900}
    grpo = {"steps": 2, "micro_batch": 4, "rollouts": rollouts, "saving": {"every": 1, "check_tasks": 0}}
    file = recipe_file(folder, tiny_base, sft=sft, grpo=grpo)
    said = trainer(folder / "home", "train", str(file))
    return folder / "home", next((folder / "home" / "jobs").iterdir()).name, said


@pytest.fixture
def store(trained):
    opened = open_store(find_home(trained[0]))
    yield opened
    opened.close()


@pytest.fixture
def job_folder(trained, store):
    return JobStore(store.engine, store.home).folder(trained[1])


@pytest.mark.slow
def test_the_command_says_how_it_ended_and_nothing_else(trained):
    _, job, said = trained
    assert said == f"{job}: done\n"


@pytest.mark.slow
def test_every_step_left_a_complete_checkpoint(job_folder):
    found = complete_steps(job_folder.checkpoints)
    assert [step for step, _ in found] == [4, 3, 2, 1]
    for step, folder in found:
        about = read_checkpoint(folder, verify=True)
        assert (about.step, about.stage, about.kind) == (step, "sft" if step <= 2 else "grpo", "full")
        assert {"model.safetensors", "tokenizer.json", "optimizer.pt"} <= set(about.files)
        assert about.pool.name == "starter" and parse_recipe(yaml.safe_dump(about.recipe)).name == "smoke"
        assert ("check/correct" in about.metrics) == (step <= 2) and "loss" in about.metrics
    assert not list(job_folder.draft.glob("checkpoint-*"))


@pytest.mark.slow
def test_the_figures_of_every_step_are_on_record(job_folder):
    rows = read_lines(job_folder.metrics)
    losses = {row["step"]: row for row in rows if "loss" in row}
    assert [(step, row["stage"]) for step, row in losses.items()] == [(1, "sft"), (2, "sft"), (3, "grpo"), (4, "grpo")]
    assert 5 < losses[1]["loss"] < 10 and losses[1]["grad_norm"] > 0  # about ln(2000) for a model that knows nothing
    assert all({"reward", "reward_std", "rewards/accuracy/mean"} <= set(losses[step]) for step in (3, 4))
    episodes = {row["step"]: row for row in rows if "rollout/correct" in row}
    assert list(episodes) == [3, 4]
    assert all(row["term/format"] == losses[step]["rewards/format/mean"] for step, row in episodes.items())
    assert all(row["time/generation_s"] > 0 and row["cost/total"] == 0 for row in episodes.values())


@pytest.mark.slow
def test_every_episode_of_training_can_be_replayed(job_folder, store):
    groups = read_lines(job_folder.rollouts)
    assert sum(group["kept"] for group in groups) == 4  # 2 steps x 2 prompts
    for group in groups:
        assert len(group["episodes"]) == 2
        for shown in group["episodes"]:
            episode = store.traces.episode(shown["id"])
            assert episode.query == group["query"] and episode.started.orchestrator == "smoke"
            assert episode.ended is not None and episode.graded.correct == shown["correct"]
            assert store.traces.row(shown["id"]).correct == shown["correct"]
            assert shown["tokens"] == sum(done.turn.usage.tokens_out for done in episode.rounds) > 0
    demonstrated = store.traces.search(TraceFilter(orchestrator="oracle"))
    assert len(demonstrated) == 8 and all(row.correct for row in demonstrated)


@pytest.mark.slow
def test_the_commands_tell_the_truth_about_a_job(trained, job_folder):
    home, job, _ = trained
    (listed,) = json.loads(trainer(home, "jobs", "list", "--json"))
    shown = json.loads(trainer(home, "jobs", "show", job, "--json"))
    for document in (listed, shown):
        assert (document["id"], document["state"], document["kind"]) == (job, "done", "sft+grpo")
        assert (document["step"], document["steps"], document["stage"]) == (4, 4, "grpo")
        times = [document[key] for key in ("created_at", "started_at", "heartbeat", "ended_at")]
        assert times == sorted(times) and all(each.count("Z") == 1 and "+" not in each for each in times)
    assert shown["checkpoints"] == [f"{job}@{step}" for step in (4, 3, 2, 1)] and shown["evaluations"] == []
    assert shown["folder"] == str(job_folder.path) and f"job {job} is done" in shown["log"]
    assert "{'loss'" not in shown["log"]


@pytest.mark.slow
def test_the_demonstrations_of_a_job_can_be_exported(trained, tmp_path):
    home, job, _ = trained
    assert "8 demonstrations" in trainer(home, "demonstrations", job, "--out", str(tmp_path / "rows.jsonl"))
    rows = read_lines(tmp_path / "rows.jsonl")
    assert len(rows) == 8 and all(row["messages"][-1]["role"] == "assistant" for row in rows)


@pytest.mark.slow
def test_a_checkpoint_is_evaluated_by_its_name(trained):
    home, job, _ = trained
    arguments = ("--orchestrator", f"{job}@3", "--family", "forge", "--tasks", "2", "--json")
    figures = json.loads(trainer(home, "evaluate", *arguments))
    assert figures["orchestrator"] == f"{job}@3" and figures["tasks"] == 2 and figures["tokens"] > 0
    refused = trainer(home, "evaluate", "--orchestrator", f"{job}@9", *arguments[2:], code=2)
    assert f"{job}@4" in refused and refused.count("\n") == 1


@pytest.mark.slow
def test_a_checkpoint_orchestrates_a_query(trained, monkeypatch):
    home, job, _ = trained
    monkeypatch.setenv("PODIUM_HOME", str(home))
    query = find_task("forge", 1, "test", 0).query

    async def asked(name):
        async with live_pool(starter_pool()) as pool:
            return await run_episode(EpisodeSpec(query), make_orchestrator(name, pool), pool)

    newest, last = asyncio.run(asked(job)), asyncio.run(asked(f"{job}@4"))
    assert find_checkpoint(job)[1].step == 4
    turn = newest.rounds[0].turn
    assert turn.text == last.rounds[0].turn.text and 0 < turn.usage.tokens_out <= 24
    assert turn.error is None and turn.steps, "it has learnt next to nothing, and yet its turns can be read"
    free = asyncio.run(asked(f"{job}+unconstrained"))
    assert free.rounds[0].turn.error and free.ended.outcome == "gave_up"


@pytest.mark.slow
def test_a_job_that_is_told_to_stop_saves_and_goes_on_when_resumed(tmp_path, tiny_base):
    home = tmp_path / "home"
    sft = {"steps": 40, "batch": 1, "demonstrations": {"faults": 0}, "saving": {"every": 20, "check_tasks": 0}}
    process = started(home, "sft", str(recipe_file(tmp_path, tiny_base, sft=sft)))
    jobs = until(lambda: list((home / "jobs").glob("*/metrics.jsonl")))
    metrics = jobs[0]
    until(lambda: any("loss" in row for row in read_lines(metrics)))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    job = metrics.parent.name
    assert (process.returncode, out) == (0, f"{job}: stopped\n"), err
    shown = json.loads(trainer(home, "jobs", "show", job, "--json"))
    assert shown["state"] == "stopped" and "resume" in shown["message"]
    stopped_at = max(row["step"] for row in read_lines(metrics))
    assert 1 <= stopped_at < 40 and shown["checkpoints"] == [f"{job}@{stopped_at}"] and shown["step"] == stopped_at

    assert json.loads(trainer(home, "jobs", "resume", job, "--json"))["state"] == "queued"
    store = open_store(find_home(home))
    rows = JobStore(store.engine, store.home)
    try:
        until(lambda: rows.get(job).state in ("done", "failed"))
        assert rows.get(job).state == "done", (metrics.parent / "log.txt").read_text()[-3000:]
        losses = [row["step"] for row in read_lines(metrics) if "loss" in row]
        assert losses == list(range(1, 41))
        assert complete_steps(metrics.parent / "checkpoints")[0][0] == 40
        until(lambda: not psutil.pid_exists(int(rows.get(job).owner.split(":")[0])) or is_zombie(rows.get(job).owner))
    finally:
        store.close()
    assert "resumed" in trainer(home, "jobs", "resume", job, code=2)


def is_zombie(owner: str) -> bool:
    return psutil.Process(int(owner.split(":")[0])).status() == psutil.STATUS_ZOMBIE


def test_a_broken_recipe_is_refused_with_its_key_before_anything_is_made(tmp_path):
    file = recipe_file(tmp_path, tmp_path, sft={"stepps": 2})
    said = trainer(tmp_path / "home", "train", str(file), code=2)
    assert "sft.stepps" in said and said.count("\n") == 1 and not (tmp_path / "home").exists()
    assert "no recipe file" in trainer(tmp_path / "home", "train", "nothing.yaml", code=2)
    file = recipe_file(tmp_path, tmp_path, sft={})
    assert "no grpo section" in trainer(tmp_path / "home", "grpo", str(file), code=2)


def run_here(recipe: Recipe, store) -> tuple[JobStore, str]:
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(recipe).id
    run_job(key, store, jobs)
    return jobs, key


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = open_store(find_home())
    yield opened
    opened.close()


def small(base: Path, **sections) -> Recipe:
    demonstrations = {"faults": 0}
    sft = {"steps": 2, "batch": 4, "demonstrations": demonstrations, "saving": {"every": 1, "check_tasks": 0}}
    model = {"base": str(base), "prompt": "query", "turn_tokens": 16}
    tasks = {"source": "forge", "levels": [1], "count": 2}
    return Recipe.model_validate({"model": model, "tasks": tasks, "sft": sft, "threads": 1, **sections})


def no_memory(*_, **__):
    import torch

    torch.empty(10**15)  # what torch itself says when there is not enough


def test_too_little_memory_in_training_is_told_with_the_edits_that_need_less(fresh, tiny_base, monkeypatch):
    from trainer.methods.sft.cpu_trainer import CpuSftTrainer

    monkeypatch.setattr(CpuSftTrainer, "compute_loss", no_memory)
    jobs, key = run_here(small(tiny_base), fresh)
    row = jobs.get(key)
    assert (row.state, row.code) == ("failed", "out_of_memory")
    for edit in ("sft.batch: 2 with sft.accumulation: 2", "model.checkpointing: true", "model.lora"):
        assert edit in row.message


def test_too_little_memory_while_generating_is_told_with_the_edits_that_need_less(fresh, tiny_base, monkeypatch):
    from transformers import LlamaForCausalLM

    monkeypatch.setattr(LlamaForCausalLM, "generate", no_memory)
    grpo = {"steps": 1, "micro_batch": 2, "rollouts": {"prompts": 1, "group": 2}}
    jobs, key = run_here(small(tiny_base, sft=None, grpo=grpo), fresh)
    row = jobs.get(key)
    assert (row.state, row.code) == ("failed", "out_of_memory")
    assert "rollouts.group" in row.message and "model.turn_tokens" in row.message


@pytest.mark.parametrize(
    "said",
    [
        "CUDA out of memory. Tried to allocate 20.00 MiB.",
        "MPS backend out of memory",
        "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 B",
        "[Errno 12] Cannot allocate memory",
        "vLLM ended with status 1; its last lines:\nValueError: Free memory on device cuda:0 (1.2/79.1 GiB) on startup",
    ],
)
def test_every_way_of_saying_that_memory_ran_out_is_understood(said):
    assert explain_job_failure(RuntimeError(said), None)[0] == "out_of_memory"
    assert explain_job_failure(TrainerError(said), None)[0] == "out_of_memory"


def test_a_thread_that_could_not_start_is_told_with_its_two_causes():
    code, sentence = explain_job_failure(RuntimeError("can't start new thread"), None)
    assert code == "out_of_memory" and "not enough memory" in sentence and "ulimit -u" in sentence


def test_a_failure_inside_groups_of_failures_is_told_as_itself():
    inner = TrainingFailed("max_cost", "enough")
    assert explain_job_failure(ExceptionGroup("a", [ExceptionGroup("b", [inner])]), None) == ("max_cost", "enough")
    assert explain_job_failure(OSError(28, "No space left on device"), None)[0] == "disk_full"


def test_sft_is_measured_where_grpo_is_not(fresh, tiny_base):
    sft = {"steps": 1, "batch": 1, "demonstrations": {"faults": 0}, "saving": {"every": 1, "check_tasks": 1}}
    grpo = {"steps": 1, "micro_batch": 2, "rollouts": {"prompts": 1, "group": 2}, "saving": {"check_tasks": 0}}
    jobs, key = run_here(small(tiny_base, sft=sft, grpo=grpo), fresh)
    assert jobs.get(key).state == "done", jobs.get(key)
    checked = [(row["stage"], row["step"]) for row in read_lines(jobs.folder(key).metrics) if "check/correct" in row]
    assert checked == [("sft", 1)]


def test_pools_vary_in_both_stages_and_fill_no_list(fresh, tiny_base):
    checks = {"every": 1, "check_tasks": 2}
    sft = {"steps": 1, "batch": 1, "demonstrations": {"faults": 0.5}, "saving": checks, "max_length": 4000}
    rollouts = {"prompts": 2, "group": 2, "max_rounds": 1, "mixed_only": False}
    grpo = {"steps": 1, "micro_batch": 2, "rollouts": rollouts, "saving": {"check_tasks": 0}}
    evaluate = {"count": 2, "orchestrators": ["oracle"], "conditions": ["seen", "renamed", "varied"]}
    model = {"base": str(tiny_base), "turn_tokens": 16}
    pools = {"unseen": "worlds:held_out"}
    recipe = small(tiny_base, model=model, pools=pools, sft=sft, grpo=grpo, evaluate=evaluate)
    jobs, key = run_here(recipe, fresh)
    assert jobs.get(key).state == "done", jobs.get(key)

    (checked,) = [row for row in read_lines(jobs.folder(key).metrics) if "check/correct" in row]
    scores = [checked[f"check/{name}"] for name in ("seen", "renamed", "unseen")]
    assert checked["check/correct"] == pytest.approx(sum(scores) / 3)
    assert fresh.pools.names() == ["starter"]
    rows = fresh.traces.search(TraceFilter(limit=1000))
    by_pool = {name: [row for row in rows if row.pool == name] for name in {row.pool for row in rows}}
    assert set(by_pool) == {"starter", "starter-renamed", "starter-varied"}
    for row in by_pool["starter-varied"]:
        pool = fresh.pools.by_hash(row.pool, row.pool_hash).pool
        called = {run.step.worker for run in fresh.traces.episode(row.id).steps.values() if run.observation.ok}
        assert called <= {spec.name for spec in pool.enabled}
    results = read_lines(jobs.folder(key).results)
    assert [(row["condition"], row["correct"]) for row in results].count(("varied", True)) == 2


@pytest.mark.slow
def test_an_adapter_is_trained_saved_and_orchestrates(fresh, tiny_base):
    model = {"base": str(tiny_base), "prompt": "query", "turn_tokens": 16, "lora": {"rank": 2}}
    evaluate = {"count": 2, "source": "forge"}
    jobs, key = run_here(small(tiny_base, model=model, evaluate=evaluate), fresh)
    assert jobs.get(key).state == "done", jobs.get(key)
    _, about = find_checkpoint(f"{key}@2")
    assert (about.kind, about.base) == ("adapter", str(tiny_base)) and "adapter_model.safetensors" in about.files
    assert "model.safetensors" not in about.files
    assert [row["orchestrator"] for row in read_lines(jobs.folder(key).evaluations)] == [f"{key}@2"]


def reader_job(base: Path) -> dict:
    """The sections of a job that trains a reader on worlds and on tasks of the job's pool."""
    sft = {"steps": 2, "batch": 2, "max_length": 4096, "demonstrations": {"faults": 0}}
    rollouts = {"prompts": 1, "group": 2, "max_rounds": 2, "max_length": 3000, "redraws": 0}
    rewards = [{"term": "accuracy"}, {"term": "format", "weight": 0.2}, {"term": "binding", "weight": 0.1}]
    grpo = {"steps": 1, "micro_batch": 2, "rollouts": rollouts, "rewards": rewards, "saving": {"check_tasks": 0}}
    return {
        "model": {"base": str(base), "prompt": "reader", "turn_tokens": 24},
        "tasks": {"source": "worlds + forge", "levels": [1], "count": 4},
        "sft": {**sft, "saving": {"every": 2, "check_tasks": 2}},
        "grpo": grpo,
        "evaluate": {"count": 2},
    }


@pytest.mark.slow
def test_a_reader_learns_from_plans_then_from_episodes_and_is_measured(fresh, tiny_base, monkeypatch):
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)
    jobs, key = run_here(small(tiny_base, **reader_job(tiny_base)), fresh)
    assert jobs.get(key).state == "done", jobs.get(key)
    rows = list(read_lines(jobs.folder(key).metrics))
    assert any({"check/correct", "check/valid_turns"} <= row.keys() for row in rows)
    assert any("term/binding" in row for row in rows)
    _, about = find_checkpoint(f"{key}@3")
    assert (about.stage, about.prompt) == ("grpo", "reader")
    assert [row["orchestrator"] for row in read_lines(jobs.folder(key).evaluations)] == [f"{key}@2", f"{key}@3"]

    sft = {"steps": 1, "batch": 2, "max_length": 4096, "saving": {"every": 1, "check_tasks": 0}}
    teacher = {"teacher": f"{key}@3", "samples": 2, "faults": 0}  # it has learnt nothing: what counts is that it plays
    recipe = small(tiny_base, **{**reader_job(tiny_base), "sft": {**sft, "demonstrations": teacher}})
    again, second = run_here(recipe.with_only("sft"), fresh)
    assert "solved none" in again.get(second).message or again.get(second).state == "done"


@pytest.mark.slow
def test_expert_iteration_learns_from_its_own_checkpoint_and_keeps_what_was_found_before(fresh, tiny_base):
    demonstrations = {"rounds": 2, "samples": 2, "faults": 0}
    sft = {"steps": 3, "batch": 2, "demonstrations": demonstrations, "saving": {"every": 5, "check_tasks": 0}}
    recipe = small(tiny_base, sft=sft, evaluate={"count": 1})
    jobs, key = run_here(recipe, fresh)
    assert jobs.get(key).state == "done", jobs.get(key)
    folder = jobs.folder(key)
    steps = {step: read_checkpoint(path).phase for step, path in complete_steps(folder.checkpoints)}
    assert steps == {2: "round-1", 3: "round-2"}
    first, second = (load_demonstrations(folder.find_demonstrations(number)) for number in (1, 2))
    assert {row.query for row in second} == {row.query for row in first}, "a random model solves nothing of its own"
    assert [row["orchestrator"] for row in read_lines(folder.evaluations)] == [f"{key}@2", f"{key}@3"]
    played = {row.orchestrator for row in fresh.traces.search(TraceFilter(limit=100))}
    assert f"{key}@2" in played


@pytest.mark.slow
def test_plain_answers_without_plans_are_learnt_by_grpo_from_a_reader(fresh, tiny_base, tmp_path, monkeypatch):
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)
    reader = reader_job(tiny_base)
    sft = {**reader["sft"], "steps": 1, "saving": {"every": 1, "check_tasks": 0}}
    _, start = run_here(small(tiny_base, **{**reader, "sft": sft}).with_only("sft"), fresh)
    own = tmp_path / "own.jsonl"
    lines = [{"query": f"What is {k} + {k}?", "answer": 2 * k, "split": ("train", "test")[k % 2]} for k in range(1, 7)]
    own.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    model = {**reader["model"], "start": f"{start}@1"}
    tasks = {"source": f"file:{own}", "count": 3}
    recipe = small(tiny_base, **{**reader, "model": model, "tasks": tasks}).model_copy(update={"sft": None})
    jobs, key = run_here(recipe, fresh)
    assert jobs.get(key).state == "done", jobs.get(key)
    _, about = find_checkpoint(f"{key}@1")
    assert (about.stage, about.prompt) == ("grpo", "reader")
    outcome = describe_outcome(key, recipe, jobs.folder(key))
    assert outcome is not None and outcome.sentence.startswith("Solves 0 of 2 of your own held-out questions, was 0")


def test_the_recipe_in_a_job_folder_is_the_one_that_was_given(fresh, tiny_base):
    jobs = JobStore(fresh.engine, fresh.home)
    recipe = small(tiny_base)
    key = jobs.submit(recipe).id
    assert jobs.recipe(key) == recipe and jobs.folder(key).recipe.read_text() == dump_recipe(recipe)
    assert jobs.get(key).steps == 2

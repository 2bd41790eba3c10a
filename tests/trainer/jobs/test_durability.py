"""Jobs outlive what can happen to them: kills at any moment, torn files, other processes, reused pids."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from orchestrator.checkpoints import MANIFEST, Checkpoint, complete_steps, read_checkpoint, seal
from orchestrator.traces.store import Store, open_store
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.database import writing
from tests.machine import needs
from tests.postgres import postgres, programs
from tests.trainer.support.waiting import until
from tests.trust.trials import choose_trials, count_trials
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import JobRow, JobStore
from trainer.recipe import parse_recipe

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[3]
KILLS, EVERY, SFT = choose_trials(40), 2, 24
GRPO = 70 * max(40, KILLS) // 40  # more than are learnt between the kills


def write_recipe(name: str, sft: int, grpo: int) -> str:
    """A recipe of so many steps of each stage on the base that takes the place of BASE."""
    return f"""
name: {name}
model: {{base: BASE, prompt: query, turn_tokens: 16, lora: {{rank: 2, targets: [q_proj]}}}}
tasks: {{source: ledger, levels: [1], count: 4}}
threads: 1
sft:
  steps: {sft}
  batch: 1
  demonstrations: {{faults: 0}}
  saving: {{every: {EVERY}, keep: 2, check_tasks: 0}}
grpo:
  steps: {grpo}
  micro_batch: 2
  rollouts: {{prompts: 1, group: 2, max_rounds: 1, max_length: 900, redraws: 0}}
  saving: {{every: {EVERY}, keep: 2, check_tasks: 0}}
"""


RECIPE = write_recipe("durable", SFT, GRPO)
QUICK = parse_recipe("{name: quick, evaluate: {orchestrators: [oracle], source: forge, levels: [1], count: 1}}")
HOPELESS = parse_recipe("{name: hopeless, pool: nowhere, evaluate: {}}")


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "PODIUM_HOME": str(home), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def trainer(home: Path, *arguments: str, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trainer", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment(home), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


class Forked:
    """A process for every attempt at a job, without the imports (forked_jobs.py)."""

    def __init__(self, home: Path, job: str) -> None:
        command = [sys.executable, "-m", "tests.trainer.support.forked_jobs", str(home), job]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment(home), **pipes)
        assert self.process.stdout.readline() == "ready\n"

    def start(self, job: str) -> int:
        self.process.stdin.write(f"{job}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ended(self) -> int:
        """Wait for the process that was started last; its wait status."""
        word, status = self.process.stdout.readline().split()
        assert word == "ended"
        return int(status)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


@contextmanager
def forked(home: Path, job: str):
    processes = Forked(home, job)
    try:
        yield processes
    finally:
        processes.close()


def learnt(job_folder: JobFolder) -> list[int]:
    """The steps whose loss is on record, in the order in which they were written."""
    return [int(row["step"]) for row in read_lines(job_folder.metrics) if "loss" in row]


def plant_decoys(job_folder: JobFolder) -> None:
    """Newer checkpoints that a kill interrupted: one without its marker, one with a file cut short."""
    found = complete_steps(job_folder.checkpoints)
    for name in ("9000", "9002"):
        shutil.rmtree(job_folder.checkpoints / name, ignore_errors=True)
        if found:
            shutil.copytree(found[0][1], job_folder.checkpoints / name)
    if found:
        (job_folder.checkpoints / "9000" / MANIFEST).unlink()
        cut = job_folder.checkpoints / "9002" / "adapter_model.safetensors"
        cut.write_bytes(cut.read_bytes()[:-1])


@pytest.mark.slow
def test_training_survives_kills_and_loses_at_most_what_came_after_the_last_checkpoint(
    store,
    jobs,
    tiny_base,
):
    key = jobs.submit(parse_recipe(RECIPE.replace("BASE", str(tiny_base)))).id
    job_folder = jobs.folder(key)
    random = Random(0)
    seen: Counter[str] = Counter()
    with forked(store.home.root, key) as processes:
        for kill in range(KILLS):
            if jobs.get(key).state != "queued":
                jobs.resume(key)
            plant_decoys(job_folder)
            resumed, _ = job_folder.find_intact_checkpoint() or (0, None)
            logged = len(read_lines(job_folder.metrics))
            started = time.time()
            process = processes.start(key)
            wait_for_a_random_moment(job_folder, random, resumed, started)
            os.kill(process, signal.SIGKILL)
            count_trials()
            assert processes.ended() == signal.SIGKILL, job_folder.log.read_text()[-3000:]

            row = next(each for each in jobs.all() if each.id == key)
            assert (row.state, row.code) in (("failed", "killed"), ("queued", "")), row
            fresh = [each for each in read_lines(job_folder.metrics) if "loss" in each and each["at"] > started]
            assert [each["step"] for each in fresh] == list(range(resumed + 1, resumed + 1 + len(fresh)))
            shutil.rmtree(job_folder.checkpoints / "9000", ignore_errors=True)
            shutil.rmtree(job_folder.checkpoints / "9002", ignore_errors=True)
            newest, _ = job_folder.find_newest_checkpoint() or (0, None)
            reached = max(learnt(job_folder), default=0)
            assert resumed <= newest and reached - newest <= EVERY
            seen[row.state] += 1
            seen["in the middle of saving"] += any(job_folder.draft.glob("checkpoint-*"))
            seen["with fresh steps"] += bool(fresh)
            seen["in grpo"] += reached > SFT
            if kill % 5 == 0 and logged:
                with job_folder.metrics.open("a") as file:
                    file.write('{"stage": "sft", "step": 7')

        assert reached < SFT + GRPO, dict(seen)
        assert seen["with fresh steps"] > KILLS / 4 and seen["in the middle of saving"] and seen["in grpo"], dict(seen)
        if jobs.get(key).state != "queued":
            jobs.resume(key)
        processes.start(key)
        assert processes.ended() == 0

    row = jobs.get(key)
    assert (row.state, row.code, row.step) == ("done", "", SFT + GRPO), row
    assert learnt(job_folder) == list(range(1, SFT + GRPO + 1))
    kept = [group["step"] for group in read_lines(job_folder.rollouts) if group["kept"]]
    assert kept == list(range(SFT + 1, SFT + GRPO + 1))
    whole = complete_steps(job_folder.checkpoints)
    assert {folder for _, folder in whole} == set(job_folder.checkpoints.iterdir())
    assert all(read_checkpoint(folder, verify=True).step == step for step, folder in whole)
    assert [step for step, _ in whole] == [SFT + GRPO, SFT + GRPO - EVERY, SFT]
    stages = {row["step"]: row["stage"] for row in read_lines(job_folder.metrics) if "loss" in row}
    assert all((stage == "sft") == (step <= SFT) for step, stage in stages.items())


def wait_for_a_random_moment(job_folder: JobFolder, random: Random, resumed: int, started: float) -> None:
    """Before the job's first step, or some steps later; and then at any point within a step or a save."""
    steps = random.choice([0, 1, 2, 3, 4])
    if steps == 0 or resumed > SFT + GRPO - 30:  # on a fast machine the job must not end before the last kill
        time.sleep(random.uniform(0, 0.5 if steps else 2))
        return
    until(lambda: sum("loss" in row and row["at"] > started for row in read_lines(job_folder.metrics)) >= steps)
    time.sleep(random.uniform(0, 0.2))


CLAIM = """
import os, sys, time
from pathlib import Path
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from trainer.jobs.queue import JobStore
home, *keys = sys.argv[1:]
store = open_store(find_home(home))
jobs = JobStore(store.engine, store.home)
print("ready", flush=True)
sys.stdin.readline()
print([key for key in keys if jobs.claim(key)], flush=True)
sys.stdin.readline()
"""


def claimer(home: Path, *keys: str) -> subprocess.Popen[str]:
    """A process that claims these jobs when it gets a line, and ends at the next."""
    command = [sys.executable, "-c", CLAIM, str(home), *keys]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment(home), **pipes)


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


def claimed_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout.readline() == "ready\n"
    tell(process)
    return process.stdout.readline()


@pytest.mark.slow
@needs(programs() is not None, "PostgreSQL")
def test_of_eight_processes_that_claim_at_once_in_postgresql_one_gets_one_job(tmp_path, monkeypatch):
    with postgres() as url:
        monkeypatch.setenv("PODIUM_DATABASE_URL", url)
        opened = open_store(find_home(str(tmp_path / "home")))
        try:
            eight_claim_at_once(opened, JobStore(opened.engine, opened.home))
        finally:
            opened.close()


def test_of_eight_processes_that_claim_at_once_one_gets_one_job(store, jobs):
    eight_claim_at_once(store, jobs)


def eight_claim_at_once(store: Store, jobs: JobStore) -> None:
    keys = [jobs.submit(QUICK).id for _ in range(3)]
    processes = [claimer(store.home.root, *keys) for _ in range(8)]
    assert [each.stdout.readline() for each in processes] == ["ready\n"] * 8
    for each in processes:
        tell(each)
    claimed = [each.stdout.readline() for each in processes]
    assert Counter(claimed)["[]\n"] == 7
    assert [row.state for row in jobs.all()].count("running") == 1
    for each in processes:
        tell(each)
        each.communicate(timeout=60)


def test_a_killed_job_has_failed_even_before_its_parent_has_looked(store, jobs):
    key = jobs.submit(QUICK).id
    process = claimer(store.home.root, key)
    assert claimed_by(process) == f"['{key}']\n" and jobs.find_running().id == key
    process.kill()  # and nobody waits for it: it stays in the process table
    row = until(lambda: next((row for row in jobs.all() if row.state == "failed"), None), 10)
    assert (row.id, row.code) == (key, "killed") and "Resume" in row.message
    assert jobs.find_running() is None and jobs.resume(key).state == "queued"
    process.communicate(timeout=60)


def test_a_job_that_was_killed_while_it_stopped_is_stopped(store, jobs):
    key = jobs.submit(QUICK).id
    process = claimer(store.home.root, key)
    claimed_by(process)
    assert jobs.stop(key).state == "stopping"
    process.kill()
    until(lambda: jobs.all()[0].state == "stopped", 10)
    assert jobs.get(key).code == "" and jobs.folder(key).stop_requested
    assert not jobs.folder(jobs.resume(key).id).stop_requested
    process.communicate(timeout=60)


def test_a_reused_pid_is_not_taken_for_the_job(store, jobs):
    key = jobs.submit(QUICK).id
    assert jobs.claim(key) and jobs.find_running().id == key
    with writing(store.engine) as session:
        row = session.get(JobRow, key)
        row.owner = f"{os.getpid()}:1.00"  # the pid of a living process that began at another time
        session.add(row)
    assert jobs.find_running() is None and jobs.get(key).code == "killed"


def test_a_job_of_another_host_is_not_lost_while_it_is_heard_of(store, jobs):
    """Two hosts on one PostgreSQL: neither sees the other's processes, locks or folders."""
    key = jobs.submit(QUICK).id
    assert jobs.claim(key)
    with writing(store.engine) as session:
        row = session.get(JobRow, key)
        row.owner = "4711:1:boot:1:elsewhere/1"
        row.heartbeat = datetime.now(UTC) - timedelta(hours=1)
        session.add(row)
    assert jobs.find_running().id == key and not jobs.claim(jobs.submit(QUICK).id)
    with writing(store.engine) as session:
        row = session.get(JobRow, key)
        row.heartbeat = datetime.now(UTC) - timedelta(days=2)
        session.add(row)
    assert jobs.find_running() is None and jobs.get(key).code == "killed"


def test_a_job_is_started_only_where_its_folder_is(store, jobs, monkeypatch):
    started = []
    monkeypatch.setattr("trainer.jobs.queue._spawn", lambda command, _: started.append(command))
    theirs, ours = jobs.submit(QUICK).id, jobs.submit(QUICK).id
    shutil.rmtree(jobs.folder(theirs).path)
    assert jobs.start_next() == ours and len(started) == 1


@pytest.mark.slow
def test_a_queued_job_starts_when_the_one_before_ends_however_that_ended(store, jobs):
    keys = [jobs.submit(recipe).id for recipe in (HOPELESS, QUICK, HOPELESS)]
    assert jobs.start_next() == keys[0]
    until(lambda: jobs.get(keys[2]).state == "failed", 240, every=0.2)
    rows = [jobs.get(key) for key in keys]
    assert [row.state for row in rows] == ["failed", "done", "failed"]
    assert [row.code for row in rows] == ["PoolNotFound", "", "PoolNotFound"]
    assert rows[0].ended_at <= rows[1].started_at and rows[1].ended_at <= rows[2].started_at


@pytest.mark.slow
def test_a_job_that_a_terminal_follows_waits_its_turn_and_is_run_there(store, jobs):
    first = jobs.submit(QUICK).id
    process = claimer(store.home.root, first)
    claimed_by(process)
    recipe = store.home.root / "recipe.yaml"
    recipe.write_text("{name: followed, evaluate: {orchestrators: [oracle], source: forge, levels: [1], count: 1}}")
    follower = trainer(store.home.root, "train", str(recipe))
    second = until(lambda: next((row for row in jobs.all() if row.id != first), None))
    process.kill()
    process.communicate(timeout=60)
    until(lambda: jobs.get(first).state == "failed" or jobs.all() is None, 10)
    assert jobs.start_next() is None  # it is the terminal's
    said, warned = follower.communicate(timeout=240)
    assert follower.returncode == 0 and said.strip() == f"{second.id}: done" and "waits for" in warned
    assert jobs.get(second.id).owner.startswith(f"{follower.pid}:")


def test_a_torn_last_line_is_left_out_and_goes_with_the_next_resume(tmp_path):
    job_folder = JobFolder(tmp_path).create()
    for step in range(1, 6):
        job_folder.append_metrics("sft", step, {"loss": 1.0})
        job_folder.append_group({"step": step, "kept": True})
    job_folder.append_evaluation({"orchestrator": "oracle"})
    for path in (job_folder.metrics, job_folder.rollouts, job_folder.evaluations):
        with path.open("a") as file:
            file.write('{"stage": "sft", "step": 4, "lo')
    assert learnt(job_folder) == [1, 2, 3, 4, 5]
    job_folder.truncate_after(4)
    job_folder.append_metrics("sft", 5, {"loss": 2.0})
    job_folder.append_evaluation({"orchestrator": "direct"})
    assert learnt(job_folder) == [1, 2, 3, 4, 5] and read_lines(job_folder.metrics)[-1]["loss"] == 2.0
    assert [row["step"] for row in read_lines(job_folder.rollouts)] == [1, 2, 3, 4]
    assert [row["orchestrator"] for row in read_lines(job_folder.evaluations)] == ["oracle", "direct"]
    assert all(json.loads(line) for line in job_folder.metrics.read_text().splitlines())


def test_what_was_spent_stays_spent_when_steps_are_done_again(tmp_path):
    job_folder = JobFolder(tmp_path).create()
    for step in range(1, 5):
        job_folder.append_metrics("grpo", step, {"loss": 0.0, "cost/total": step * 0.1})
    job_folder.truncate_after(2)
    assert learnt(job_folder) == [1, 2] and read_lines(job_folder.metrics)[-1]["cost/total"] == pytest.approx(0.4)


def saved(job_folder: JobFolder, step: int, **changes) -> Path:
    drafted = job_folder.draft / f"checkpoint-{step}"
    drafted.mkdir(parents=True)
    (drafted / "weights").write_bytes(b"0" * 100)
    about = Checkpoint.model_validate(
        {"name": "c", "kind": "full", "base": "b", "stage": "sft", "step": step, **changes}
    )
    return job_folder.save_checkpoint(drafted, about)


def test_a_damaged_checkpoint_is_put_aside_for_the_one_before(tmp_path):
    job_folder = JobFolder(tmp_path).create()
    first, second = saved(job_folder, 2), saved(job_folder, 4)
    (second / "weights").write_bytes(b"1" * 100)  # the size is right, the content is not
    assert job_folder.find_intact_checkpoint() == (2, first) == job_folder.find_newest_checkpoint()
    assert saved(job_folder, 4) == second and job_folder.find_intact_checkpoint() == (4, second)


def test_the_newest_the_best_and_the_last_of_each_stage_are_kept(tmp_path):
    job_folder = JobFolder(tmp_path).create()
    for step in range(1, 9):
        stage = "sft" if step <= 4 else "grpo"
        saved(job_folder, step, stage=stage, metrics={"check/correct": 0.9 if step == 2 else 0.1})
    shutil.rmtree(job_folder.checkpoints / "6")
    (job_folder.checkpoints / "6").mkdir()  # what a kill left of one that was being removed
    (job_folder.checkpoints / "6" / "weights").write_bytes(b"0")
    job_folder.prune_checkpoints(2)
    assert sorted(path.name for path in job_folder.checkpoints.iterdir()) == ["2", "4", "7", "8"]


def test_a_checkpoint_is_none_before_its_last_file_is_written(tmp_path):
    job_folder = JobFolder(tmp_path).create()
    folder = job_folder.checkpoints / "2"
    folder.mkdir()
    (folder / "weights").write_bytes(b"0" * 100)
    assert job_folder.find_newest_checkpoint() is None
    about = Checkpoint.model_validate({"name": "c", "kind": "full", "base": "b", "stage": "sft", "step": 2})
    seal(folder, about)
    assert job_folder.find_newest_checkpoint() == (2, folder)
    (folder / "weights").write_bytes(b"0" * 99)
    assert job_folder.find_newest_checkpoint() is None

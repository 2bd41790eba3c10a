"""Jobs on rented machines, against a stand-in of the Hub: nothing is paid twice, nothing that arrived is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlmodel import Session, select

from orchestrator.checkpoints import Checkpoint, complete_steps, seal
from orchestrator.traces.store import EpisodeRow, open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import choose_home
from pool_registry.worker import WorkerSpec
from tests.studio.support.hub_stand_in import TOKEN, USER, client_environment, hub_stand_in
from tests.studio.support.rentals_stand_in import Machine
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.job_process import run_job
from trainer.jobs.job_folder import read_lines
from trainer.recipe import Recipe, parse_recipe
from trainer.rented import follow
from trainer.rented.hub_jobs import open_hub_jobs
from trainer.rented.plan import plan_rental, refuse_problems

pytestmark = pytest.mark.medium

EVALUATION = """
name: measured
where: hf:cpu-basic
max_hours: 2
evaluate: {orchestrators: [oracle], source: forge, levels: [1], count: 2}
"""
TRAINING = """
name: rented
where: hf:l4x1
max_hours: 3
model: {base: "starter:tiny", prompt: query}
tasks: {source: ledger, levels: [1], count: 2}
sft: {steps: 4, saving: {check_tasks: 0}}
"""


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The Hub of the stand-in, for this process and those that it starts."""
    from huggingface_hub import constants

    with hub_stand_in() as (address, running):
        for name, value in client_environment(address, str(tmp_path / "hf")).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(follow, "POLL_S", 0.05)
        yield running


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = open_store(choose_home(str(tmp_path / "home")))
    yield opened
    opened.close()


def run(text: str, store, jobs):
    """Queue a job and run its process here. Returns its row."""
    row = jobs.submit(parse_recipe(text), here=True)
    run_job(row.id, store, jobs)
    return jobs.get(row.id)


def end(hub, machine: Machine, state: str = "done", **more: str) -> None:
    """What a machine does last: it says how its job ended."""
    attempt = int(machine.spec["labels"]["attempt"])
    hub.rentals.write(machine, "ended.json", json.dumps({"attempt": attempt, "state": state, **more}).encode())
    machine.stage = "ERROR" if state == "failed" else "COMPLETED"


def write_checkpoint(hub, machine: Machine, folder: Path, step: int) -> None:
    """Let a machine write a checkpoint, as training would."""
    draft = folder / str(step)
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_bytes(b"weights %d" % step)
    manifest = {"name": "rented-sft", "kind": "full", "base": "starter:tiny", "stage": "sft", "step": step,
                "dialect": "plan", "prompt": "query", "created_at": "2026-11-23T00:00:00+00:00",
                "pool": {"name": "starter", "hash": "0" * 64, "workers": []}}  # fmt: skip
    seal(draft, Checkpoint.model_validate(manifest))
    for file in draft.iterdir():
        hub.rentals.write(machine, f"checkpoints/{step}/{file.name}", file.read_bytes())


@pytest.mark.slow
def test_a_job_runs_there_as_it_would_here_and_its_results_and_episodes_come_back(hub, store, jobs, tmp_path):
    hub.rentals.disk = tmp_path / "machines"
    row = run(EVALUATION, store, jobs)
    log = jobs.folder(row.id).log.read_text()
    assert row.state == "done" and row.where == "hf:cpu-basic", (row.message, log)
    results = read_lines(jobs.folder(row.id).results)
    assert len(results) == 2 and all(result["correct"] for result in results)
    with Session(store.engine) as session:
        episodes = session.exec(select(EpisodeRow)).all()
    assert {episode.id for episode in episodes} == {result["episode"] for result in results}
    assert str(store.traces.episode(episodes[0].id).answer) == episodes[0].answer
    assert "stage evaluate" in log and not (jobs.folder(row.id).path / "traces.db").exists()


def test_what_is_sent_is_private_bounded_in_time_and_labelled(hub, store, jobs):
    hub.rentals.work = lambda machine: end(hub, machine)
    row = run(TRAINING, store, jobs)
    (machine,) = hub.rentals.machines
    assert machine.spec["timeoutSeconds"] == 3 * 3600 and machine.spec["flavor"] == "l4x1"
    assert machine.spec["labels"] == {"podium": row.id, "attempt": "1", "name": row.id}
    assert hub.repos["dataset", f"{USER}/podium-jobs"].private and "secrets" not in machine.spec
    assert [volume.get("readOnly") for volume in machine.spec["volumes"]] == [True, False]
    files = hub.repos["dataset", f"{USER}/podium-jobs"].files
    assert {f"{row.id}/recipe.yaml", f"{row.id}/pools/starter.json", f"{row.id}/requirements.txt"} <= set(files)
    assert not any(TOKEN.encode() in content for content in files.values())


def test_secrets_travel_as_secrets_and_workers_of_this_machine_are_named_before(hub, store, jobs, monkeypatch):
    monkeypatch.setenv("PODIUM_CANARY", "sk-canary-long-enough")
    remote = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:PODIUM_CANARY"}
    calculator = WorkerSpec(name="calculator", kind="calculator", description="Computes.")
    writer = WorkerSpec(name="writer", kind="chat", description="Writes.", config=remote)
    near = writer.model_copy(update={"name": "near", "config": {**remote, "base_url": "http://127.0.0.1:9/v1"}})
    store.pools.save(Pool(name="keyed", workers=(calculator, writer, near)))
    recipe = parse_recipe(EVALUATION).model_copy(update={"pool": "keyed"})
    plan = plan_rental(recipe, store, jobs, open_hub_jobs())
    assert plan.max_cost == pytest.approx(2 * 60 * 0.000167) and plan.cost is None
    assert [name for name, _ in plan.stays] == ["near"] and "127.0.0.1" in plan.stays[0][1]
    assert plan.secret_names == ("PODIUM_CANARY",) and plan.problems == ()
    hub.rentals.work = lambda machine: end(hub, machine)
    key = jobs.submit(recipe, here=True).id
    run_job(key, store, jobs)
    assert hub.rentals.machines[0].spec["secrets"] == {"PODIUM_CANARY": "sk-canary-long-enough"}
    sent = hub.repos["dataset", f"{USER}/podium-jobs"].files[f"{key}/pools/keyed.json"].decode()
    assert "sk-canary" not in sent and "near" not in sent and "writer" in sent


def test_checkpoints_and_figures_come_back_and_a_checkpoint_that_is_not_whole_does_not(hub, store, jobs, tmp_path):
    def work(machine: Machine) -> None:
        hub.rentals.write(machine, "metrics.jsonl", b'{"stage": "sft", "step": 4, "at": 1.0, "loss": 0.5}\n')
        write_checkpoint(hub, machine, tmp_path / "drafts", 4)
        write_checkpoint(hub, machine, tmp_path / "drafts", 2)
        hub.rentals.write(machine, "checkpoints/2/model.safetensors", b"torn")
        machine.log.append("it learns")
        end(hub, machine)

    hub.rentals.work = work
    row = run(TRAINING, store, jobs)
    job_folder = jobs.folder(row.id)
    assert (row.state, row.step, row.stage) == ("done", 4, "sft")
    assert [step for step, _ in complete_steps(job_folder.checkpoints)] == [4]
    assert job_folder.find_intact_checkpoint()[0] == 4 and read_lines(job_folder.metrics)[0]["loss"] == 0.5
    assert "it learns" in job_folder.log.read_text()


def test_a_machine_that_runs_is_followed_again_and_none_is_rented_twice(hub, store, jobs):
    row = jobs.submit(parse_recipe(TRAINING), here=True)
    volumes = [{"type": "bucket", "source": f"{USER}/podium-jobs"}]
    labels = {"podium": row.id, "attempt": "1"}
    spec = {"flavor": "l4x1", "command": [], "volumes": volumes, "labels": labels}
    hub.rentals.machines.append(Machine("a" * 24, spec))
    hub.rentals.buckets[f"{USER}/podium-jobs"] = {}
    end(hub, hub.rentals.machines[0])
    run_job(row.id, store, jobs)
    assert jobs.get(row.id).state == "done" and len(hub.rentals.machines) == 1


def test_a_stop_gives_the_machine_back_and_resume_rents_another_that_goes_on(hub, store, jobs, tmp_path):
    def stop(machine: Machine) -> None:
        write_checkpoint(hub, machine, tmp_path / machine.id, 2)
        jobs.stop(machine.spec["labels"]["podium"])

    hub.rentals.work = stop
    row = run(TRAINING, store, jobs)
    assert row.state == "stopped" and hub.rentals.machines[0].stage == "CANCELED"
    assert [step for step, _ in complete_steps(jobs.folder(row.id).checkpoints)] == [2]
    hub.rentals.work = lambda machine: end(hub, machine)
    assert jobs.resume(row.id).state == "queued"
    run_job(row.id, store, jobs)
    assert jobs.get(row.id).state == "done"
    assert [machine.spec["labels"]["attempt"] for machine in hub.rentals.machines] == ["1", "2"]


def test_a_network_that_fails_is_waited_for(hub, store, jobs):
    failures = iter([503] * 6)

    def work(machine: Machine) -> None:
        hub.fail = lambda method, path: next(failures, None) if "/api/jobs/" in path or "/tree" in path else None
        end(hub, machine)

    hub.rentals.work = work
    assert run(TRAINING, store, jobs).state == "done" and next(failures, None) is None


def test_an_answer_that_is_lost_while_renting_rents_no_second_machine(hub, store, jobs):
    def lose_answer(method: str, path: str) -> int | None:
        if method == "POST" and path == f"/api/jobs/{USER}" and not hub.rentals.machines:
            body = json.loads(hub.bodies[-1])
            hub.rentals.reply("POST", path, {}, json.dumps(body).encode())
            return 504
        return None

    hub.fail = lose_answer
    hub.rentals.work = lambda machine: end(hub, machine)
    assert run(TRAINING, store, jobs).state == "done" and len(hub.rentals.machines) == 1


def test_a_bucket_that_vanishes_gives_the_machine_back_and_keeps_what_came(hub, store, jobs, tmp_path):
    def work(machine: Machine) -> None:
        write_checkpoint(hub, machine, tmp_path / "drafts", 2)

    def vanish(method: str, path: str) -> None:
        rows = jobs.all()
        if rows and complete_steps(jobs.folder(rows[0].id).checkpoints):
            hub.rentals.buckets.clear()

    hub.fail, hub.rentals.work = vanish, work
    row = run(TRAINING, store, jobs)
    assert (row.state, row.code) == ("failed", "bucket") and "is gone" in row.message
    assert hub.rentals.machines[0].stage == "CANCELED"
    assert [step for step, _ in complete_steps(jobs.folder(row.id).checkpoints)] == [2]


@pytest.mark.parametrize(
    ("stage", "message", "code"),
    [
        ("ERROR", "Job timeout", "timeout"),
        ("ERROR", "exit code 137", "machine"),
        ("CANCELED", None, "cancelled"),
    ],
)
def test_a_machine_that_ends_early_fails_with_the_cause_and_what_to_do(hub, store, jobs, stage, message, code):
    hub.rentals.work = lambda machine: hub.rentals.end(machine, stage, message)
    row = run(TRAINING, store, jobs)
    assert (row.state, row.code) == ("failed", code) and "resume rents another one" in row.message


def test_a_failure_there_is_told_as_it_would_be_here(hub, store, jobs):
    hub.rentals.work = lambda machine: end(hub, machine, "failed", code="out_of_memory", message="not enough memory")
    row = run(TRAINING, store, jobs)
    assert (row.state, row.code, row.message) == ("failed", "out_of_memory", "not enough memory")


def test_no_credit_no_login_and_a_public_bucket_are_refused_with_what_to_do(hub, store, jobs, monkeypatch):
    hub.rentals.credit = False
    row = run(TRAINING, store, jobs)
    assert (row.state, row.code) == ("failed", "credit") and "settings/billing" in row.message
    hub.rentals.credit, hub.rentals.public = True, True
    assert run(TRAINING, store, jobs).code == "public" and not hub.rentals.machines
    monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
    assert run(TRAINING, store, jobs).code == "login"
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(TrainingFailed, match="hf auth login"):
        open_hub_jobs()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ("where: hf:h900", "there are: hf:cpu-basic"),
        ("model: {base: /models/mine}", "is a folder of this machine"),
        ("model: {base: 'starter:tiny', start: other-123abc@4}", "does not travel"),
        ("tasks: {source: 'file:tasks.jsonl'}", "does not travel"),
        ("pool: bare", "on the rented machine: the pool bare lacks"),
        ("processes: 2", "Nvidia L4 x1 has 1 GPU for 2 processes: rent a larger one"),
    ],
)
def test_what_cannot_work_there_is_said_before_anything_is_sent(hub, store, jobs, changes, problem):
    store.pools.save(Pool(name="bare", workers=(WorkerSpec(name="calculator", kind="calculator", description="c"),)))
    lines = [line for line in TRAINING.splitlines() if not line.startswith(changes.split(":")[0] + ":")]
    recipe = parse_recipe("\n".join([*lines, changes]))
    with pytest.raises(InvalidRecipe, match=problem):
        refuse_problems(plan_rental(recipe, store, jobs, open_hub_jobs()))
    assert not hub.repos and not hub.rentals.buckets


def test_the_time_limit_must_be_longer_than_earlier_jobs_took(hub, store, jobs):
    hub.rentals.work = lambda machine: end(hub, machine)
    run(TRAINING, store, jobs)
    recipe = parse_recipe(TRAINING)
    hub_jobs = open_hub_jobs()
    plan = plan_rental(recipe, store, jobs, hub_jobs)
    assert plan.cost == pytest.approx(plan.machine.hourly * plan.seconds / 3600) and not plan.problems
    longer = Recipe.model_validate({**recipe.model_dump(), "max_hours": plan.seconds / 3600 / 2})
    assert plan_rental(longer, store, jobs, hub_jobs).problems[0][0] == "max_hours"


def test_jobs_of_both_places_run_beside_each_other(hub, store, jobs):
    here = jobs.submit(parse_recipe("{name: local, evaluate: {}}"))
    assert jobs.claim(here.id)
    hub.rentals.work = lambda machine: end(hub, machine)
    assert run(TRAINING, store, jobs).state == "done"
    assert {(row.where, row.state) for row in jobs.all()} == {("here", "running"), ("hf:l4x1", "done")}


@pytest.mark.slow
def test_a_killed_process_is_replaced_and_the_machine_is_followed_to_its_end(hub, store, jobs):
    row = jobs.submit(parse_recipe(TRAINING))
    assert jobs.start(row.id)
    wait_for(lambda: hub.rentals.machines and jobs.get(row.id).state == "running")
    first = jobs.get(row.id).owner
    os.kill(int(first.split(":")[0]), signal.SIGKILL)
    wait_for(lambda: jobs.all() and jobs.get(row.id).owner not in ("", first))
    end(hub, hub.rentals.machines[0])
    wait_for(lambda: jobs.get(row.id).state == "done")
    assert len(hub.rentals.machines) == 1


@pytest.mark.slow
def test_the_command_line_tells_the_price_and_asks(hub, store, tmp_path):
    file = tmp_path / "recipe.yaml"
    file.write_text(EVALUATION.replace("where: hf:cpu-basic\n", ""))
    command = [sys.executable, "-m", "trainer", "train", str(file), "--on", "hf:l4x1", "--home", str(store.home.root)]
    refused = subprocess.run(command, input="n\n", capture_output=True, text=True)
    assert refused.returncode == 2 and "$0.80 an hour" in refused.stderr and "$1.60 at most" in refused.stderr
    assert not hub.rentals.machines and not hub.repos
    hub.rentals.work = lambda machine: end(hub, machine)
    agreed = subprocess.run([*command, "--yes"], capture_output=True, text=True)
    assert agreed.returncode == 0 and "done" in agreed.stdout, agreed.stderr


def wait_for(condition, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.1)

"""GRPO through its phases, end to end with a tiny model: stopped or killed inside them and resumed, against one that
ran through.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.traces.store import Store, open_store
from pool_registry.storage.data_folder import find_home
from tests.trainer.jobs.test_durability import forked, learnt, until
from trainer.job_process import run_job
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe

pytestmark = pytest.mark.slow
STEPS = range(1, 8)  # 2 of the main run, 2 adaptive, 3 with recursive calls
RATES = (1e-5, 5e-6, 1e-5, 5e-6, 1e-6, 2e-6 / 3, 1e-6 / 3)
WEIGHTS = (0.1, 0.05, 0, 0, 0, 0, 0)
GROUPS = [
    *[[("", "forge", False)] * 2] * 2,
    *[[("adaptive", "forge", False)] * 2] * 2,
    *[[("recursion", "ledger", False), ("recursion", "ledger", True)]] * 3,
]


def a_recipe(base: Path, dialect: str, every: int = 50) -> Recipe:
    pools = {"subset": 3, "distractors": 0, "rename": 1, "flaky": 0, "prices": 0}
    grpo = {
        "steps": 2,
        "micro_batch": 4,
        "rollouts": {"prompts": 2, "group": 2, "max_rounds": 1, "max_length": 12_000, "mixed_only": False},
        "rewards": [
            {"term": "accuracy", "weight": 0.5},
            {"term": "readable", "weight": 0.5},
            {"term": "parallelism", "weight": 0.1, "anneal": 1.0},
        ],
        "optimizer": {"learning_rate": 1e-5, "schedule": "linear", "warmup": 0},
        "saving": {"every": every, "keep": 2, "check_tasks": 0},
        "phases": [
            {"name": "adaptive", "steps": 2, "pools": pools},
            {
                "name": "recursion",
                "steps": 3,
                "learning_rate": 1e-6,
                "tasks": {"source": "ledger", "levels": [1], "count": 4},
            }
            | {"recursion": {}},
        ],
    }
    return Recipe.model_validate(
        {
            "model": {"base": str(base), "dialect": dialect, "turn_tokens": 16},
            "tasks": {"source": "forge", "levels": [1], "count": 6},
            "grpo": grpo,
            "threads": 1,
        }
    )


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = open_store(find_home())
    yield opened
    opened.close()


def train(recipe: Recipe, store: Store, monkeypatch, stops: tuple[int, ...] = ()) -> JobFolder:
    """Run a job to its end; at each of `stops` it is told to stop after that step, and then resumed."""
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(recipe).id
    folder = jobs.folder(key)

    def is_at(step: int):
        return lambda folder: any("loss" in row and row["step"] == step - 1 for row in read_lines(folder.metrics))

    for step in (*stops, None):
        asked = is_at(step) if step else (lambda _: False)
        monkeypatch.setattr(JobFolder, "stop_requested", property(asked))
        run_job(key, store, jobs)
        row = jobs.get(key)
        assert row.state == ("stopped" if step else "done"), (row.message, folder.log.read_text()[-3000:])
        if step:
            assert complete_steps(folder.checkpoints)[0][0] == step
            jobs.resume(key)
    return folder


def read_phases(folder: JobFolder) -> list[tuple]:
    """What every step of GRPO was: its rate, weight and phase, and which groups were recursive."""
    metrics = read_lines(folder.metrics)
    rates = {row["step"]: row["learning_rate"] for row in metrics if "learning_rate" in row}
    weights = {row["step"]: row["weight/parallelism"] for row in metrics if "weight/parallelism" in row}
    groups: dict[int, list] = {}
    for row in read_lines(folder.rollouts):
        groups.setdefault(row["step"], []).append((row.get("phase", ""), row["family"], row["recursive"]))
    return [(step, rates[step], weights[step], sorted(groups[step])) for step in sorted(groups)]


def assert_is_as_planned(steps: list[tuple]) -> None:
    assert [step for step, *_ in steps] == list(STEPS)
    assert [rate for _, rate, *_ in steps] == pytest.approx(RATES)
    assert [weight for _, _, weight, _ in steps] == pytest.approx(WEIGHTS)
    assert [groups for *_, groups in steps] == GROUPS


def test_a_kill_inside_a_phase_changes_nothing(store, tiny_base):
    """SIGKILL inside the adaptive phase and inside the recursion phase. The job goes on with the next step, with its
    rate, its pools and its recursive groups, and with an optimizer that has seen every step."""
    import torch

    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(a_recipe(tiny_base, "plan", every=1)).id
    folder = jobs.folder(key)
    with forked(store.home.root, key) as processes:
        for step in (3, 6):  # one more step of each phase is to come
            process = processes.start(key)
            until(lambda step=step: max(complete_steps(folder.checkpoints), default=(0,))[0] >= step, 1200, 0.01)
            os.kill(process, signal.SIGKILL)
            assert processes.ended() == signal.SIGKILL
            assert learnt(folder) == list(range(1, step + 1)), "the kill came inside the phase"
            assert [row.code for row in jobs.all()] == ["killed"]
            jobs.resume(key)
        processes.start(key)
        assert processes.ended() == 0, folder.log.read_text()[-3000:]
    assert (jobs.get(key).state, learnt(folder)) == ("done", list(STEPS))
    assert_is_as_planned(read_phases(folder))
    saved = dict(complete_steps(folder.checkpoints))
    assert {step: read_checkpoint(saved[step]).phase for step in (2, 4, 7)} == {2: "", 4: "adaptive", 7: "recursion"}
    moments = torch.load(saved[7] / "optimizer.pt", weights_only=True)["state"].values()
    assert {int(moment["step"]) for moment in moments} == {len(STEPS)}


@pytest.mark.parametrize("dialect", ["plan", "conductor_paper"])
def test_phases_run_in_their_order_and_a_stop_inside_one_changes_nothing(store, tiny_base, monkeypatch, dialect):
    recipe = a_recipe(tiny_base, dialect)
    folder = train(recipe, store, monkeypatch, stops=(3, 6))
    steps = read_phases(folder)
    assert_is_as_planned(steps)
    shares = [row["recursion/groups"] for row in read_lines(folder.metrics) if "recursion/groups" in row]
    assert shares == [0.5, 0.5, 0.5]
    for row in read_lines(folder.rollouts):
        episodes = [store.traces.episode(episode["id"]) for episode in row["episodes"]]
        assert len({episode.started.pool_hash for episode in episodes}) == 1, "one group has one pool"
        drawn = episodes[0].started.pool.endswith("-varied")
        assert drawn == (row.get("phase") == "adaptive")
        allowed = {episode.started.limits["max_rounds"] for episode in episodes}
        assert allowed == ({2} if row["recursive"] else {1})
    manifests = {step: read_checkpoint(path) for step, path in complete_steps(folder.checkpoints)}
    assert {step: manifests[step].phase for step in (2, 4, 7)} == {2: "", 4: "adaptive", 7: "recursion"}
    if dialect == "plan":
        assert read_phases(train(recipe, store, monkeypatch)) == steps

"""The card *Improve* of the Train page: what is new, the start of an improvement, and its timer."""

from __future__ import annotations

import pytest

from orchestrator.engine.process_identity import this_process
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.improving.schedule import read_timers
from studio.pages.train import improve_commands
from studio.pages.train.improve_commands import ImproveCommands
from trainer.improve.record import Improvement, ImprovementPlan, make_folder
from trainer.results.improvement import ImprovementReport, write_report
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.sources.jsonl import TaskLine


@pytest.fixture
def shop(runtime, request, monkeypatch):
    """The commands, and a pool of the test's own."""
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    name = f"shop-{abs(hash(request.node.name)) % 10**6}"
    spec = WorkerSpec(name="calc", kind="calculator", description="Counts.", config={})
    runtime.store.pools.save(Pool(name=name, workers=(spec,)))
    return ImproveCommands(runtime), name, runtime.store.home


def add_tasks(pool: str, learnt: int, held_out: int) -> None:
    splits = ["train"] * learnt + ["test"] * held_out
    open_task_book(pool).add(
        [TaskLine(query=f"What is {n} times 7?", answer=7 * n, split=split) for n, split in enumerate(splits)]
    )


def begin(home, pool: str, key: str = "abcdef", process: str = "") -> Improvement:
    plan = ImprovementPlan(
        id=f"{pool}-{key}", key=key, pool=pool, pool_version=1, serving="router", measured="router", stage="plans",
        taken=(), own=(), learnt=20, replayed=0, held_out=10, started=1.0, jobs={"learn": "job-1"}, process=process,
    )  # fmt: skip
    improvement = Improvement(make_folder(home, plan.id), plan)
    improvement.update()
    return improvement


def test_too_few_new_tasks_are_counted_and_start_nothing(shop, monkeypatch):
    commands, pool, _ = shop
    monkeypatch.setattr(improve_commands, "start_improvement", lambda *_: pytest.fail("nothing must start"))
    add_tasks(pool, 19, 30)
    document = commands.run("improvement", {"pool": pool})["improvement"]
    assert (document["learnt"], document["held_out"], document["has_enough"], document["state"]) == (19, 30, False, "")
    reply = commands.run("improve", {"pool": pool})
    assert not reply["ok"] and "there are 19 new tasks to learn from" in str(reply["problems"])


def test_enough_start_the_command_in_a_process_of_its_own(shop, monkeypatch):
    commands, pool, home = shop
    started = []
    monkeypatch.setattr(improve_commands, "start_improvement", lambda *arguments: started.append(arguments))
    add_tasks(pool, 20, 10)
    assert commands.run("improve", {"pool": pool})["ok"] and started == [(home, pool, "", False)]


def test_one_that_runs_is_not_started_again_and_one_that_was_interrupted_goes_on(shop, monkeypatch):
    commands, pool, home = shop
    started = []
    monkeypatch.setattr(improve_commands, "start_improvement", lambda *arguments: started.append(arguments))
    improvement = begin(home, pool, process=this_process())
    document = commands.run("improvement", {"pool": pool})["improvement"]
    assert (document["state"], document["jobs"]) == ("running", ["job-1"])
    assert "is being improved already" in str(commands.run("improve", {"pool": pool})["problems"]) and not started
    improvement.update(process="")
    assert commands.run("improvement", {"pool": pool})["improvement"]["state"] == "interrupted"
    assert commands.run("improve", {"pool": pool})["ok"] and len(started) == 1


def test_one_that_was_interrupted_is_given_up_when_there_is_enough_for_another(shop, monkeypatch):
    commands, pool, home = shop
    started = []
    monkeypatch.setattr(improve_commands, "start_improvement", lambda *arguments: started.append(arguments))
    improvement = begin(home, pool, process=this_process())
    assert "is being improved already" in str(commands.run("improve_anew", {"pool": pool})["problems"])
    improvement.update(process="")
    assert "there are 0 new tasks" in str(commands.run("improve_anew", {"pool": pool})["problems"]) and not started
    add_tasks(pool, 20, 10)
    assert commands.run("improve_anew", {"pool": pool})["ok"] and started == [(home, pool, "", True)]


def test_what_the_gate_said_last_is_shown(shop):
    commands, pool, home = shop
    report = ImprovementReport(
        pool=pool, pool_version=1, serving="router", candidate="job-1@24", suites=(), guarded=(), hours=0.5,
        promotable=False, reasons=("It is worse.",), cost=0.25,
    )  # fmt: skip
    write_report(begin(home, pool).folder, report)
    document = commands.run("improvement", {"pool": pool})["improvement"]
    assert (document["state"], document["reasons"], document["hours"]) == ("refused", ["It is worse."], 0.5)


def test_the_timer_is_set_and_taken_away_and_odd_times_are_refused(shop):
    commands, pool, home = shop
    reply = commands.run("improve_timer", {"pool": pool, "every": "night"})
    assert reply["improvement"]["every"] == "night" and "every night at 02:00" in reply["message"]
    refused = commands.run("improve_timer", {"pool": pool, "every": "at noon"})
    assert not refused["ok"] and "write night, a time such as 03:30" in str(refused["problems"])
    assert read_timers(home)[pool].every == "night"
    commands.run("improve_timer", {"pool": pool, "every": "off"})
    assert pool not in read_timers(home)
    assert not commands.run("improve_timer", {"pool": "nowhere", "every": "night"})["ok"]

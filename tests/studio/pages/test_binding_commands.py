"""The Pool page's commands on the binding of a checkpoint, the command for a shell, and what the inspector says."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.binding.stored_edits import AUTOMATIC
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeStarted, TurnStarted, TurnTaken
from orchestrator.plan import BoundStep, Step, Turn
from orchestrator.policies.model import plan_binding
from orchestrator.retrieval import sentence_vectors
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import InvalidPool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from studio.__main__ import app
from studio.episode_documents.trace import describe_bindings
from studio.episode_documents.view import build_step_detail
from studio.pages.pool.commands import PoolCommands
from trainer.tasks.pool_conditions import apply_condition

CHECKPOINT = "starter-grpo"


@pytest.fixture
def commands(runtime, monkeypatch):
    """A renamed starter pool in the store, and its commands."""
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    pool, renaming = apply_condition("renamed", starter_pool(), 1)
    runtime.store.pools.save(pool)
    page = PoolCommands(runtime)

    def send(action: str, **fields) -> dict:
        return page.run(action, {"pool": pool.name, "checkpoint": CHECKPOINT, **fields})

    return send, pool, renaming


def rows_of(reply: dict) -> dict[str, dict]:
    return {row["learnt"]: row for row in reply["binding"]["rows"]}


def test_every_learnt_worker_has_a_row_with_its_likeness_and_its_choices(commands):
    send, _, renaming = commands
    reply = send("binding")["binding"]
    names = [name for name, _ in reply["checkpoints"]]
    assert {"starter-sft", "starter-grpo", "smollm2-sft"} <= set(names) and "base" not in names
    rows = {row["learnt"]: row for row in reply["rows"]}
    assert len(rows) == 19 and not reply["changes_nothing"]
    sql = rows["sql"]
    assert sql["worker"] == renaming["sql"] and 0 < sql["likeness"] <= 1 and sql["by"] == "words"
    assert renaming["sql"] in sql["choices"] and renaming["units"] not in sql["choices"], "another kind of arguments"
    assert renaming["solver"] not in sql["choices"], "another role"


def test_a_choice_is_kept_with_the_version_is_used_and_can_be_taken_back(runtime, commands):
    send, pool, renaming = commands
    row = rows_of(send("bind", learnt="sql", worker=renaming["python"]))["sql"]
    assert (row["worker"], row["by"], row["edited"]) == (renaming["python"], "person", True)
    assert row["automatic"] == renaming["sql"]
    settings = BindingSettings(read_edits=runtime.store.bindings.read)
    bound = plan_binding(open_live_pool(pool), CHECKPOINT, settings)().workers["sql"]
    assert bound.worker == renaming["python"]
    version = runtime.store.pools.latest(pool.name).version
    runtime.store.pools.save(pool.model_copy(update={"description": "another version"}))
    assert rows_of(send("binding"))["sql"]["worker"] == renaming["sql"], "a choice belongs to one version"
    assert rows_of(send("binding", version=version))["sql"]["edited"]
    assert send("reset_binding", version=version)["message"] == "Reset 1 choice"
    assert not rows_of(send("binding", version=version))["sql"]["edited"]


def test_a_choice_that_somebody_else_has_made_meanwhile_is_not_replaced_unseen(commands):
    send, _, renaming = commands
    theirs, yours = renaming["python"], renaming["sql"]
    assert send("bind", learnt="sql", worker=theirs, replaces=AUTOMATIC)["ok"]
    for seen, worker in ((AUTOMATIC, yours), (yours, "")):
        stale = send("bind", learnt="sql", worker=worker, replaces=seen)
        assert not stale["ok"] and f"chosen {theirs}" in stale["problems"][0][1]
        assert rows_of(stale)["sql"]["worker"] == theirs, "the page shows it"
    assert not send("reset_binding", learnt="sql", replaces=yours)["ok"]
    assert send("bind", learnt="sql", worker=theirs, replaces=AUTOMATIC)["ok"], "both have chosen the same"
    assert send("reset_binding", learnt="sql", replaces=theirs)["ok"]
    refused = send("bind", learnt="sql", worker=yours, replaces=theirs)
    assert "taken the choice back" in refused["problems"][0][1] and not rows_of(refused)["sql"]["edited"]


def test_a_learnt_worker_can_be_bound_to_none(commands):
    send, _, _ = commands
    row = rows_of(send("bind", learnt="sql", worker=""))["sql"]
    assert row["worker"] == "" and row["edited"] and "a person chose so" in row["problem"]
    assert not rows_of(send("reset_binding", learnt="sql"))["sql"]["edited"]


def test_what_cannot_be_is_refused_in_words(commands):
    send, _, renaming = commands
    assert "cannot stand for sql" in send("bind", learnt="sql", worker=renaming["units"])["problems"][0][1]
    assert "learnt no worker 'nobody'" in send("bind", learnt="nobody", worker="")["problems"][0][1]
    assert "no checkpoint 'gone'" in send("binding", checkpoint="gone")["problems"][0][1]


def test_on_the_pool_of_training_nothing_is_to_be_bound(commands):
    send, _, _ = commands
    reply = send("binding", pool="starter")["binding"]
    assert reply["changes_nothing"] and {row["by"] for row in reply["rows"]} == {"name"}


def test_the_shell_shows_and_changes_a_binding(tmp_path, monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    pool, renaming = apply_condition("renamed", starter_pool(), 1)
    store = open_store(find_home(tmp_path))
    store.pools.save(pool)
    store.close()

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(
            app, ["binding", CHECKPOINT, "--pool", pool.name, "--home", str(tmp_path), *arguments]
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    assert f"{renaming['sql']}" in run() and "by words" in run()
    rows = json.loads(run("--set", f"sql={renaming['python']}", "--set", "solver=none", "--json"))["rows"]
    assert {row["learnt"]: row["worker"] for row in rows if row["edited"]} == {"sql": renaming["python"], "solver": ""}
    assert "Reset 2 choices" in run("--clear")
    with pytest.raises(InvalidPool, match="LEARNT=WORKER"):
        run("--set", "sql")


def test_the_inspector_and_the_shell_say_what_was_asked_for():
    steps = (Step(1, "ledger_books", {"query": "SELECT 1"}), Step(2, "route"), Step(3, "calculator"))
    bindings = (
        BoundStep(1, "sql", "ledger_books", 0.71, "meaning", {"query": "question"}),
        BoundStep(2, "route", "", 0.1, "meaning"),
    )
    turn = Turn(steps, bindings=bindings)
    episode = Episode("e")
    started = EpisodeStarted("q", "p", "h", "c", {}, "2026-01-01T00:00:00Z")
    for event in (started, TurnStarted(1, 0.0), TurnTaken(1, turn, 0.1)):
        episode.apply(event)
    bound = build_step_detail(episode, 1, None).binding
    assert (bound.learnt, bound.worker, bound.likeness, bound.parameters) == (
        "sql",
        "ledger_books",
        0.71,
        {"query": "question"},
    )
    assert (
        build_step_detail(episode, 2, None).binding.worker == "" and build_step_detail(episode, 3, None).binding is None
    )
    event = {
        "type": "turn_taken",
        "turn": {
            "bindings": [{"step": 1, "learnt": "sql", "worker": "ledger_books", "likeness": 0.71, "by": "meaning"}]
        },
    }
    assert describe_bindings({"events": [event, {"type": "graded"}]}) == [
        "step 1: asked for sql, bound to ledger_books, 0.71"
    ]

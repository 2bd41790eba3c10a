"""What one person or client has sent is deleted for good, wherever it got to; what others sent stays."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete
from sqlmodel import col
from typer.testing import CliRunner

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.failure_memory.lessons import LessonRow
from orchestrator.plan import Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.agent_track_record import SoloEpisode
from orchestrator.traces.kept_choice import keep_choice
from orchestrator.traces.store import EpisodeRow, EventRow, Store, TraceFilter
from pool_registry.actions import Observation, Status
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import StorageError
from pool_registry.pool import Pool
from pool_registry.storage.backups import keep_daily_copy
from pool_registry.storage.database import writing
from pool_registry.worker import WorkerSpec
from studio.__main__ import app
from studio.cli.improve import describe_report
from studio.deployments.store import DeploymentChangeRow
from studio.housekeeping import forgetting
from studio.housekeeping.forgetting import Sender, forget
from studio.housekeeping.things import Things
from studio.model_server.conversation import ConversationMessage
from studio.model_server.kept_responses import KeptResponses
from studio.prepare import prepare_store
from tests.studio.support.reports import make_report
from trainer.demonstrations.episode_task import Judgement, judge_run
from trainer.jobs.queue import JobStore
from trainer.recipe import list_presets, load_recipe
from trainer.results.improvement import read_report, write_report
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.practice.traffic_record import read_traffic
from trainer.tasks.sources.jsonl import SourceRun, TaskLine
from trainer.traffic.accept import Choice, accept_candidates, set_consent, strike_candidates
from trainer.traffic.candidates import list_candidates

pytestmark = pytest.mark.medium
ANN, BOB = "canary-ann-7411", "canary-bob-2055"
CALC = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")


@pytest.fixture
def store(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = prepare_store(str(tmp_path / "home"))
    opened.pools.save(Pool(name="mine", workers=(CALC,)))
    yield opened
    opened.close()


def run(store: Store, user: str, query: str, source: str = "served") -> str:
    async def once() -> str:
        async with live_pool(store.pools.latest("mine").pool) as live:
            spec = EpisodeSpec(query, source=source, user=user)
            return (await run_episode(spec, OraclePolicy(Turn(answer=query)), live, sink=store.traces)).id

    episode = asyncio.run(once())
    store.traces.flush()
    return episode


def spread(store: Store, user: str, canary: str) -> None:
    """Let a query of a person get everywhere that one can get to."""
    query = f"What of {canary}?"
    episode = run(store, user, query)
    deleted = run(store, user, f"And what of {canary} then?")
    Things(store).delete("trace", deleted)
    TaskBook(store.home.root / "tasks" / "mine.jsonl").add([TaskLine(query=query, answer=canary)])
    struck = f"Struck {canary}, what is it?"
    run(store, user, struck)
    TaskBook(store.home.root / "tasks" / "mine.jsonl").add([TaskLine(query=struck, answer="1")])
    TaskBook(store.home.root / "tasks" / "mine.jsonl").strike(struck)
    with writing(store.engine) as session:
        lesson = LessonRow(
            pool="mine", episode=episode, query=query, sentence=canary, written_by="rule", created_at=datetime.now(UTC)
        )
        session.add(lesson)
    DatabaseCacheStore(store.engine).put(f"key of {user}", Observation(Status.OK, canary))
    document = {"id": f"resp_{episode}", "status": "completed", "output": []}
    KeptResponses(store.home).keep(user, [ConversationMessage("user", query)], document)
    with store.home.set_aside.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"episode": episode, "body": canary}) + "\n")
    jobs = JobStore(store.engine, store.home)
    folder = jobs.folder(jobs.submit(load_recipe(list_presets()[0])).id)
    folder.path.mkdir(parents=True, exist_ok=True)
    shown = {"messages": [{"role": "user", "content": f"Workers: calc\n\n{query}"}], "answer": canary}
    (folder.path / "demonstrations.jsonl").write_text(f"{json.dumps(shown)}\n")
    folder.frozen_past.write_text(json.dumps({"mine": {"record": [{"query": query, "answer": canary}]}}))
    (folder.path / "checkpoints").mkdir(exist_ok=True)
    spread_in_improvement(store, user, canary)


def spread_in_improvement(store: Store, user: str, canary: str) -> None:
    """Let an improvement learn from a person's question, get worse on it, and be promoted all the same."""
    query, edited = f"What of {canary}?", f"What about {canary}?"
    report = make_report(worse=(query, "And of others?"))
    folder = store.home.root / "improvements" / f"mine-{user}"
    folder.mkdir(parents=True)
    write_report(folder, report)
    source = SourceRun(id="gone", user=user, source="served", started_at="2026-01-01T00:00:00+00:00")
    lines = [TaskLine(query=query, answer=canary), TaskLine(query=edited, answer="1", run=source)]
    (folder / "learn.jsonl").write_text("".join(f"{line.model_dump_json(exclude_none=True)}\n" for line in lines))
    with (folder.parent / "mine.log").open("a") as log:
        log.write("\n".join(describe_report(report)) + "\n")
    outcome = SoloEpisode("calc", query, True, 1.0, 0.0, need=canary)
    keep_choice("mine", user, [outcome, replace(outcome, query=edited)], lambda to: (to / "head.bin").write_bytes(b"1"))
    with writing(store.engine) as session:
        session.add(
            DeploymentChangeRow(
                deployment=user, number=1, action="promoted", state="{}", made_by="", made_at="",
                report=report.model_dump_json(),
            )
        )  # fmt: skip


def find(home: Path, text: str) -> list[str]:
    """The files below a folder that hold a text, also those that are compressed."""
    holds = []
    for path in home.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content += gzip.decompress(content) if path.suffix == ".gz" else b""
            holds += [str(path)] if text.encode() in content else []
    return holds


def test_nothing_is_left_of_a_person_and_everything_of_another(store):
    for user, canary in (("ann", ANN), ("bob", BOB)):
        spread(store, user, canary)
    copied = store.home.root / "forks" / "a.process that is no more" / "after"
    copied.mkdir(parents=True)
    (copied / "orders.txt").write_text(ANN)
    assert keep_daily_copy(store.engine, store.home, 7, 30) is not None
    before = find(store.home.root, BOB)
    assert len(find(store.home.root, ANN)) >= 8, "it got everywhere"

    forgotten = forget(store, Sender(user="ann"))

    assert find(store.home.root, ANN) == []
    assert {row.user_name for row in store.traces.search(TraceFilter(limit=100))} == {"bob"}
    assert set(before) - set(find(store.home.root, BOB)) <= {f"{store.home.root}/podium.db-wal"}
    assert forgotten.counts == {
        "runs": 2, "lessons": 1, "copies of the database": 1, "things in the trash": 1,
        "kept responses": 1, "tasks": 2, "lines of jobs": 1, "events set aside": 1, "lines of improvements": 6,
    }  # fmt: skip
    checkpoints, predictor = forgotten.stays
    assert "checkpoints of" in checkpoints and "podium delete job" in checkpoints
    assert "success predictor" in predictor and "kept-ann may have learnt from it" in predictor
    assert read_report(store.home.root / "improvements" / "mine-ann").worse == ("And of others?",)
    assert [row.task.query for row in TaskBook(store.home.root / "tasks" / "mine.jsonl").read()] == [f"What of {BOB}?"]


def test_what_was_cut_short_is_finished_by_the_same_command(store, monkeypatch):
    spread(store, "ann", ANN)
    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "_forget_in_copies", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            forget(store, Sender(user="ann"))
    assert find(store.home.root, ANN), "some of it is still there"
    forget(store, Sender(user="ann"))
    assert find(store.home.root, ANN) == []


def test_a_task_goes_with_the_run_that_it_was_made_of_whatever_its_words_are_now(store, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))
    trace = run(store, "ann", f"What of {ANN}, one?")
    judge_run(store, trace, Judgement(is_right=True))
    set_consent("mine", True)
    (candidate,) = list_candidates(store, "mine")
    assert accept_candidates(store, "mine", [Choice(candidate.id, query="What is one?")]).added
    struck = run(store, "ann", "And what is two?")
    judge_run(store, struck, Judgement(is_right=True))
    strike_candidates(store, "mine", [candidate.id for candidate in list_candidates(store, "mine")])
    with writing(store.engine) as session:  # the trace is older than what retention keeps
        session.exec(delete(EventRow).where(col(EventRow.episode) == trace))
        session.exec(delete(EpisodeRow).where(col(EpisodeRow.id) == trace))

    assert forget(store, Sender(user="ann")).counts["tasks"] == 1
    assert TaskBook(store.home.root / "tasks" / "mine.jsonl").read() == [] and not read_traffic("mine").struck
    assert read_traffic("mine").clients, "what a person allowed stays"


def test_what_ifs_of_others_go_with_the_question_that_they_repeat(store):
    original, variation = run(store, "ann", f"What of {ANN}?"), run(store, "bob", f"What of {ANN}?", source="mine")
    with writing(store.engine) as session:
        session.get(EpisodeRow, variation).what_if_of = original
    assert forget(store, Sender(user="ann")).counts["runs"] == 2
    assert find(store.home.root, ANN) == []


def test_follow_ups_of_others_go_with_the_answers_that_they_keep(store):
    original, later = run(store, "ann", f"What of {ANN}?"), run(store, "bob", "And of the rest?", source="mine")
    with writing(store.engine) as session:
        session.get(EpisodeRow, later).continues = original
    assert forget(store, Sender(user="ann")).counts["runs"] == 2
    assert find(store.home.root, ANN) == [] and store.traces.search(TraceFilter(limit=100)) == []


def test_times_and_sources_choose_what_goes(store):
    old, new = run(store, "ann", "a question of before"), run(store, "ann", "a question of now")
    own = run(store, "ann", "a question on the page", source="mine")
    with writing(store.engine) as session:
        session.connection().exec_driver_sql(
            "UPDATE episode SET started_at='2024-05-01T10:00:00.000+00:00' WHERE id=?", (old,)
        )
    border = datetime(2025, 1, 1, tzinfo=UTC)
    assert forget(store, Sender(until=border), dry_run=True).counts["runs"] == 1
    assert forget(store, Sender(user="nobody")).counts == {}
    forget(store, Sender(source="served", since=border, until=datetime.now(UTC) + timedelta(minutes=1)))
    assert {row.id for row in store.traces.search(TraceFilter(limit=100))} == {old, own}
    forget(store, Sender(until=border))
    assert {row.id for row in store.traces.search(TraceFilter(limit=100))} == {own} and new != own


def test_a_short_question_takes_no_longer_text_along(store):
    run(store, "ann", "why")
    book = TaskBook(store.home.root / "tasks" / "mine.jsonl")
    book.add([TaskLine(query="why not?", answer="1"), TaskLine(query="why", answer="2")])
    forget(store, Sender(user="ann"))
    assert [row.task.query for row in book.read()] == ["why not?"]


def test_without_a_choice_nothing_goes(store):
    with pytest.raises(StorageError, match="say whose runs"):
        forget(store, Sender())


def test_a_job_that_runs_on_some_of_it_keeps_all_of_it(store):
    run(store, "ann", f"What of {ANN}?")
    jobs = JobStore(store.engine, store.home)
    row = jobs.submit(load_recipe(list_presets()[0]), here=True)
    assert jobs.claim(row.id)
    folder = jobs.folder(row.id).path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rollouts.jsonl").write_text(json.dumps({"query": f"What of {ANN}?"}))
    with pytest.raises(StorageError, match="stop it first"):
        forget(store, Sender(user="ann"))
    assert len(store.traces.search(TraceFilter(limit=100))) == 1


def test_the_command_counts_asks_and_says_what_went(store, monkeypatch):
    run(store, "ann", f"What of {ANN}?")
    home = str(store.home.root)
    podium = lambda *words: CliRunner().invoke(app, ["forget", *words, "--home", home], input="n\n")  # noqa: E731
    assert "1 runs that have ended" in podium("--user", "ann", "--dry-run").output
    assert podium("--user", "ann").exit_code == 1 and len(store.traces.search(TraceFilter())) == 1
    done = podium("--user", "ann", "--yes")
    assert done.exit_code == 0 and "Deleted for good: 1 runs" in done.output
    wrong = podium("--source", "serverd", "--yes")
    assert "use one of: mine, served" in f"{wrong.output}{wrong.exception}"

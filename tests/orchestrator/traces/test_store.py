"""What is recorded: nothing acknowledged is lost, whatever happens to the process or the disk."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.event import listen
from sqlalchemy.exc import OperationalError
from sqlmodel import SQLModel

from orchestrator.engine.edits import AddStep, ChangeStep, RemoveStep, RunAgain, SetAnswer, WhatIf
from orchestrator.engine.episode import replay
from orchestrator.engine.episode_loop import new_episode_id
from orchestrator.engine.events import (
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Graded,
    ParentStep,
    StepEnded,
    StepStarted,
    TaskRef,
    TurnStarted,
    TurnTaken,
    dump_event,
    load_event,
)
from orchestrator.engine.process_identity import is_alive, this_process
from orchestrator.errors import EpisodeNotFound
from orchestrator.plan import Lesson, RecalledLessons, Step, Turn
from orchestrator.traces import writer
from orchestrator.traces.store import Store, TraceFilter, open_store
from pool_registry.actions import Failure, Observation, Status, Usage
from pool_registry.errors import StorageError
from pool_registry.pool import Pool
from pool_registry.storage import data_folder as home_module
from pool_registry.storage import upgrade as store_module
from pool_registry.storage.data_folder import find_home
from tests.orchestrator.support.engine import Events, deep, engine_kinds, play_turns, step, worker
from tests.trust.trials import choose_trials, count_trials

__all__ = ["engine_kinds"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(find_home(tmp_path))
    yield opened
    opened.close()


def record(store: Store, episode_id: str, *events: Event) -> None:
    for event in events:
        store.traces.append(episode_id, event)
    store.traces.flush()


def started(query: str = "q", **changes: object) -> EpisodeStarted:
    fields = {"pool": "p", "pool_hash": "h", "orchestrator": "o", "limits": {}, "started_at": "2026-01-01", **changes}
    return EpisodeStarted(query, **fields)  # type: ignore[arg-type]


# Events

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
seconds = st.floats(0, 1e6)
number = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
values = st.recursive(
    st.none() | st.booleans() | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(text, values, max_size=3)
usage = st.builds(Usage, st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1e3))
observation = st.builds(
    Observation,
    st.sampled_from(Status),
    values,
    seconds,
    usage,
    st.none() | st.builds(Failure, text, text),
    st.none() | text,
    st.none() | text,
)
steps = st.builds(Step, st.integers(1, 99), text, arguments, st.lists(st.integers(1, 99)).map(tuple), st.none() | text)
lesson = st.builds(Lesson, text, text, text, text, st.floats(-1, 1))
turns = st.builds(
    Turn,
    st.lists(steps, max_size=3).map(tuple),
    values,
    st.none() | text,
    text,
    st.none() | text,
    usage,
    st.booleans(),
    recalled=st.none() | st.builds(RecalledLessons, st.lists(lesson, max_size=3).map(tuple), st.integers(0, 99), text),
)
numbers = st.integers(1, 99)
edit = st.one_of(
    st.builds(ChangeStep, numbers, text, arguments, st.lists(numbers).map(tuple)),
    st.builds(AddStep, numbers, text, arguments, st.lists(numbers).map(tuple)),
    st.builds(RemoveStep, numbers),
    st.builds(RunAgain, numbers),
    st.builds(SetAnswer, values),
)
edits = st.lists(edit, max_size=4).map(tuple)
what_if = st.none() | st.builds(WhatIf, text, numbers, edits, st.dictionaries(numbers, numbers))
task = st.none() | st.builds(TaskRef, text, st.integers(0, 9), text, st.integers(0), st.integers(0, 9))
parent = st.none() | st.builds(ParentStep, text, st.integers(1, 99))
events = st.one_of(
    st.builds(
        EpisodeStarted, text, text, text, text, arguments, text, st.integers(0, 9), parent, task, seconds, what_if
    ),
    st.builds(TurnStarted, st.integers(1, 99), seconds),
    st.builds(TurnTaken, st.integers(1, 99), turns, seconds),
    st.builds(StepStarted, st.integers(1, 99), seconds, arguments),
    st.builds(StepEnded, st.integers(1, 99), observation, seconds),
    st.builds(EpisodeEnded, st.sampled_from(["answered", "max_rounds", "stopped"]), seconds, values, st.none() | text),
    st.builds(Graded, st.booleans(), text, seconds),
)


@settings(max_examples=200, deadline=None)
@given(events)
def test_an_event_reads_back_as_it_was_written(event):
    assert load_event(dump_event(event)) == event


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(event=events)
def test_an_event_comes_back_from_the_store(event, store):
    episode_id = hashlib.sha256(dump_event(event).encode()).hexdigest()
    record(
        store,
        episode_id,
        started(),
        *(
            []
            if isinstance(event, EpisodeStarted | StepStarted | StepEnded | TurnTaken)
            else [TurnStarted(1, 0.0), event]
        ),
    )
    kept = [kept for _, kept in store.traces.events_after(episode_id)]
    assert kept[0] == started() and (len(kept) == 1 or kept[2] == event)


@pytest.mark.parametrize(
    "odd",
    [float("nan"), float("inf"), deep(300), {1, 2}, {3: 4}, object(), "\ud800", 10**400, b"x"],
    ids=lambda odd: type(odd).__name__,
)
def test_a_value_that_is_no_json_is_recorded_as_well_as_can_be(odd):
    loaded = load_event(dump_event(EpisodeEnded("answered", 1.0, [odd, "rest"])))
    assert loaded.outcome == "answered" and loaded.answer[-1] == "rest"


# Episodes

CHAIN = Turn((step(1), step(2, "$1", "agent", [1]), Step(3, "nobody"), step(4, "$3", "actor", [3])), "$2")


def test_the_stored_episode_is_the_live_one(store):
    live = play_turns(Turn(error="no turn", text="hm"), CHAIN, sink=store.traces, parts={4: ("fault", 0.0)})
    store.traces.flush()
    assert store.traces.episode(live.id) == live
    row = store.traces.row(live.id)
    assert (row.state, row.steps, row.failed_steps, row.answer) == ("answered", 4, 2, live.answer)


def test_replaying_any_part_of_a_trace_is_the_episode_at_that_moment():
    sink = Events()
    live = play_turns(CHAIN, sink=sink)
    recorded = sink.of[live.id]
    assert replay(live.id, recorded) == live
    for length in range(len(recorded)):
        replay(live.id, recorded[:length])


def test_readers_get_only_what_is_new(store):
    live = play_turns(CHAIN, sink=store.traces)
    store.traces.flush()
    everything = store.traces.events_after(live.id)
    assert store.traces.events_after(live.id, everything[3][0]) == everything[4:]


def test_who_waits_for_the_disk_does_not_wait_for_later_events(store, monkeypatch):
    monkeypatch.setattr(writer, "GATHER_S", 60.0)
    for turns in range(3):
        live = play_turns(CHAIN, sink=store.traces)
        before = time.monotonic()
        store.traces.flush()
        assert time.monotonic() - before < 30.0, turns
        assert store.traces.row(live.id).state == "answered"


def test_odd_values_do_not_stop_the_recording_of_others(store):
    play_turns(Turn(answer=deep(300)), sink=store.traces)
    play_turns(Turn(answer="\ud800"), query="q\ud800", sink=store.traces)
    fine = play_turns(CHAIN, sink=store.traces)
    store.traces.flush()
    assert store.traces.episode(fine.id) == fine


def test_a_missing_episode_is_told_plainly(store):
    with pytest.raises(EpisodeNotFound, match="nope"):
        store.traces.episode("nope")


def test_search_filters_and_orders(store):
    ended = EpisodeEnded("answered", 1.0, "It is 50%_done")
    record(store, "a", started("Where is Köln?", started_at="1"), ended, Graded(True, "x", 2.0))
    record(
        store, "b", started("other", pool="q", started_at="2"), EpisodeEnded("stopped", 1.0), Graded(False, "x", 2.0)
    )
    record(store, "c", started("inner", started_at="3", depth=1, parent=ParentStep("a", 1), orchestrator="x"))
    record(store, "d", started("still running", started_at="4"))

    def ids(**wanted: object) -> list[str]:
        return [row.id for row in store.traces.search(TraceFilter(**wanted))]  # type: ignore[arg-type]

    assert ids() == ["d", "b", "a"]
    assert ids(nested=True) == ["d", "c", "b", "a"]
    assert ids(pool="q") == ["b"]
    assert ids(orchestrator="x", nested=True) == ["c"]
    assert (ids(state="running"), ids(state="correct"), ids(state="wrong"), ids(state="stopped")) == (
        ["d"],
        ["a"],
        ["b"],
        ["b"],
    )
    assert (ids(text="OTHER"), ids(text="0%_d"), ids(text="%"), ids(text="none")) == (["b"], ["a"], ["a"], [])
    assert (ids(limit=1), ids(limit=1, offset=1)) == (["d"], ["b"])
    assert store.traces.distinct("pool") == ["p", "q"]


def test_ids_are_long_enough_for_millions_and_the_shorter_ones_of_before_are_read_as_well(store):
    ids = {new_episode_id() for _ in range(1000)}
    assert len(ids) == 1000 and all(int(one, 16) < 2**96 for one in ids) and max(int(one, 16) for one in ids) > 2**80
    older, newer = "3f9a0c17be52", ids.pop()
    for episode in (older, newer):
        record(store, episode, started(episode), EpisodeEnded("answered", 1.0, "done"))
    for episode in (older, newer):
        assert store.traces.row(episode).query == store.traces.episode(episode).query == episode
        assert [row.id for row in store.traces.search(TraceFilter(text=episode[:10]))] == [episode]
    assert {row.id for row in store.traces.search(TraceFilter())} == {newer, older}


def test_pools_are_listed_by_what_ran_on_them(store):
    for name in ("listed", "unused"):
        store.pools.save(Pool(name=name, workers=(worker("actor"),)))
    drawn = Pool(name="drawn", workers=(worker("agent"),))
    store.traces.keep_pool(drawn, drawn.hash)
    ran = [("listed", "training"), ("drawn", "evaluation"), ("drawn", ""), ("gone", ""), ("gone", "training")]
    ran += [("served", "served"), ("other", "mine"), ("task's own", "training")]
    for number, (pool, source) in enumerate(ran):
        record(store, f"e{number}", started(pool=pool, source=source))
    assert store.traces.list_pools() == ["gone", "listed", "other", "served"]
    assert store.traces.distinct("source") == ["", "evaluation", "mine", "served", "training"]


def test_the_filters_values_are_found_without_reading_every_episode(store):
    record(store, "a", started(source="mine"))
    statements = []
    listen(store.engine, "before_cursor_execute", lambda *args: statements.append(args[2:4]))
    store.traces.list_pools()
    for column in ("orchestrator", "user_name", "source"):
        store.traces.distinct(column)
    with store.engine.connect() as connection:
        plans = [
            step.detail
            for statement, values in list(statements)
            for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
        ]
    assert any(step.startswith("SEARCH episode") for step in plans)
    assert not [step for step in plans if step.startswith("SCAN episode")]


def test_worker_statistics_count_calls_that_reached_the_worker(store):
    episode = play_turns(CHAIN, sink=store.traces, parts={1: ("fault", 0.0)}, max_rounds=1)
    store.traces.flush()
    version = store.traces.row(episode.id).pool_hash
    assert store.traces.pool_stats({"actor": ["another version"]}) == {}
    stats = store.traces.pool_stats({"actor": [version]})
    assert set(stats) == {"actor"} and (stats["actor"].calls, stats["actor"].ok) == (1, 0)


# Crashes


def run_episodes(home: Path, acknowledge: int) -> None:
    """Run one episode after the other, and write the id of each to `acknowledge` when its trace is flushed."""
    store = open_store(find_home(home))
    turn = Turn(tuple(step(k, "", "actor", [k - 1] if k > 1 else []) for k in range(1, 6)), "$5")
    while True:
        episode = play_turns(turn, sink=store.traces, workers=[worker("actor")])
        store.traces.flush()
        os.write(acknowledge, f"{episode.id}\n".encode())


def kill_after(home: Path, episodes: int) -> list[str]:
    """Kill a process that runs episodes when it has acknowledged so many. Returns all that it had acknowledged."""
    reader, writer_end = os.pipe()
    child = os.fork()  # past the imports
    if child == 0:
        try:
            run_episodes(home, writer_end)
        finally:
            os._exit(1)
    os.close(writer_end)
    with os.fdopen(reader) as lines:
        acknowledged = [lines.readline().strip() for _ in range(episodes)]
        os.kill(child, signal.SIGKILL)
        acknowledged += [line.strip() for line in lines]
    os.waitpid(child, 0)
    return acknowledged


KILLS = choose_trials(10)
WHOLE = ["episode_started", "turn_started", "turn_taken", *["step_started", "step_ended"] * 5, "episode_ended"]


@pytest.mark.slow
def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path):
    chance = random.Random(7)
    acknowledged: list[str] = []
    for _ in range(KILLS):
        acknowledged += kill_after(tmp_path, chance.randint(1, 25))
        count_trials()
    assert all(acknowledged) and len(acknowledged) > KILLS

    connection = sqlite3.connect(tmp_path / "podium.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    kept: dict[str, list[str]] = {}
    for episode_id, kind in connection.execute("SELECT episode, type FROM event ORDER BY id"):
        kept.setdefault(episode_id, []).append(kind)
    connection.close()
    assert all(kept[episode_id] == WHOLE for episode_id in acknowledged)
    assert all(types == WHOLE[: len(types)] for types in kept.values()), "no gaps in what was cut off"
    assert len(kept) - len(acknowledged) <= KILLS, "at most the episode in flight is cut off"

    store = open_store(find_home(tmp_path))
    running = len(store.traces.search(TraceFilter(state="running", limit=10_000)))
    assert store.traces.mark_interrupted() == running
    states = {row.state for row in store.traces.search(TraceFilter(limit=100_000))}
    assert states <= {"answered", "interrupted"}
    store.close()


def test_episodes_of_processes_that_are_gone_are_marked_interrupted(store, monkeypatch):
    record(store, "mine", started())
    monkeypatch.setattr(writer, "this_process", lambda: "999999999:1.00")
    record(store, "theirs", started())
    assert store.traces.mark_interrupted() == 1
    assert (store.traces.row("mine").state, store.traces.row("theirs").state) == ("running", "interrupted")


def test_a_reused_pid_is_not_taken_for_the_process_that_had_it(tmp_path):
    assert is_alive(this_process(), tmp_path)
    for owner in (f"{os.getpid()}:1.00", "", "x:y"):
        assert not is_alive(owner, tmp_path)


def test_a_disk_that_refuses_delays_events_and_loses_none(store, monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.02)
    write = store.traces._writer._write
    full = True

    def refusing(batch):
        if full:
            raise OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
        write(batch)

    monkeypatch.setattr(store.traces._writer, "_write", refusing)
    live = play_turns(CHAIN, sink=store.traces)
    with pytest.raises(StorageError, match="disk is full"):
        store.traces.flush()
    assert "disk is full" in store.traces.problem
    full = False
    store.traces.flush()
    assert store.traces.problem is None
    assert store.traces.episode(live.id) == live


@pytest.mark.parametrize("broken", ["second start", "no json", "too large"])
def test_an_event_that_cannot_be_stored_is_set_aside_and_recording_goes_on(store, broken, caplog):
    record(store, "healthy", started())
    record(store, "broken", started())
    if broken == "second start":
        store.traces.append("broken", started())
    elif broken == "no json":
        store.traces.append("broken", EpisodeEnded("answered", 1.0, {"a": object()}))
    else:
        store.traces.append("broken", TurnStarted(1, 0.0))
        store.traces.append("broken", TurnTaken(1, Turn(answer="x", usage=Usage(tokens_in=2**70)), 0.1))
    live = play_turns(CHAIN, sink=store.traces)
    store.traces.append("healthy", EpisodeEnded("answered", 1.0, "fine"))
    store.traces.flush()
    assert store.traces.episode(live.id) == live
    assert store.traces.row("healthy").answer == "fine" and store.traces.problem is None
    lines = [json.loads(line) for line in store.home.set_aside.read_text().splitlines()]
    assert {line["episode"] for line in lines} == {"broken"} and all(line["reason"] for line in lines)
    assert "an event of episode broken cannot be stored" in caplog.text and "set-aside.jsonl" in caplog.text


def test_nothing_of_an_episode_is_mixed_into_an_older_one_with_its_id(store):
    record(store, "twice", started())
    store.traces.append("twice", EpisodeEnded("answered", 1.0, "first"))
    store.traces.flush()
    for event in (started(), EpisodeEnded("answered", 2.0, "second")):
        store.traces.append("twice", event)
    store.traces.flush()
    assert store.traces.row("twice").answer == "first" and len(store.traces.events_after("twice")) == 2
    assert len(store.home.set_aside.read_text().splitlines()) == 2


def test_a_database_that_another_process_holds_is_waited_for(store, monkeypatch):
    monkeypatch.setattr("pool_registry.storage.database.BUSY_S", 0.05)
    with closing(sqlite3.connect(store.home.root / "podium.db", check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.6, other.rollback).start()
        store.engine.dispose()  # the next connection gives up after BUSY_S
        live = play_turns(CHAIN, sink=store.traces)
        store.traces.flush()
    assert store.traces.episode(live.id) == live


def test_closing_writes_out_what_is_left(tmp_path):
    store = open_store(find_home(tmp_path))
    live = play_turns(CHAIN, sink=store.traces)
    store.close()
    again = open_store(find_home(tmp_path))
    assert again.traces.episode(live.id) == live


# The database


def test_the_models_are_what_the_migrations_make(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    import pool_registry.calls.call_cache_table  # noqa: F401  its table is in the same database
    import studio.access.accounts
    import studio.access.pool_rights
    import studio.access.shared_runs
    import studio.deployments.store  # noqa: F401
    import trainer.jobs.queue  # noqa: F401  and so is its

    engine = store_module.open_engine(find_home(tmp_path))
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), SQLModel.metadata)
    tables = {"episode", "event", "star", "job", "pool_version", "pool_head", "recorded", "reflection"} | {
        "account",
        "login_session",
        "api_token",
        "shared_run",
    }
    ours = [found for found in differences if not (found[0] == "add_table" and found[1].name not in tables)]
    assert ours == []


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def empty_log(path: Path) -> None:
    """Move what SQLite's write-ahead log holds into the database: a connection that another thread has not closed yet
    puts that off until it closes, and then changes the file."""
    with closing(sqlite3.connect(path)) as connection:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not busy


def test_a_newer_database_is_refused_and_left_as_it_was(tmp_path):
    open_store(find_home(tmp_path)).close()
    path = tmp_path / "podium.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from the future'")
        connection.commit()
    empty_log(path)
    before = sha(path)
    with pytest.raises(StorageError, match=r"newer Podium.*update Podium"):
        open_store(find_home(tmp_path))
    assert sha(path) == before and not list((tmp_path / "backups").glob("*"))


@pytest.mark.parametrize("damage", ["no database", "torn"])
def test_a_corrupt_database_is_told_plainly(tmp_path, damage):
    open_store(find_home(tmp_path)).close()
    path = tmp_path / "podium.db"
    empty_log(path)
    for extra in tmp_path.glob("podium.db-*"):
        extra.unlink()
    whole = path.read_bytes()
    path.write_bytes(b"this is no database at all" * 400 if damage == "no database" else whole[:4096] + b"\xff" * 8192)
    with pytest.raises(StorageError, match=r"cannot be used: .*(not a database|malformed|disk I/O error)"):
        open_store(find_home(tmp_path))


def test_a_folder_that_refuses_writes_is_told_plainly(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(home_module.tempfile, "TemporaryFile", refuse)
    with pytest.raises(StorageError, match=r"cannot be written to \(Permission denied\).*--home"):
        find_home(tmp_path / "fresh")


def test_an_upgrade_is_preceded_by_a_backup(tmp_path, monkeypatch):
    store = open_store(find_home(tmp_path / "home"))
    record(store, "kept", started())
    store.close()
    newer = tmp_path / "migrations"
    shutil.copytree(store_module.MIGRATIONS, newer)
    (newer / "versions" / "9999_next.py").write_text(
        "from alembic import op\nimport sqlalchemy as sa\nrevision = '9999'\ndown_revision = '%s'\n"
        "def upgrade():\n    op.create_table('extra', sa.Column('id', sa.Integer, primary_key=True))\n"
        % newest_revision()
    )
    monkeypatch.setattr(store_module, "MIGRATIONS", newer)
    store = open_store(find_home(tmp_path / "home"))
    assert store.traces.row("kept").query == "q"
    store.close()
    (backup,) = (tmp_path / "home" / "backups").glob("*.db")
    connection = sqlite3.connect(backup)
    assert connection.execute("SELECT id FROM episode").fetchall() == [("kept",)]
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchall()


def newest_revision() -> str:
    from alembic.script import ScriptDirectory

    head = ScriptDirectory(str(store_module.MIGRATIONS)).get_current_head()
    assert head is not None
    return head


def test_events_that_do_not_follow_each_other_are_written_and_stop_nothing(tmp_path):
    """An orchestrator's bug: the one episode cannot be summed up, the writer goes on."""
    store = open_store(find_home(tmp_path))
    started = EpisodeStarted("q", "p", "h", "o", {}, "2026-01-01T00:00:00+00:00")
    store.traces.append("odd", started)
    store.traces.append("odd", TurnTaken(1, Turn(answer="x"), 0.1))  # without a TurnStarted
    store.traces.append("odd", EpisodeEnded("answered", 0.2, "x"))
    live = play_turns(CHAIN, sink=store.traces)
    store.traces.flush()
    assert len(store.traces.events_after("odd")) == 3
    assert store.traces.episode(live.id) == live
    store.close()

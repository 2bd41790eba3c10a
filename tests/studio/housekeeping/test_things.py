"""What is deleted goes to the trash with its rows and files, and comes back whole; what is in use stays."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.choice.own_predictors import find_own_folder
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.process_identity import this_process
from orchestrator.plan import Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import EpisodeRow, Store, TraceFilter
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import PoolNotFound, StorageError
from pool_registry.pool import Pool
from pool_registry.storage.database import writing
from pool_registry.worker import WorkerSpec
from studio.housekeeping.retention import Retention, read_retention, tidy, write_retention
from studio.housekeeping.things import Things
from studio.improving.schedule import read_timers, set_timer
from studio.improving.start import find_log
from studio.model_server import server_record
from studio.prepare import prepare_store
from tests.studio.support.reports import make_report
from trainer.errors import JobNotFound
from trainer.improve.record import Improvement, ImprovementPlan, list_improvements, make_folder
from trainer.jobs.queue import JobStore
from trainer.recipe import list_presets, load_recipe
from trainer.results.improvement import write_report
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.making import record_making
from trainer.tasks.practice.progress import Watch
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.sources.jsonl import TaskLine

PRESET = next(iter(list_presets()))
CALC = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")


@pytest.fixture
def store(tmp_path: Path):
    opened = prepare_store(str(tmp_path))
    opened.pools.save(Pool(name="mine", workers=(CALC,)))
    yield opened
    opened.close()


def run(store: Store, query: str = "q", source: str = "mine", pool: str = "mine") -> str:
    async def once() -> str:
        async with live_pool(store.pools.latest(pool).pool) as live:
            spec = EpisodeSpec(query, source=source)
            return (await run_episode(spec, OraclePolicy(Turn(answer="42")), live, sink=store.traces)).id

    episode = asyncio.run(once())
    store.traces.flush()
    return episode


def list_ids(store: Store, **filters: object) -> list[str]:
    return [row.id for row in store.traces.search(TraceFilter(**filters))]


def test_traces_are_deleted_together_and_come_back_whole(store):
    first, second, third = run(store, "a"), run(store, "b"), run(store, "c")
    store.traces.star(first, True)
    before = store.traces.events_after(first)
    things = Things(store)
    assert "starred" in things.find_trace_dependents([first, second]).affected[0]
    entry = things.delete_traces([first, second])
    assert list_ids(store) == [third] and store.traces.events_after(first) == []
    assert things.trash.restore(entry.key).name == "2 traces"
    assert set(list_ids(store)) == {first, second, third} and store.traces.list_starred() == [first]
    assert store.traces.events_after(first) == before and things.trash.list() == []


def test_a_pool_that_is_gone_leaves_its_traces_readable(store):
    episode = run(store)
    things = Things(store)
    assert "1 trace of runs on it" in things.find_dependents("pool", "mine").affected[0]
    entry = things.delete("pool", "mine")
    with pytest.raises(PoolNotFound):
        store.pools.latest("mine")
    row = store.traces.row(episode)
    assert store.pools.by_hash(row.pool, row.pool_hash) is not None, "the trace still finds its version"
    things.trash.restore(entry.key)
    assert store.pools.latest("mine").version == 1


def test_a_pool_comes_back_only_where_nothing_has_its_name(store):
    things = Things(store)
    entry = things.delete("pool", "mine")
    store.pools.save(Pool(name="mine", workers=(CALC,)))
    with pytest.raises(StorageError, match="again"):
        things.trash.restore(entry.key)
    assert things.trash.list() == [entry], "what could not be put back stays in the trash"


def test_a_pool_that_is_gone_leaves_nothing_of_its_tasks(store):
    tasks = store.home.root / "tasks" / "mine.jsonl"
    book = TaskBook(tasks)
    book.add([TaskLine(query="How much is a kilo of plums?", answer=3)])
    book.strike("How much is a kilo of plums?")
    entry = Things(store).delete("pool", "mine")
    assert not list(tasks.parent.glob("mine.[!l]*")), "what was struck would be kept from another pool of this name"
    Things(store).trash.restore(entry.key)
    assert [row.line.query for row in book.list_struck()] == ["How much is a kilo of plums?"]


def test_a_pool_takes_its_tasks_along_to_another_name(store):
    tasks = store.home.root / "tasks" / "mine.jsonl"
    tasks.parent.mkdir(exist_ok=True)
    tasks.write_text("")
    Things(store).rename("pool", "mine", "ours")
    assert "ours" in store.pools.names() and "mine" not in store.pools.names()
    assert store.pools.latest("ours").pool.workers == (CALC,) and tasks.with_name("ours.jsonl").is_file()
    with pytest.raises(StorageError, match="ships"):
        Things(store).delete("pool", "starter")


def test_a_pool_takes_its_success_predictor_along_to_another_name_and_to_the_trash(store):
    figures = find_own_folder("mine", store.home.root) / "1" / "figures.json"
    figures.parent.mkdir(parents=True)
    figures.write_text("{}")
    things = Things(store)
    things.rename("pool", "mine", "ours")
    renamed = find_own_folder("ours", store.home.root)
    assert (renamed / "1" / "figures.json").is_file() and not figures.exists()
    assert "its own success predictor goes with it" in things.find_dependents("pool", "ours").affected
    entry = things.delete("pool", "ours")
    assert not renamed.exists()
    things.trash.restore(entry.key)
    assert (renamed / "1" / "figures.json").is_file()


def improve(store: Store, key: str, **changes: object) -> Improvement:
    plan = ImprovementPlan(
        id=f"mine-{key}", key=key, pool="mine", pool_version=1, serving="router", measured="router", stage="who",
        taken=(), own=(), learnt=20, replayed=0, held_out=10, started=0.0,
    )  # fmt: skip
    improvement = Improvement(make_folder(store.home, plan.id), plan)
    improvement.update(**changes)
    return improvement


def test_a_pool_takes_its_timer_and_what_it_learnt_along_to_another_name_and_to_the_trash(store):
    settled, interrupted = improve(store, "aaaaaa"), improve(store, "bbbbbb")
    write_report(settled.folder, make_report(pool="mine"))
    set_timer(store.home, "mine", "night")
    find_log(store.home, "mine").write_text("improved")
    things = Things(store)
    things.rename("pool", "mine", "ours")
    assert read_timers(store.home).keys() == {"ours"} and find_log(store.home, "ours").is_file()
    assert [one.folder for one in list_improvements(store.home, "ours")] == [settled.folder]
    assert not interrupted.folder.exists(), "it goes to the trash with what the old name stood for"
    affected = things.find_dependents("pool", "ours").affected
    assert "with it goes what 1 improvement settled" in affected and "its timer goes with it" in affected

    entry = things.delete("pool", "ours")
    assert not read_timers(store.home) and not settled.folder.exists() and not find_log(store.home, "ours").exists()
    things.trash.restore(entry.key)
    assert list_improvements(store.home, "ours") and read_timers(store.home).keys() == {"ours"}


def test_a_pool_that_is_being_improved_is_neither_renamed_nor_deleted(store):
    improve(store, "aaaaaa", process=this_process())
    for change in (lambda: Things(store).delete("pool", "mine"), lambda: Things(store).rename("pool", "mine", "ours")):
        with pytest.raises(StorageError, match="it is being improved"):
            change()


def test_what_is_served_or_runs_is_not_deleted(store):
    record = server_record.ServerRecord(
        host="127.0.0.1", port=1, pool="mine", version=1, orchestrator="direct", model="m",
        owner=this_process(),
        started_at="", state="ready",
    )  # fmt: skip
    server_record.write_record(store.home, record)
    with pytest.raises(StorageError, match="port 1 serves it"):
        Things(store).delete("pool", "mine")
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(load_recipe(PRESET)).id
    with pytest.raises(StorageError, match="queued"):
        Things(store).delete("job", job)


def test_a_job_goes_with_its_folder_and_comes_back(store):
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(load_recipe(PRESET)).id
    jobs.stop(job)
    things = Things(store)
    things.rename("job", job, "my first try")
    assert jobs.get(job).name == "my first try"
    entry = things.delete("job", job)
    assert not jobs.folder(job).path.exists()
    with pytest.raises(JobNotFound):
        jobs.get(job)
    things.trash.restore(entry.key)
    assert jobs.get(job).name == "my first try" and jobs.folder(job).recipe.is_file()


@pytest.mark.parametrize("kind", ["job", "evaluation", "checkpoint"])
def test_a_job_that_is_resumed_while_it_is_deleted_stays_whole(store, monkeypatch, kind):
    jobs, things = JobStore(store.engine, store.home), Things(store)
    job = jobs.submit(load_recipe(PRESET)).id
    jobs.stop(job)
    folder = jobs.folder(job)
    folder.results.write_text("{}\n")
    checkpoint = folder.checkpoints / "4"
    checkpoint.mkdir(parents=True)
    monkeypatch.setattr("studio.housekeeping.things.complete_steps", lambda _folder: [(4, checkpoint)])
    name = f"{job}@4" if kind == "checkpoint" else job
    put = things.trash.put

    def resume_first(*arguments, **more):  # between the look at what uses it and the deletion
        jobs.resume(job)
        return put(*arguments, **more)

    monkeypatch.setattr(things.trash, "put", resume_first)
    with pytest.raises(StorageError, match="queued"):
        things.delete(kind, name)
    assert jobs.get(job).state == "queued" and folder.results.is_file() and checkpoint.is_dir()
    assert things.trash.list() == []


@pytest.mark.parametrize(("ends_in", "at"), [("delete", "delete_rows"), ("restore", "shutil.move")])
def test_a_job_whose_deletion_or_return_was_killed_comes_back_whole(store, monkeypatch, ends_in, at):
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    jobs, things = JobStore(store.engine, store.home), Things(store)
    job = jobs.submit(load_recipe(PRESET)).id
    jobs.stop(job)
    if ends_in == "restore":
        things.delete("job", job)
    restore = lambda: things.trash.restore(things.trash.list()[0].key)  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(f"studio.housekeeping.trash.{at}", kill)
        with pytest.raises(KeyboardInterrupt):
            things.delete("job", job) if ends_in == "delete" else restore()
    assert not jobs.folder(job).recipe.is_file()
    if ends_in == "delete":
        assert jobs.get(job).id == job
    else:
        with pytest.raises(JobNotFound):
            jobs.get(job)
    restore()
    assert jobs.folder(job).recipe.is_file() and jobs.get(job).state == "stopped"
    assert things.trash.list() == []


def test_retention_goes_by_age_size_and_source(store):
    old, drawn, starred = run(store, "old"), run(store, "drawn", "evaluation"), run(store, "starred", "evaluation")
    store.traces.star(starred, True)
    assert tidy(store).traces == (), "without a setting everything stays"
    time.sleep(0.01)
    write_retention(store.home, Retention(drawn_days=1e-9))
    assert tidy(store, dry_run=True).traces == (drawn,) and len(list_ids(store)) == 3
    assert tidy(store).traces == (drawn,)
    assert set(list_ids(store)) == {old, starred}
    write_retention(store.home, Retention(traces_mb=1e-6, trash_days=0))
    done = tidy(store)
    assert done.traces == (old,) and len(done.trash) == 1 and list_ids(store) == [starred]
    (store.home.root / "retention.json").write_text("{")
    with pytest.raises(StorageError, match="retention"):
        read_retention(store.home)


def test_ended_jobs_go_by_age(store):
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(load_recipe(PRESET)).id
    jobs.stop(job)
    running = jobs.submit(load_recipe(PRESET)).id
    write_retention(store.home, Retention(jobs_days=1e-9))
    assert tidy(store).jobs == (job,) and [row.id for row in jobs.all()] == [running]


def test_traces_are_told_apart_by_source_and_sorted(store):
    mine, drawn = run(store, "b", "mine"), run(store, "a", "evaluation")
    assert list_ids(store, source="mine") == [mine] and list_ids(store, source="evaluation") == [drawn]
    assert list_ids(store) == [drawn, mine] and list_ids(store, ascending=True) == [mine, drawn]
    assert list_ids(store, sort="id; drop table") == [drawn, mine]


def test_pools_that_were_drawn_for_a_task_stand_in_no_list(store):
    drawn = Pool(name="drawn-7", workers=(CALC,))
    store.traces.keep_pool(drawn, drawn.hash)

    async def once() -> None:
        async with live_pool(drawn) as live:
            spec = EpisodeSpec("q", source="evaluation")
            await run_episode(spec, OraclePolicy(Turn(answer="42")), live, sink=store.traces)

    asyncio.run(once())
    run(store)
    assert store.traces.list_pools() == ["mine"] and "drawn-7" not in store.pools.names()


def test_a_pool_whose_tasks_are_being_made_stays_and_goes_with_the_record_of_it(store):
    things = Things(store)
    book = TaskBook(store.home.root / "tasks" / "mine.jsonl")
    with record_making(book.making_file, PracticeOptions(), Watch()), pytest.raises(StorageError, match="being made"):
        things.delete("pool", "mine")
    assert book.making_file.is_file()
    things.delete("pool", "mine")
    assert not book.making_file.is_file()


def test_served_requests_go_after_ninety_days_unless_they_are_to_stay(store):
    served, starred, mine = run(store, source="served"), run(store, source="served"), run(store)
    with writing(store.engine) as session:
        for episode in (served, starred, mine):
            session.get(EpisodeRow, episode).started_at = (datetime.now(UTC) - timedelta(days=91)).isoformat()
    store.traces.star(starred, True)
    write_retention(store.home, Retention(served_days=None))
    assert tidy(store, dry_run=True).traces == ()
    write_retention(store.home, Retention())
    assert tidy(store).traces == (served,)
    assert set(list_ids(store)) == {starred, mine}

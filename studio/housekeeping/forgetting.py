"""Deletes for good what a client or a person has sent, or what was sent in a time: runs, and what was made of them.

Not by way of the trash. What a checkpoint has learnt, and what was published, cannot be taken back: both are named.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import ColumnElement, Engine, create_engine, delete, event, or_
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Mapped
from sqlmodel import Session, SQLModel, col, select

from orchestrator.engine.events import SERVED
from orchestrator.failure_memory.lessons import LessonRow
from orchestrator.traces.store import EpisodeRow, EventRow, StarRow, Store
from pool_registry.calls.call_cache_table import RecordedRow
from pool_registry.errors import StorageError
from pool_registry.storage.backups import list_backups
from pool_registry.storage.data_folder import Home
from pool_registry.storage.database import writing
from studio.forks import sweep_forks
from studio.housekeeping.forget_improvements import drop_lines, forget_improvements, forget_promotions, list_queries_of
from studio.housekeeping.forget_skills import forget_skills
from studio.housekeeping.trash import Trash
from studio.model_server.kept_responses import KeptResponses
from trainer.jobs.queue import JobStore
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.practice.traffic_record import SUFFIX, digest_query, forget_questions
from trainer.tasks.sources.jsonl import SourceRun

MANY_JOBS = 100_000
BATCH = 500  # ids of one statement
LEAST_CHARS = 12  # of a query that is looked for inside longer texts; a shorter one has to stand alone
UNDER_WAY = ("running", "waiting")
CHECKPOINTS, PAUSE_S = 20, 0.25  # tries to empty the log while others read, and seconds between them


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose runs, and of when. `user` is a person or a client's token; times are UTC; `source` is mine, served,
    evaluation or training. Empty: any."""

    user: str = ""
    source: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions on the rows of episodes. Raises StorageError where nothing is chosen."""
        chosen: list[ColumnElement[bool]] = []
        if self.user:
            chosen.append(col(EpisodeRow.user_name) == self.user)
        if self.source:
            chosen.append(col(EpisodeRow.source) == self.source)
        if self.since:
            chosen.append(col(EpisodeRow.started_at) >= self.since.isoformat(timespec="milliseconds"))
        if self.until:
            chosen.append(col(EpisodeRow.started_at) < self.until.isoformat(timespec="milliseconds"))
        if not chosen:
            raise StorageError("say whose runs, or of when: --user NAME, --source served, --since DATE, --until DATE")
        return chosen

    def sent_run(self, row: Mapping[str, object]) -> bool:
        """What `conditions` say, of a row that is no longer in a database."""
        started = str(row["started_at"])
        begins = self.since is None or started >= self.since.isoformat(timespec="milliseconds")
        ends = self.until is None or started < self.until.isoformat(timespec="milliseconds")
        return self.user in ("", row["user_name"]) and self.source in ("", row["source"]) and begins and ends

    def sent_source(self, run: SourceRun) -> bool:
        """What `conditions` say, of the run that a task was made of: its row may have gone long before the task."""
        return self.sent_run({"user_name": run.user, "source": run.source, "started_at": run.started_at})

    def sent(self, user: str, at: float) -> bool:
        """Whether a served response of this user and time (seconds since 1970) is meant."""
        begins = self.since is None or at >= self.since.timestamp()
        ends = self.until is None or at < self.until.timestamp()
        return self.user in ("", user) and self.source in ("", SERVED) and begins and ends


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many of each kind are gone, and sentences about what stays."""

    counts: Counter[str] = field(default_factory=Counter)
    stays: list[str] = field(default_factory=list)


class Marks:
    """What tells a text that comes from these episodes: their ids, and their queries as JSON writes them."""

    def __init__(self, episodes: Iterable[str], queries: Iterable[str]) -> None:
        written = {json.dumps(query, ensure_ascii=ascii) for query in queries for ascii in (True, False)}
        inside = {text[1:-1] for text in written if len(text) >= LEAST_CHARS + 2}
        alone = {text for text in written if len(text) < LEAST_CHARS + 2}
        self._marks = tuple(mark.encode() for mark in {*episodes, *inside, *alone})

    def stand_in(self, text: bytes) -> bool:
        return any(mark in text for mark in self._marks)


def forget(store: Store, sender: Sender, dry_run: bool = False) -> Forgotten:
    """Delete the runs of a sender for good, everywhere in the data folder; with `dry_run` only count the runs.

    Raises StorageError where a job that holds some of it still runs.
    """
    store.traces.flush()
    conditions = sender.conditions()
    forgotten = Forgotten()
    chosen, under_way = _find_runs(store.engine, conditions)
    if under_way:
        forgotten.stays.append(
            f"{len(under_way)} runs have not ended, such as {under_way[0]}: stop them, and ask again"
        )
    forgotten.counts["runs"] = len(chosen)
    if dry_run:
        return forgotten
    everything = chosen | _find_in_trash(store, sender) | _find_in_copies(store.home, conditions)

    def is_sent(run: SourceRun) -> bool:
        return run.id in everything or sender.sent_source(run)

    queries = {*everything.values(), *list_queries_of(store.home, is_sent)}
    marks = Marks(everything, queries)
    _refuse_running_jobs(store, marks)
    # The rows go last: where this is cut short, the same command finds by them what is still to be deleted.
    forgotten.counts["kept responses"] = KeptResponses(store.home).forget(sender.sent)
    for file in sorted((store.home.root / "tasks").glob(f"*{SUFFIX}")):
        forget_questions(file, queries)
    digests = {digest_query(query) for query in queries}
    forgotten.counts["skills"] = forget_skills(store.engine, everything.keys(), digests)
    _forget_in_files(store, marks, forgotten)
    _forget_in_trash(store, marks, forgotten)
    _forget_in_copies(store.home, conditions, everything, marks, forgotten)
    forgotten.counts["lines of improvements"] = forget_improvements(store.home, marks.stand_in, forgotten.stays)
    sweep_forks(store.home)
    for file in sorted((store.home.root / "tasks").glob("*.jsonl")):
        forgotten.counts["tasks"] += TaskBook(file).forget(queries, is_sent)
    _delete_rows(store.engine, chosen, marks, forgotten)
    _empty_log(store.engine, forgotten)
    return Forgotten(+forgotten.counts, forgotten.stays)


def _find_runs(engine: Engine, conditions: Sequence[ColumnElement[bool]]) -> tuple[dict[str, str], list[str]]:
    """The queries of the runs by id, with the episodes inside them, the what-ifs made of them and the runs that go on
    with them, and the ids of those that have not ended."""
    with Session(engine) as session:
        rows = session.exec(select(EpisodeRow.id, EpisodeRow.query, EpisodeRow.state).where(*conditions)).all()
        under_way = [key for key, _, state in rows if state in UNDER_WAY]
        chosen = {key: query for key, query, state in rows if state not in UNDER_WAY}
        sources = list(chosen)
        while sources:
            made = dict[str, str]()
            for ids in _split(sources):
                columns = (EpisodeRow.parent, EpisodeRow.what_if_of, EpisodeRow.shadow_of, EpisodeRow.continues)
                descends = or_(*(col(column).in_(ids) for column in columns))
                made |= dict(session.exec(select(EpisodeRow.id, EpisodeRow.query).where(descends)).all())
            sources = [key for key in made if key not in chosen]
            chosen |= made
    return chosen, under_way


def _delete_rows(engine: Engine, chosen: dict[str, str], marks: Marks, forgotten: Forgotten) -> None:
    """Delete the rows of these runs, what was learnt from their failures, their queries in reports, and all outputs
    that calls are answered with: those do not say whose they were."""
    tables: tuple[tuple[type[SQLModel], Mapped[str]], ...] = (
        (StarRow, col(StarRow.episode)),
        (LessonRow, col(LessonRow.episode)),
        (EventRow, col(EventRow.episode)),
        (EpisodeRow, col(EpisodeRow.id)),
    )
    with writing(engine) as session:
        connection = session.connection()
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete=ON")
        for ids in _split(list(chosen)):
            for table, column in tables:
                done = connection.execute(delete(table).where(column.in_(ids)))
                if table is LessonRow:
                    forgotten.counts["lessons"] += done.rowcount
        if chosen:
            connection.execute(delete(RecordedRow))
        forget_promotions(connection, marks.stand_in)


def _empty_log(engine: Engine, forgotten: Forgotten) -> None:
    """Write SQLite's log into the database and cut it, so that no earlier page stays in it."""
    if engine.dialect.name != "sqlite":
        return
    for _ in range(CHECKPOINTS):
        with engine.connect() as connection:
            is_busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        if not is_busy:
            return
        time.sleep(PAUSE_S)
    forgotten.stays.append("the database's log is in use and may hold some of it until the studio is closed")


def _find_in_trash(store: Store, sender: Sender) -> dict[str, str]:
    trash = Trash(store.engine, store.home)
    rows = [row for entry in trash.list() for row in trash.read_rows(entry.key).get("episode", ())]
    return {str(row["id"]): str(row["query"]) for row in rows if sender.sent_run(row)}


def _find_in_copies(home: Home, conditions: Sequence[ColumnElement[bool]]) -> dict[str, str]:
    """The runs in copies of the database, those too that the database no longer has. What cannot be searched holds
    none here, and is named when it is its turn."""
    chosen: dict[str, str] = {}
    for backup in list_backups(home):
        engine = create_engine(f"sqlite:///{backup.path}")
        with suppress(DBAPIError):
            chosen |= _find_runs(engine, conditions)[0]
        engine.dispose()
    return chosen


def _forget_in_copies(
    home: Home, conditions: Sequence[ColumnElement[bool]], gone: Mapping[str, str], marks: Marks, forgotten: Forgotten
) -> None:
    """Delete the same runs from each copy of the database, which may hold some that the database no longer has, and the
    skills that were made of those `gone`."""
    for backup in list_backups(home):
        engine = create_engine(f"sqlite:///{backup.path}")
        event.listen(engine, "connect", lambda opened, _: opened.execute("PRAGMA foreign_keys=ON"))
        try:
            chosen, under_way = _find_runs(engine, conditions)
            everything = chosen | dict.fromkeys(under_way, "")  # in a copy nothing runs
            skills = forget_skills(
                engine, {**everything, **gone}.keys(), {digest_query(query) for query in gone.values()}
            )
            if everything or skills:
                _delete_rows(engine, everything, marks, Forgotten())
                _empty_log(engine, forgotten)
                forgotten.counts["copies of the database"] += 1
        except DBAPIError:
            forgotten.stays.append(f"{backup.path} cannot be searched, being damaged or of an older version: delete it")
        finally:
            engine.dispose()


def _forget_in_trash(store: Store, marks: Marks, forgotten: Forgotten) -> None:
    trash = Trash(store.engine, store.home)
    for entry in trash.list():
        if any(marks.stand_in(text) for text in trash.read_texts(entry.key)):
            trash.remove(entry.key)
            forgotten.counts["things in the trash"] += 1


def _refuse_running_jobs(store: Store, marks: Marks) -> None:
    jobs = JobStore(store.engine, store.home)
    for row in jobs.all(limit=MANY_JOBS):
        texts = _list_texts(jobs.folder(row.id).path) if row.active else []
        if any(marks.stand_in(path.read_bytes()) for path in texts):
            raise StorageError(f"job {row.id} runs on some of it; stop it first (`trainer jobs stop {row.id}`)")


def _forget_in_files(store: Store, marks: Marks, forgotten: Forgotten) -> None:
    """Drop lines from the files of jobs, and from what the database refused; name what has learnt or was published."""
    jobs = JobStore(store.engine, store.home)
    for row in jobs.all(limit=MANY_JOBS):
        folder = jobs.folder(row.id)
        lines = sum(drop_lines(path, marks.stand_in) for path in _list_texts(folder.path))
        if folder.frozen_past.is_file() and marks.stand_in(folder.frozen_past.read_bytes()):
            folder.frozen_past.unlink()  # it is read anew where the job goes on
        forgotten.counts["lines of jobs"] += lines
        if lines and folder.checkpoints.is_dir():
            forgotten.stays.append(f"the checkpoints of {row.id} may have learnt from it: `podium delete job {row.id}`")
    if store.home.set_aside.is_file():
        forgotten.counts["events set aside"] += drop_lines(store.home.set_aside, marks.stand_in)
    for record in sorted((store.home.root / "publications").glob("[!.]*")):
        if any(marks.stand_in(path.read_bytes()) for path in record.rglob("*") if path.is_file()):
            forgotten.stays.append(f"{record.name} holds some of it and may be on the Hub: delete it there and here")


def _list_texts(folder: Path) -> list[Path]:
    """The files of a job that hold texts, a line each."""
    return [path for pattern in ("*.jsonl", "*.txt") for path in sorted(folder.glob(pattern))]


def _split(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]

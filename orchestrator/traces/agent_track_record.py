"""The track record of each agent by the traces of a data folder: on which queries it was right, how long it took and
what it cost. The router decides by it.

Graded episodes count in which no other worker was called: of an answer that several workers made, a trace does not say
which of them was right. Where agents answered side by side (policies/baselines/scored_cascade.py), it does: each said
what the answer is, or something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from sqlalchemy import JSON, Engine, Select, cast, func, select, type_coerce
from sqlmodel import col

from orchestrator.answers import write_answer_key
from orchestrator.choice.outcomes import Outcome
from orchestrator.reader.needs import Need
from orchestrator.traces.store import EpisodeRow, EventRow
from pool_registry.actions import Status
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.upgrade import open_engine

NEWEST = 5000  # graded episodes that are read
SHOWN_EPISODES = 500  # those that figures on a page rest on: all of them would take a second to read
NEIGHBOURS = 20
SHRINKAGE = 2.0  # how many neighbours the success on all tasks counts for

_TOPIC_AND_START: tuple[Any, Any] = (func.coalesce(col(EpisodeRow.family), ""), col(EpisodeRow.started_at))

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class SoloEpisode:
    """A graded episode in which one worker was called. Time in seconds from query to answer, cost in US dollars."""

    worker: str
    query: str
    correct: bool
    wall_s: float
    cost: float
    need: str = ""  # what the plan's only step was for, in a reader's words; "" elsewhere
    topic: str = ""  # the family of the episode's task; "" where it had none
    started_at: str = ""  # ISO 8601


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """How many graded episodes a worker has and how many were right; the median seconds and mean US dollars of one;
    when the newest began (ISO 8601); and which were right by topic."""

    graded: int
    right: int
    median_s: float
    cost: float
    newest: str
    topics: Mapping[str, Sequence[bool]]


class TrackRecord:
    """Graded episodes with a single worker, and the estimates for a new query that follow from them."""

    def __init__(self, episodes: Iterable[SoloEpisode]) -> None:
        self._of: dict[str, list[tuple[Words, SoloEpisode]]] = {}
        for alone in episodes:
            self._of.setdefault(alone.worker, []).append((split_words(alone.query), alone))

    def tasks(self, workers: Sequence[str]) -> int:
        """The number of different queries on record for these workers."""
        return len({alone.query for worker in workers for _, alone in self._of.get(worker, ())})

    def leave_out(self, query: str) -> TrackRecord:
        """The record as it would be without this query."""
        rest = TrackRecord(())
        rest._of = {worker: [row for row in rows if row[1].query != query] for worker, rows in self._of.items()}
        return rest

    def outcomes(self, worker: str) -> list[Outcome]:
        """What a worker alone was needed for, oldest first, and whether that was right."""
        return [Outcome(Need(alone.need).words or alone.query, alone.correct) for _, alone in self._of.get(worker, ())]

    def facts(self, worker: str) -> RecordFacts | None:
        """What the record of a worker comes to; None without records."""
        done = [alone for _, alone in self._of.get(worker, ())]
        if not done:
            return None
        topics = sorted({alone.topic for alone in done if alone.topic})
        return RecordFacts(
            graded=len(done),
            right=sum(alone.correct for alone in done),
            median_s=median(alone.wall_s for alone in done),
            cost=fmean(alone.cost for alone in done),
            newest=max(alone.started_at for alone in done),
            topics={topic: [alone.correct for alone in done if alone.topic == topic] for topic in topics},
        )

    def success(self, worker: str, query: str) -> float:
        """The estimated probability that a worker is right: its share on the NEIGHBOURS recorded queries most like
        this one, shrunk towards its share on all; 0.5 without records (Laplace's rule of succession)."""
        words, done = split_words(query), self._of.get(worker, [])
        overall = (sum(alone.correct for _, alone in done) + 1) / (len(done) + 2)
        nearest = sorted(done, key=lambda row: -jaccard(words, row[0]))[:NEIGHBOURS]
        right = sum(alone.correct for _, alone in nearest)
        return (right + SHRINKAGE * overall) / (len(nearest) + SHRINKAGE)

    def wall_s(self, worker: str) -> float:
        """Mean seconds of a task; 0 without records."""
        return fmean([alone.wall_s for _, alone in self._of.get(worker, ())] or [0.0])

    def cost(self, worker: str) -> float:
        """Mean US dollars of a task; 0 without records."""
        return fmean([alone.cost for _, alone in self._of.get(worker, ())] or [0.0])


def read_track_record(pool: str) -> TrackRecord:
    """The track record of a pool in this process's data folder. Raises StorageError."""
    engine = open_engine(find_home())
    try:
        return build_track_record(engine, pool)
    finally:
        engine.dispose()


def build_track_record(engine: Engine, pool: str, newest: int | None = NEWEST) -> TrackRecord:
    """The track record of a pool in an open database, by so many graded episodes, the newest; None for all."""
    return TrackRecord([*read_solo_episodes(engine, pool, newest), *read_side_by_side(engine, pool, newest)])


def read_task_queries(engine: Engine, pool: str, splits: Sequence[str]) -> set[str]:
    """The queries of recorded episodes on a pool that are tasks of these splits."""
    split = _read_body(engine, "task", "split").as_string()
    query = (
        select(col(EpisodeRow.query))
        .join(EventRow, col(EventRow.episode) == col(EpisodeRow.id))
        .where(col(EpisodeRow.pool) == pool, col(EventRow.type) == "episode_started", split.in_(splits))
        .distinct()
    )
    with engine.connect() as connection:
        return set(connection.execute(query).scalars())


def read_solo_episodes(
    engine: Engine, pool: str, newest: int | None = NEWEST, without: Sequence[str] = ()
) -> list[SoloEpisode]:
    """The newest graded episodes on a pool that called one worker only, oldest first, without recursive ones and those
    of the sources `without`."""
    graded = _select_graded(pool, newest, without)
    callers = (
        select(col(EventRow.episode), func.min(col(EventRow.worker)).label("worker"))
        .where(col(EventRow.worker).is_not(None), col(EventRow.episode).in_(graded))
        .group_by(col(EventRow.episode))
        .having(func.count(func.distinct(col(EventRow.worker))) == 1)
        .subquery()
    )
    need = _read_body(engine, "turn", "steps", 0, "need")
    needs = (
        select(col(EventRow.episode), func.max(need.as_string()).label("need"))
        .where(col(EventRow.type) == "turn_taken", col(EventRow.episode).in_(graded))
        .group_by(col(EventRow.episode))
        .subquery()
    )
    columns = (EpisodeRow.query, EpisodeRow.correct, EpisodeRow.wall_s, EpisodeRow.cost)
    query = (
        select(callers.c.worker, *map(col, columns), func.coalesce(needs.c.need, ""), *_TOPIC_AND_START)
        .join(callers, callers.c.episode == col(EpisodeRow.id))
        .outerjoin(needs, needs.c.episode == col(EpisodeRow.id))
    )
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(col(EpisodeRow.started_at), col(EpisodeRow.id)))
        return [SoloEpisode(*row) for row in rows]


def read_side_by_side(
    engine: Engine, pool: str, newest: int | None = NEWEST, without: Sequence[str] = ()
) -> list[SoloEpisode]:
    """What the agents of a cascade by a score said to the same question, a row each: right where it is an answer that
    was graded as right, wrong where it is another one, or one that was graded as wrong. What differs from a wrong
    answer may be either, and is left out."""
    agents = _read_body(engine, "turn", "confidence", "agents").as_integer()
    graded = _select_graded(pool, newest, without)
    several = (
        select(col(EventRow.episode))
        .where(col(EventRow.type) == "turn_taken", col(EventRow.episode).in_(graded), agents > 1)
        .distinct()
    )
    replied = (col(EventRow.type) == "step_ended", col(EventRow.status) == Status.OK)
    reply = (EventRow.worker, EventRow.body, EventRow.latency_s)
    columns: list[Any] = [*reply, EpisodeRow.query, EpisodeRow.answer, EpisodeRow.correct, *_TOPIC_AND_START]
    query = (
        select(*columns)
        .join(EpisodeRow, col(EpisodeRow.id) == col(EventRow.episode))
        .where(*replied, col(EventRow.episode).in_(several))
        .order_by(col(EpisodeRow.started_at), col(EventRow.id))
    )
    with engine.connect() as connection:
        judged = [_judge_reply(*row) for row in connection.execute(query)]
    return [episode for episode in judged if episode is not None]


def _judge_reply(
    worker: str,
    body: str,
    latency_s: float | None,
    query: str,
    answer: str | None,
    correct: bool,
    topic: str,
    started_at: str,
) -> SoloEpisode | None:
    observation = json.loads(body)["observation"]
    same = write_answer_key(observation.get("value")) == write_answer_key(answer or "")
    if not (same or correct):
        return None
    cost = observation.get("usage", {}).get("cost", 0.0)
    name = observation.get("answered_by") or worker
    return SoloEpisode(name, query, same and correct, latency_s or 0.0, cost, topic=topic, started_at=started_at)


def _select_graded(pool: str, newest: int | None, without: Sequence[str]) -> Select[str]:
    """So many graded episodes on a pool, the newest, or all for None, without recursive ones and those of sources."""
    graded = select(col(EpisodeRow.id)).where(
        col(EpisodeRow.pool) == pool, col(EpisodeRow.depth) == 0, col(EpisodeRow.correct).is_not(None)
    )
    graded = graded.where(col(EpisodeRow.source).not_in(without))
    return graded.order_by(col(EpisodeRow.started_at).desc(), col(EpisodeRow.id)).limit(newest)


def _read_body(engine: Engine, *path: str | int) -> Any:
    """A place in an event's JSON, which is stored as text."""
    body = col(EventRow.body)
    is_postgres = engine.dialect.name == "postgresql"  # SQLite reads JSON from text, and would cast it to a number
    return (cast(body, JSON) if is_postgres else type_coerce(body, JSON))[path]


def split_words(text: str) -> Words:
    """The words of a query, for comparing it with others."""
    return frozenset(re.findall(r"\w+", text.lower()))


def jaccard(some: Words, others: Words) -> float:
    """The share of words that two queries have in common (Jaccard's index)."""
    return len(some & others) / max(1, len(some | others))

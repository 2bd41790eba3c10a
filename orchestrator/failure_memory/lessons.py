"""The lessons of a pool's failed episodes, and which of them fit a query.

A lesson belongs to the pool, by name, on which its episode ran, and is never used on another. Only an orchestrating
model whose pool has `limits.memory` on is shown lessons; write_lesson.py says how they are written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from sqlalchemy import Engine, delete, func, update
from sqlmodel import Field, Session, SQLModel, col, select

from orchestrator.plan import Lesson, RecalledLessons
from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.choose_workers import MAX_QUERY_CHARS, content_words
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.database import writing
from pool_registry.storage.upgrade import open_engine

OFF = "off"  # of Limits.memory
MAX_SHOWN = 3  # lessons in a prompt
MAX_READ = 2000  # the newest of a pool; older ones are kept and not looked at
LIKE_BY_MEANING = 0.6  # cosine of sentence vectors
LIKE_BY_WORDS = 0.5  # share of common words, where the sentence model is not installed
BY_MEANING, BY_WORDS = "meaning", "words"


class LessonRow(SQLModel, table=True):
    """One lesson. `written_by` is "rule" or an agent's name, `instead_of` why the chosen agent did not write it,
    `tokens` and `cost` (US dollars) what writing it took. `retry` is the episode that was right with it, "" before one
    was; `shown` counts the graded runs that were shown it, `helped` those of them that were right. `awaits` is the
    second try that has yet to show whether the lesson is good: until then it is shown to no other run. `owner` is the
    process that makes that try, "" once it has ended and waits for a person's verdict."""

    __tablename__ = "reflection"

    id: int | None = Field(default=None, primary_key=True)
    pool: str = Field(index=True)
    episode: str = Field(unique=True)
    query: str
    sentence: str
    written_by: str
    instead_of: str = ""
    tokens: int = 0
    cost: float = 0.0
    created_at: datetime
    retry: str = ""
    shown: int = 0
    helped: int = 0
    used_at: datetime | None = None
    awaits: str = ""
    owner: str = ""


class FailureMemory(Protocol):
    """The source of an orchestrating model's lessons."""

    async def recall(self, query: str) -> RecalledLessons: ...


class LessonStore:
    """The lessons of all pools."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, row: LessonRow) -> None:
        """Store a lesson; it replaces the one of the same episode."""
        with writing(self._engine, "reflection") as session:
            session.connection().execute(delete(LessonRow).where(col(LessonRow.episode) == row.episode))
            session.add(row)

    def claim(self, row: LessonRow) -> bool:
        """Store a lesson that awaits its second try, in place of one of the same episode that awaits none; False where
        that one does: somebody was faster."""
        with writing(self._engine, "reflection") as session:
            chosen = delete(LessonRow).where(col(LessonRow.episode) == row.episode, col(LessonRow.awaits) == "")
            session.connection().execute(chosen)
            if session.exec(select(LessonRow).where(LessonRow.episode == row.episode)).first() is not None:
                return False
            session.add(row)
        return True

    def of_episode(self, episode: str) -> LessonRow | None:
        """The lesson that was learnt from an episode."""
        with Session(self._engine) as session:
            return session.exec(select(LessonRow).where(LessonRow.episode == episode)).first()

    def change(self, episode: str, **values: object) -> None:
        """Change columns of the lesson that was learnt from an episode, where it is still there."""
        with writing(self._engine, "reflection") as session:
            session.connection().execute(update(LessonRow).where(col(LessonRow.episode) == episode).values(values))

    def drop(self, episode: str) -> None:
        """Delete the lesson that was learnt from an episode."""
        with writing(self._engine, "reflection") as session:
            session.connection().execute(delete(LessonRow).where(col(LessonRow.episode) == episode))

    def list_awaiting(self, pool: str = "") -> list[LessonRow]:
        """The lessons whose second try has not shown yet whether they are good, of one pool or of all."""
        query = select(LessonRow).where(LessonRow.awaits != "")
        if pool:
            query = query.where(LessonRow.pool == pool)
        with Session(self._engine) as session:
            return list(session.exec(query))

    def of_pool(self, pool: str, limit: int = MAX_READ) -> list[LessonRow]:
        """A pool's lessons, newest first."""
        query = select(LessonRow).where(LessonRow.pool == pool)
        with Session(self._engine) as session:
            return list(session.exec(query.order_by(col(LessonRow.id).desc()).limit(limit)))

    def count(self, pool: str) -> int:
        """How many lessons a pool has."""
        query = select(func.count(col(LessonRow.id))).where(LessonRow.pool == pool)
        with Session(self._engine) as session:
            return session.exec(query).one()

    def forget(self, pool: str, lesson: int | None = None) -> int:
        """Delete one lesson of a pool, or all of them; returns how many there were."""
        chosen = delete(LessonRow).where(col(LessonRow.pool) == pool)
        if lesson is not None:
            chosen = chosen.where(col(LessonRow.id) == lesson)
        with writing(self._engine) as session:
            return session.connection().execute(chosen).rowcount


def build_row(pool: str, lesson: Lesson, instead_of: str = "", tokens: int = 0, cost: float = 0.0) -> LessonRow:
    """The row of a lesson."""
    return LessonRow(
        pool=pool,
        episode=lesson.episode,
        query=lesson.query,
        sentence=lesson.sentence,
        written_by=lesson.written_by,
        instead_of=instead_of,
        tokens=tokens,
        cost=cost,
        created_at=datetime.now(UTC),
    )


@dataclass(frozen=True, slots=True)
class PoolMemory:
    """A pool's memory, read again at each query."""

    store: LessonStore
    pool: str

    async def recall(self, query: str) -> RecalledLessons:
        return await asyncio.to_thread(lambda: recall_similar(query, self.lessons()))

    def lessons(self) -> list[Lesson]:
        """Every lesson of the pool that awaits no second try, newest first."""
        return [
            Lesson(row.query, row.sentence, row.written_by, row.episode, 0.0)
            for row in self.store.of_pool(self.pool)
            if not row.awaits
        ]


def find_memory(pool: Pool, store: LessonStore) -> PoolMemory | None:
    """The failure memory of a pool; None when its limits say that it has none."""
    return None if pool.limits.memory == OFF else PoolMemory(store, pool.name)


def freeze_memory(pool: str) -> FrozenMemory:
    """A snapshot of a pool's lessons in this process's data folder. Raises StorageError."""
    engine = open_engine(find_home())
    try:
        return FrozenMemory(tuple(PoolMemory(LessonStore(engine), pool).lessons()))
    finally:
        engine.dispose()


@dataclass(frozen=True, slots=True)
class FrozenMemory:
    """A snapshot of a memory: the same query gets the same lessons, whatever is learnt later."""

    lessons: tuple[Lesson, ...]

    async def recall(self, query: str) -> RecalledLessons:
        return await asyncio.to_thread(recall_similar, query, self.lessons)


@dataclass(frozen=True, slots=True)
class LessonAlone:
    """A memory of one lesson for the question that it was learnt from, which needs no comparison."""

    lesson: Lesson

    async def recall(self, query: str) -> RecalledLessons:
        fitting = (replace(self.lesson, similarity=1.0),) if query == self.lesson.query else ()
        return RecalledLessons(fitting, 1, BY_WORDS)


def recall_similar(query: str, lessons: Sequence[Lesson]) -> RecalledLessons:
    """The lessons whose queries are like this one, at most MAX_SHOWN, each sentence once. Blocks: use a thread."""
    if sentence_vectors.find_weights() is None:
        likeness, least, by = compare_words(query, lessons), LIKE_BY_WORDS, BY_WORDS
    else:
        likeness, least, by = compare_meanings(query, lessons), LIKE_BY_MEANING, BY_MEANING
    matches: dict[str, Lesson] = {}
    for score, place in sorted((-score, place) for place, score in enumerate(likeness) if score >= least):
        lesson = replace(lessons[place], similarity=round(-score, 4))
        if len(matches) < MAX_SHOWN:
            matches.setdefault(lesson.sentence, lesson)
    return RecalledLessons(tuple(matches.values()), len(lessons), by)


def compare_meanings(query: str, lessons: Sequence[Lesson]) -> list[float]:
    """Compute the cosine of the sentence vectors of the query and each lesson's query."""
    if not lessons:
        return []
    vectors = sentence_vectors.embed([query[:MAX_QUERY_CHARS], *(lesson.query[:MAX_QUERY_CHARS] for lesson in lessons)])
    return [min(1.0, float(score)) for score in vectors[1:] @ vectors[0]]


def compare_words(query: str, lessons: Sequence[Lesson]) -> list[float]:
    """Dice's coefficient (1945) of the content words: twice those in common over the words of both."""
    mine = Counter(content_words(query[:MAX_QUERY_CHARS]))
    return [_dice(mine, Counter(content_words(lesson.query[:MAX_QUERY_CHARS]))) for lesson in lessons]


def _dice(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0

"""What becomes of lessons: how often each was shown and the answer was right, and which ones go.

A lesson goes when it fails (shown FADE_USES times or more, and right in less than half of them) or when nobody
needs it (not shown for FADE_DAYS days). Answers that nothing graded count neither way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, and_, delete, func, or_, update
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col

from orchestrator.engine.episode import Episode
from orchestrator.failure_memory.lessons import LessonRow
from pool_registry.storage.database import writing

log = logging.getLogger(__name__)
FADE_USES = 3
FADE_DAYS = 60


async def note_use(episode: Episode, pool: str, engine: Engine) -> None:
    """Count a graded run for the lessons that it was shown, and drop those that have faded. A database error is logged
    and costs the count, never the run."""
    recalled = episode.recalled
    if episode.graded is None or recalled is None or not recalled.lessons:
        return
    origins = [lesson.episode for lesson in recalled.lessons]
    try:
        await asyncio.to_thread(count_use, engine, origins, episode.graded.correct)
        await asyncio.to_thread(drop_faded, engine, pool)
    except SQLAlchemyError as error:
        log.warning("the use of lessons in episode %s cannot be counted: %s", episode.id, type(error).__name__)


def count_use(engine: Engine, origins: Collection[str], correct: bool) -> None:
    """Count for lessons, by the episodes that they were made of, one answer that was right or not."""
    counts = {
        "shown": col(LessonRow.shown) + 1,
        "helped": col(LessonRow.helped) + int(correct),
        "used_at": datetime.now(UTC),
    }
    with writing(engine, "reflection") as session:
        session.connection().execute(update(LessonRow).where(col(LessonRow.episode).in_(origins)).values(counts))


def note_retry(engine: Engine, origin: str, retry: str) -> None:
    """Note the episode that was right with a lesson."""
    with writing(engine, "reflection") as session:
        chosen = update(LessonRow).where(col(LessonRow.episode) == origin)
        session.connection().execute(chosen.values(retry=retry, used_at=datetime.now(UTC)))


def drop_faded(engine: Engine, pool: str) -> int:
    """Delete the lessons of a pool that fail or that nobody needs; returns how many there were."""
    last_use = func.coalesce(col(LessonRow.used_at), col(LessonRow.created_at))
    fails = and_(col(LessonRow.shown) >= FADE_USES, col(LessonRow.helped) * 2 < col(LessonRow.shown))
    faded = or_(fails, last_use < datetime.now(UTC) - timedelta(days=FADE_DAYS))
    with writing(engine, "reflection") as session:
        return session.connection().execute(delete(LessonRow).where(col(LessonRow.pool) == pool, faded)).rowcount

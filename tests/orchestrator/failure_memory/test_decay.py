"""Lessons that fail or that nobody needs go; those that help stay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeStarted, Graded, TurnStarted, TurnTaken
from orchestrator.failure_memory.decay import FADE_DAYS, FADE_USES, count_use, drop_faded, note_retry, note_use
from orchestrator.failure_memory.lessons import LessonRow, LessonStore
from orchestrator.plan import Lesson, RecalledLessons, Turn
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.upgrade import open_engine


@pytest.fixture
def engine(tmp_path):
    opened = open_engine(find_home(str(tmp_path)))
    yield opened
    opened.dispose()


def add(engine, episode: str, days_ago: float = 0.0, pool: str = "p") -> None:
    made = datetime.now(UTC) - timedelta(days=days_ago)
    LessonStore(engine).add(
        LessonRow(pool=pool, episode=episode, query="q", sentence="s", written_by="rule", created_at=made)
    )


def kept(engine, pool: str = "p") -> list[str]:
    return sorted(row.episode for row in LessonStore(engine).of_pool(pool))


def test_a_lesson_that_is_mostly_shown_before_wrong_answers_goes(engine):
    for name in ("bad", "good", "young"):
        add(engine, name)
    for use in range(FADE_USES):
        count_use(engine, ["bad"], use == 0)
        count_use(engine, ["good"], use != 0)
    count_use(engine, ["young"], False)
    assert drop_faded(engine, "p") == 1 and kept(engine) == ["good", "young"]
    row = next(row for row in LessonStore(engine).of_pool("p") if row.episode == "good")
    assert (row.shown, row.helped) == (FADE_USES, FADE_USES - 1)


def test_a_lesson_that_nobody_needs_goes_and_one_of_another_pool_stays(engine):
    add(engine, "old", FADE_DAYS + 1)
    add(engine, "tried", FADE_DAYS + 1)
    add(engine, "new", FADE_DAYS - 1)
    add(engine, "elsewhere", FADE_DAYS + 1, pool="other")
    note_retry(engine, "tried", "again")
    assert drop_faded(engine, "p") == 1
    assert kept(engine) == ["new", "tried"] and kept(engine, "other") == ["elsewhere"]


def test_only_graded_runs_that_were_shown_a_lesson_count(engine):
    add(engine, "origin")
    episode = Episode("later")
    recalled = RecalledLessons((Lesson("q", "s", "rule", "origin", 1.0),), 1, "words")
    for event in (
        EpisodeStarted("q", "p", "0" * 64, "oracle", {}, "2026-01-01T00:00:00Z"),
        TurnStarted(1, 0.0),
        TurnTaken(1, Turn(answer="1", recalled=recalled), 0.0),
    ):
        episode.apply(event)
    asyncio.run(note_use(episode, "p", engine))
    assert LessonStore(engine).of_pool("p")[0].shown == 0
    episode.apply(Graded(True, "1", 1.0))
    asyncio.run(note_use(episode, "p", engine))
    row = LessonStore(engine).of_pool("p")[0]
    assert (row.shown, row.helped) == (1, 1) and row.used_at is not None

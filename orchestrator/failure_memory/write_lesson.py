"""Writes the lesson of an episode that failed, in one sentence (after Reflexion, arXiv 2303.11366).

An episode failed when its answer was graded wrong, or when it ended without one. The sentence is written by rule
from the states of turns and steps, or by an agent of the pool that reads the attempt; the lesson says which. The
expected answer is never read: a lesson says what went wrong, not what would have been right. lessons.py stores lessons
and finds those that fit a query.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from orchestrator.engine.episode import Episode
from orchestrator.failure_memory.lessons import OFF, LessonRow, LessonStore, build_row
from orchestrator.plan import Lesson
from orchestrator.prompt import MAX_LESSON_CHARS, observation_text
from pool_registry.actions import Observation, Status, as_text, clean_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import agent_messages, strip_special
from pool_registry.text import one_line, shorten
from pool_registry.worker import Visible

log = logging.getLogger(__name__)
RULE = "rule"
MAX_PIECE_CHARS = 120  # of an answer or an error inside a sentence
MAX_TURN_CHARS = 2000
MAX_REASON_CHARS = 300
SENTENCE_TOKENS = 120
LEARNS_NOTHING = ("stopped",)  # a person's doing

ROLE = (
    "You look back on a failed attempt at a question. An orchestrator wrote plans of steps for workers and read what "
    "came back. Say in one plain sentence of at most 30 words what to do otherwise next time: which worker to call, "
    "with what, or what to check. Do not guess the right answer. Write that sentence and nothing else."
)
ASK = "What should be done otherwise next time? One sentence."


def has_failed(episode: Episode) -> bool:
    """Whether an episode failed in a way to learn from: what-ifs and inner episodes are left out."""
    started, ended = episode.started, episode.ended
    if started is None or ended is None or started.depth or started.what_if is not None:
        return False
    if ended.outcome in LEARNS_NOTHING:
        return False
    return ended.outcome != "answered" or (episode.graded is not None and not episode.graded.correct)


async def keep_lesson(episode: Episode, pool: LivePool, store: LessonStore) -> LessonRow | None:
    """Store the lesson of an episode that has ended, if it failed and the pool's memory is on. A database error
    is logged and costs the lesson, never the episode."""
    row = await write_lesson(episode, pool)
    if row is None:
        return None
    try:
        await asyncio.to_thread(store.add, row)
    except SQLAlchemyError as error:
        log.warning("the lesson of episode %s cannot be kept: %s", episode.id, type(error).__name__)
        return None
    return row


async def write_lesson(episode: Episode, pool: LivePool) -> LessonRow | None:
    """The lesson of an episode, by the author that the pool's limits name; None when memory is off or nothing is to
    be learnt. Where the agent fails to write it, it is written by rule, and `instead_of` says why."""
    author = pool.pool.limits.memory
    rule_sentence = write_by_rule(episode) if author != OFF and has_failed(episode) else None
    if rule_sentence is None:
        return None
    name, by_rule = pool.pool.name, _build_lesson(episode, rule_sentence, RULE)
    if author == RULE:
        return build_row(name, by_rule)
    worker = pool.workers.get(author)
    if worker is None:
        return build_row(name, by_rule, f"this pool has no enabled agent {author!r}")
    attempt = (Visible(1, "attempt", Observation(Status.OK, attempt_text(episode))),)
    try:
        completion = await worker.complete(agent_messages(ROLE, ASK, attempt), room=SENTENCE_TOKENS)
    except WorkerFault as fault:
        return build_row(name, by_rule, f"{author}: {fault.code}: {fault}"[:MAX_REASON_CHARS])
    sentence, usage = first_sentence(completion.text), completion.usage
    if not sentence:
        return build_row(name, by_rule, f"{author} wrote nothing", usage.tokens, usage.cost)
    return build_row(name, _build_lesson(episode, sentence, author), "", usage.tokens, usage.cost)


def _build_lesson(episode: Episode, sentence: str, author: str) -> Lesson:
    return Lesson(episode.query, sentence, author, episode.id, 0.0)


def write_by_rule(episode: Episode) -> str | None:
    """The lesson that the states of turns and steps give; None when the orchestrator could not be asked at all, which
    says nothing about how to plan."""
    if all(done.turn is None or done.turn.failed for done in episode.rounds):
        return None
    causes = [*_describe_parse_errors(episode), *_describe_failures(episode)]
    if causes:
        return _clean_line(f"{_describe_ending(episode)}: {'; '.join(causes[:2])}.")
    if not episode.steps:
        return _clean_line(f"{_describe_ending(episode)}, without calling a worker: plan steps.")
    called = ", ".join(dict.fromkeys(run.step.worker for run in episode.steps.values()))
    return _clean_line(
        f"{_describe_ending(episode)}, though every step went well (it called {called}): plan it differently."
    )


def _describe_ending(episode: Episode) -> str:
    if episode.answer is not None:
        return f"It answered {_clip_piece(as_text(episode.answer))}, which is wrong"
    reason = episode.ended.reason if episode.ended and episode.ended.reason else "no reason was recorded"
    return f"It gave no answer ({_clip_piece(reason.rstrip('.'))})"


def _describe_parse_errors(episode: Episode) -> Iterator[str]:
    errors = [done.turn.error for done in episode.rounds if done.turn and done.turn.error and not done.turn.failed]
    if errors:
        many = f"{len(errors)} of {len(episode.rounds)} turns" if len(errors) > 1 else "a turn"
        yield f"{many} could not be parsed: {_clip_piece(errors[0])}"


def _describe_failures(episode: Episode) -> Iterator[str]:
    """The first step that failed by itself, and how many more did."""
    failed = [run for run in episode.steps.values() if run.observation is not None and run.observation.error]
    own = [run for run in failed if run.observation and run.observation.error and not _is_inherited(run.observation)]
    if not own:
        return
    first = own[0].observation
    assert first is not None and first.error is not None, "`own` holds steps with an error only"
    more = f", and {len(failed) - 1} more failed" if len(failed) > 1 else ""
    what = f"{first.status} {first.error.code}: {_clip_piece(first.error.message)}"
    yield f"step {own[0].step.id} ({own[0].step.worker}) ended in {what}{more}"


def _is_inherited(observation: Observation) -> bool:
    return observation.error is not None and observation.error.code == "dependency_failed"


def _clip_piece(text: str) -> str:
    return _clean_line(text, MAX_PIECE_CHARS).rstrip(".")


def attempt_text(episode: Episode) -> str:
    """The attempt as the agent that writes its lesson reads it, without the expected answer."""
    lines = [f"Question: {episode.query}"]
    for done in episode.rounds:
        if done.turn is not None:
            lines += [f"Turn {done.number}: {shorten(done.turn.text, MAX_TURN_CHARS)}", observation_text(done, 0)]
    lines.append(f"{_describe_ending(episode)}.")
    return "\n".join(lines)


def first_sentence(text: str) -> str:
    """The first sentence of an agent's reply, in one line that fits a prompt; "" when it is empty."""
    return _clean_line(re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])", _clean_line(text, len(text)), maxsplit=1)[0])


def _clean_line(text: str, longest: int = MAX_LESSON_CHARS) -> str:
    return shorten(one_line(clean_text(strip_special(text))), longest)

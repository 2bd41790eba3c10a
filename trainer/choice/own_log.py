"""A pool's own log as what a success predictor learns from: questions, who was given each, and whether that was right.

A question's own outcomes never stand in the log that is shown beside it, and a question that is held out stands in
none: what is measured on it says what the predictor does on new ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.choice.outcomes import Outcome, Record
from orchestrator.choice.predictor import MAX_OUTCOMES
from orchestrator.engine.events import SERVED
from orchestrator.reader.bind_needs import score_need
from orchestrator.reader.cards import describe_whole
from orchestrator.reader.order_candidates import COMPARED
from orchestrator.traces.agent_track_record import (
    SoloEpisode,
    TrackRecord,
    read_side_by_side,
    read_solo_episodes,
    read_task_queries,
)
from pool_registry.calls.live_pool import LivePool
from trainer.errors import TrainingFailed
from trainer.tasks.practice.traffic_record import read_traffic
from trainer.tasks.task import HELD_BACK, normalize_query

if TYPE_CHECKING:
    from sqlalchemy import Engine

LEAST_OUTCOMES, LEAST_QUESTIONS = 40, 20  # with fewer, what is held out says nothing
HELD_OUT = 0.3  # of the questions
MOST_HELD_OUT = 300  # questions


@dataclass(frozen=True, slots=True)
class LoggedCandidate:
    """A worker of a pool, as a success predictor is shown it, with its outcomes, oldest first."""

    name: str
    card: str
    is_tool: bool
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """A need of the log. `candidates` are the places of the workers among which a choice for it is made, `likeness`
    the cosine of each one's card with it (0 of agents), `right` the share of right outcomes of those that were given
    it, by place, and `given` how often."""

    need: str
    candidates: tuple[int, ...]
    likeness: tuple[float, ...]
    right: Mapping[int, float]
    given: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OwnLog:
    """The workers of a pool and the questions that they were given."""

    workers: tuple[LoggedCandidate, ...]
    questions: tuple[LoggedQuestion, ...]

    @property
    def outcomes(self) -> int:
        """How many outcomes there are in all."""
        return sum(len(worker.outcomes) for worker in self.workers)


def normalize_need(need: str) -> str:
    """What equal questions have in common."""
    return normalize_query(need).casefold()


def read_record_to_learn_from(engine: Engine, pool: str) -> TrackRecord:
    """The track record of a pool without what was run on validation and test tasks, which measure what is trained, and
    without requests of clients where the pool does not let these be learnt from. Raises UnusableTasks."""
    return TrackRecord(list_outcomes_to_learn_from(engine, pool))


def list_outcomes_to_learn_from(engine: Engine, pool: str) -> list[SoloEpisode]:
    """The outcomes of that record, a row each."""
    held_back = read_task_queries(engine, pool, HELD_BACK)
    without = () if read_traffic(pool).allows(SERVED) else (SERVED,)
    episodes = [*read_solo_episodes(engine, pool, without=without), *read_side_by_side(engine, pool, without=without)]
    return [episode for episode in episodes if episode.query not in held_back]


def read_own_log(live: LivePool, record: Record) -> OwnLog:
    """The log of an open pool's workers. Blocks: sentence vectors are computed. Raises TrainingFailed where there are
    too few outcomes to learn from and to measure on."""
    workers = tuple(
        LoggedCandidate(
            name,
            worker.spec.description if worker.role == "agent" else describe_whole(worker),
            worker.role == "tool",
            tuple(record.outcomes(name)[-MAX_OUTCOMES:]),
        )
        for name, worker in live.workers.items()
    )
    check_enough(live.pool.name, workers)
    needs, verdicts = dict[str, str](), dict[str, dict[int, list[bool]]]()
    for place, worker in enumerate(workers):
        for outcome in worker.outcomes:
            key = normalize_need(outcome.need)
            needs[key] = outcome.need
            verdicts.setdefault(key, {}).setdefault(place, []).append(outcome.right)
    return OwnLog(workers, tuple(_gather(needs[key], rows, workers, live) for key, rows in verdicts.items()))


def check_enough(pool: str, workers: Sequence[LoggedCandidate]) -> None:
    """Raise TrainingFailed with how many outcomes there are, and how many it needs."""
    log = [outcome for worker in workers for outcome in worker.outcomes]
    questions = len({normalize_need(outcome.need) for outcome in log})
    tried_workers = sum(bool(worker.outcomes) for worker in workers)
    if len(log) >= LEAST_OUTCOMES and questions >= LEAST_QUESTIONS and tried_workers > 1:
        if len({outcome.right for outcome in log}) == 2:
            return
        verdict = "right" if log[0].right else "wrong"
        raise TrainingFailed(
            "outcomes", f"every outcome on the pool {pool} is {verdict}: there is nothing to tell workers apart by"
        )
    raise TrainingFailed(
        "outcomes",
        f"the pool {pool} has {len(log)} outcomes of {tried_workers} workers on {questions} different questions; "
        f"training needs {LEAST_OUTCOMES} of two workers on {LEAST_QUESTIONS}. An outcome is a graded run in which one "
        "worker alone was called, and not on a validation or test task: say of answers on the Run page whether they "
        "are right, or run python -m trainer evaluate --orchestrator direct:AGENT --pool POOL --split train",
    )


def _gather(
    need: str, verdicts: Mapping[int, Sequence[bool]], workers: Sequence[LoggedCandidate], live: LivePool
) -> LoggedQuestion:
    """What is known of one question, and who is a candidate for it."""
    likeness = _compare(need, workers, live)
    if any(workers[place].is_tool for place in verdicts):  # a reader's choice: among the most similar of all workers
        nearest = sorted(range(len(workers)), key=lambda place: -likeness[place])[:COMPARED]
        candidates = sorted({*nearest, *verdicts})
    else:
        candidates = [place for place, worker in enumerate(workers) if live.workers[worker.name].role == "agent"]
    return LoggedQuestion(
        need,
        tuple(candidates),
        tuple(likeness[place] if workers[place].is_tool else 0.0 for place in candidates),
        {place: sum(rows) / len(rows) for place, rows in verdicts.items()},
        {place: len(rows) for place, rows in verdicts.items()},
    )


def _compare(need: str, workers: Sequence[LoggedCandidate], live: LivePool) -> list[float]:
    """The cosine of a need with every worker; zeros where no tool has an outcome."""
    if not any(worker.is_tool and worker.outcomes for worker in workers):
        return [0.0] * len(workers)
    return score_need(need, [live.workers[worker.name] for worker in workers])


def hold_out(questions: Sequence[LoggedQuestion], seed: int) -> tuple[list[int], list[int]]:
    """The places of the questions to learn from, and of those that are only measured on. The hash of a question and
    the seed decides: as the log grows, most stay on their side."""
    order = sorted(range(len(questions)), key=lambda place: _hash(questions[place].need, seed))
    count = min(MOST_HELD_OUT, max(2, round(HELD_OUT * len(order))))
    return sorted(order[count:]), sorted(order[:count])


def _hash(need: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}/{normalize_need(need)}".encode()).digest()

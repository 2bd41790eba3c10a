"""What is said about the answers of recorded runs: verdicts of people, clients, verifiers and judges, and plans that
somebody corrected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlmodel import Session, col, select

from orchestrator.engine.events import SERVED, Graded, VerdictPlace, load_event
from orchestrator.traces.store import EpisodeRow, EventRow, Store

MAX_RUNS = 2000  # the newest that somebody has judged, or whose plan was corrected
BATCH = 500  # ids of one statement
EVALUATED = ("evaluation", "training")  # sources whose runs are of tasks
UNDER_WAY = ("running", "waiting")

EvidenceKind = Literal["right", "right plan", "corrected", "wrong", "plan"]
WORDS: Mapping[EvidenceKind, str] = {
    "right": "judged right",
    "right plan": "plan corrected and judged right",
    "corrected": "right answer given",
    "wrong": "judged wrong",
    "plan": "plan corrected",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one run says about its question. `verdict`: whether its own answer is right, None where a plan was corrected
    and nobody has judged what came of it. `answer` is the right one as far as the evidence goes, "" where it says
    none; `answered` is the run's own. `by` and `place` say who judged, `at` (UTC) when; `source` and `user` whose run
    it is."""

    kind: EvidenceKind
    verdict: bool | None
    run: str
    answer: str
    answered: str
    by: str
    place: VerdictPlace
    at: str
    source: str
    user: str

    @property
    def is_served(self) -> bool:
        """Whether a client sent the question."""
        return self.source == SERVED

    def describe(self, *, with_name: bool = True) -> str:
        """One line: "right answer given by ann, page, 2026-11-29"."""
        who = f" by {self.by}" if self.by and with_name else ""
        return ", ".join(filter(None, (f"{WORDS[self.kind]}{who}", self.place, self.at[:10])))


def list_judged_runs(store: Store, pool: str, clients: bool) -> list[tuple[EpisodeRow, Evidence]]:
    """The ended runs on a pool that say something about their question, the newest first; none of evaluations or
    training, nor those inside others, and those of `clients` only where they may become tasks."""
    statement = select(EpisodeRow).where(
        EpisodeRow.pool == pool,
        EpisodeRow.depth == 0,
        col(EpisodeRow.state).not_in(UNDER_WAY),
        col(EpisodeRow.source).not_in(EVALUATED if clients else (*EVALUATED, SERVED)),
        col(EpisodeRow.correct).is_not(None) | col(EpisodeRow.what_if_of).is_not(None),
    )
    with Session(store.engine) as session:
        rows = session.exec(statement.order_by(col(EpisodeRow.started_at).desc()).limit(MAX_RUNS)).all()
        verdicts = _read_verdicts(session, [row.id for row in rows])
    return [(row, evidence) for row in rows if (evidence := _weigh(row, verdicts.get(row.id))) is not None]


def _read_verdicts(session: Session, runs: Sequence[str]) -> dict[str, Graded]:
    """The last verdict on each run."""
    bodies: defaultdict[str, str] = defaultdict(str)
    for ids in _split(runs):
        statement = select(EventRow.episode, EventRow.body).where(
            EventRow.type == "graded", col(EventRow.episode).in_(ids)
        )
        bodies.update(dict(session.exec(statement.order_by(col(EventRow.id))).all()))
    events = {run: load_event(body) for run, body in bodies.items()}
    return {run: event for run, event in events.items() if isinstance(event, Graded)}


def _split(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def _weigh(row: EpisodeRow, verdict: Graded | None) -> Evidence | None:
    """What a run says about its question; None where that is nothing."""
    if verdict is None and not (row.what_if_of and row.answer):
        return None
    answered = row.answer or ""
    return Evidence(
        kind=_name_kind(row, verdict),
        verdict=verdict.correct if verdict else None,
        run=row.id,
        answer=(verdict.expected or (answered if verdict.correct else "")) if verdict else "",
        answered=answered,
        by=verdict.by if verdict else row.user_name,
        place=verdict.place if verdict else "page",
        at=(verdict.judged_at if verdict else "") or row.started_at,
        source=row.source,
        user=row.user_name,
    )


def _name_kind(row: EpisodeRow, verdict: Graded | None) -> EvidenceKind:
    if verdict is None:
        return "plan"
    if verdict.correct:
        return "right plan" if row.what_if_of else "right"
    return "corrected" if verdict.expected else "wrong"

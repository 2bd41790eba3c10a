"""What the Tasks page shows: candidates with what is said of their answers, and what is stored of traffic."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.traces.store import Store
from studio.frame.document import PageDocument
from studio.housekeeping.retention import read_retention
from trainer.improve.set_aside import REASON, list_set_aside
from trainer.tasks.practice.traffic_record import read_traffic
from trainer.tasks.suite import SPLITS
from trainer.traffic.candidates import Candidate, list_candidates
from trainer.traffic.evidence import Evidence

SHOWN = 200
EVIDENCE = 5  # pieces of a candidate


class EvidenceLine(PageDocument):
    """What one run says of its question, such as "judged right by ann, page, 2026-11-29", and what it answered."""

    run: str
    words: str
    answered: str
    client: str = Field(description='Whose request it was, where a client sent it; else "".')


class MarkLine(PageDocument):
    """What may tell who somebody is."""

    kind: str
    text: str
    why: str


class CandidateLine(PageDocument):
    """A question that may become a task. `concern` says what has to be looked at, `reason` why, in a sentence."""

    id: str
    query: str
    answer: str
    choices: list[str] = Field(
        description="What may be right where people disagree, or a corrected plan answered and nobody has judged it."
    )
    also: list[str] = Field(description="Other wordings of it.")
    evidence: list[EvidenceLine]
    more: int = Field(description="How many pieces of evidence are not listed.")
    group: str
    split: str
    marks: list[MarkLine]
    concern: Literal["personal", "answer", "disputed", "leak", ""]
    reason: str


class AsideLine(PageDocument):
    """A task that no improvement takes until somebody puts it back."""

    query: str
    answer: str


class TrafficSettings(PageDocument):
    """What is stored of served traffic. `clients`: their requests may become tasks. `served_days`: None for ever."""

    clients: bool
    served_days: float | None


class CandidatesDocument(PageDocument):
    """Some of the `total` candidates of a pool, near-duplicates beside each other."""

    pool: str
    pools: list[str]
    splits: list[str]
    rows: list[CandidateLine]
    total: int
    aside: list[AsideLine] = Field(
        description="Tasks that are set aside, some of `total_aside`; `aside_reason` says why."
    )
    total_aside: int
    aside_reason: str
    settings: TrafficSettings


def build_candidates_document(store: Store, pool: str) -> CandidatesDocument:
    """The candidates of a pool. Raises UnusableTasks where what is remembered about them is damaged."""
    candidates, aside = list_candidates(store, pool), list_set_aside(store.home, pool)
    return CandidatesDocument(
        pool=pool,
        pools=store.pools.names(),
        splits=list(SPLITS),
        rows=[_build_line(candidate) for candidate in candidates[:SHOWN]],
        total=len(candidates),
        aside=[AsideLine(query=line.query, answer=str(line.answer)) for line in aside[:SHOWN]],
        total_aside=len(aside),
        aside_reason=REASON,
        settings=TrafficSettings(
            clients=read_traffic(pool).clients,
            served_days=read_retention(store.home).served_days,
        ),
    )


def _build_line(candidate: Candidate) -> CandidateLine:
    return CandidateLine(
        id=candidate.id,
        query=candidate.query,
        answer=candidate.answer,
        choices=list(candidate.choices),
        also=list(candidate.also),
        evidence=[_build_evidence(evidence) for evidence in candidate.evidence[:EVIDENCE]],
        more=max(0, len(candidate.evidence) - EVIDENCE),
        group=candidate.group,
        split=candidate.split,
        marks=[MarkLine(kind=mark.kind, text=mark.text, why=mark.why) for mark in candidate.marks],
        concern=candidate.concern,
        reason=candidate.reason,
    )


def _build_evidence(evidence: Evidence) -> EvidenceLine:
    client = (evidence.user or "a client") if evidence.is_served else ""
    return EvidenceLine(run=evidence.run, words=evidence.describe(), answered=evidence.answered, client=client)

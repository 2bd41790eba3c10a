"""What a worker's card says of its track record."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrator.traces.agent_track_record import TrackRecord
from studio.pages.pool.schema import TopicFacts, WorkerFacts


def build_facts(record: TrackRecord, worker: str, read: int | None) -> WorkerFacts | None:
    """The facts of a worker by a record that was read from so many graded runs, None for all; None without any."""
    facts = record.facts(worker)
    if facts is None:
        return None
    return WorkerFacts(
        graded=facts.graded,
        right=facts.right,
        median_s=facts.median_s,
        cost=facts.cost,
        newest=facts.newest,
        topics=[
            TopicFacts(topic=topic, graded=len(graded), right=sum(graded)) for topic, graded in facts.topics.items()
        ],
        read=read,
        computed_at=datetime.now(UTC).isoformat(),
    )

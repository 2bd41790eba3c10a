"""What the record of a worker comes to."""

from __future__ import annotations

import pytest

from orchestrator.traces.agent_track_record import SoloEpisode, TrackRecord

EPISODES = [
    SoloEpisode("ada", "1 + 1?", True, 1.0, 0.01, topic="sums", started_at="2026-11-01T10:00:00+00:00"),
    SoloEpisode("ada", "1 + 2?", False, 9.0, 0.03, topic="sums", started_at="2026-11-03T10:00:00+00:00"),
    SoloEpisode("ada", "Who?", True, 2.0, 0.02, topic="names", started_at="2026-11-02T10:00:00+00:00"),
    SoloEpisode("ada", "A person's own", True, 3.0, 0.02),
]


def test_facts_hold_the_share_the_median_the_price_the_newest_and_the_topics():
    facts = TrackRecord(EPISODES).facts("ada")
    assert facts is not None and (facts.graded, facts.right, facts.median_s) == (4, 3, 2.5)
    assert facts.cost == pytest.approx(0.02) and facts.newest == "2026-11-03T10:00:00+00:00"
    assert facts.topics == {"names": [True], "sums": [True, False]}


def test_a_worker_without_graded_episodes_has_no_facts():
    assert TrackRecord(EPISODES).facts("bea") is None

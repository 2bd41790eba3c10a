"""What a shell is told beside an answer."""

from __future__ import annotations

from orchestrator.engine.episode import Episode, Round
from orchestrator.plan import OutOfDepth, Turn, Vote
from studio.cli.runs.result import print_result

DOCUMENT = {"outcome": "answered", "correct": None, "answer": "269", "final": None, "orchestrator": "oracle"}


def test_the_agreement_of_plans_stands_before_the_verdict(capsys):
    episode = Episode("days to Christmas")
    vote = Vote(5, 0, 3, 0, 1, {"269": 1, "297": 1})
    episode.rounds = [Round(1, 0.0, Turn(answer="269", vote=vote, out_of_depth=OutOfDepth(0.0, 0.9)))]
    print_result(DOCUMENT, episode, [])
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Unsure: no two of 5 plans agree.",
        "Not verified: no answer is known to compare this one with.",
    ]

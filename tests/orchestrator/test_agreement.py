"""What the head of a run says of the plans that were drawn for it."""

from __future__ import annotations

import pytest

from orchestrator.agreement import describe_agreement, is_unsure
from orchestrator.engine.episode import Episode, Round
from orchestrator.plan import Turn, Vote


def vote(votes: int, answers: dict[str, int], unreadable: int = 0, failed: int = 0, **more: dict[str, int]) -> Vote:
    silent = sum(more.get("unvoted", {}).values())
    sampled = sum(answers.values()) + unreadable + failed + silent
    return Vote(sampled, unreadable, failed, 0, votes, answers, incomplete=silent, **more)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (vote(3, {"4": 3, "5": 1}, failed=1), "3 of 5 plans agree."),
        (vote(5, {"4": 5}), "5 of 5 plans agree."),
        (vote(2, {"4": 2, "5": 2}), "Unsure: only 2 of 4 plans agree."),
        (vote(1, {"1": 1, "2": 1, "3": 1, "4": 1, "5": 1}), "Unsure: 5 plans, 5 different answers."),
        (vote(1, {"269": 1}, unvoted={"1": 1, "2": 1, "3": 1, "4": 1}), "Unsure: 5 plans, 5 different answers."),
        (vote(1, {"269": 1}, unvoted={"297": 4}), "Unsure: only 1 of 5 plans says this."),
        (vote(1, {"269": 1, "297": 1}, failed=3), "Unsure: no two of 5 plans agree."),
        (vote(0, {}, failed=4, unreadable=1), "Unsure: none of 5 plans works."),
        (vote(0, {}, unreadable=5), "Unsure: none of 5 plans can be read."),
    ],
)
def test_the_sentence_counts_plans_and_doubts_what_is_no_majority(record, sentence):
    assert describe_agreement(record) == sentence
    assert is_unsure(record) == sentence.startswith("Unsure")


def test_an_episode_tells_the_last_vote_and_nothing_of_a_single_plan():
    episode = Episode("x")
    episode.rounds = [Round(1, 0.0, Turn()), Round(2, 0.0, Turn(vote=vote(1, {"4": 1})))]
    assert episode.agreement is None, "one plan agrees with itself"
    episode.rounds.append(Round(3, 0.0, Turn(vote=vote(1, {"4": 1, "5": 1}))))
    assert episode.agreement is not None
    assert (episode.agreement.round, episode.agreement.plans, episode.agreement.agreed) == (3, 2, 1)

"""What is offered after a run that has no answer, or none to trust."""

from __future__ import annotations

import pytest

from orchestrator.engine.episode import Episode, Round
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Graded, Outcome
from orchestrator.plan import OutOfDepth, Turn, Vote
from orchestrator.reader.refusal import refuse
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from studio.orchestrators import default
from studio.orchestrators.choices import PLAIN_QUESTIONS
from studio.orchestrators.offers import format_offers, list_offers
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.sources.jsonl import TaskLine

READER = "smollm2-reader"
CHAT = WorkerSpec(
    name="far", kind="chat", description="Answers.", config={"base_url": "http://127.0.0.1:9/v1", "model": "m"}
)
MINE = Pool(name="mine", workers=(CHAT,))
QUERY = "Who's there?"


@pytest.fixture(autouse=True)
def with_reader(monkeypatch):
    monkeypatch.setattr(default, "checkpoint_names", lambda: [READER, "starter-grpo"])


def run(
    outcome: Outcome | None,
    answer: JsonValue = None,
    orchestrator: str = "starter-grpo",
    out_of_depth: float | None = None,
    correct: bool | None = None,
    votes: int | None = None,
) -> Episode:
    episode = Episode("e")
    episode.apply(EpisodeStarted(QUERY, "p", "h", orchestrator, {}, "2026-01-01T00:00:00+00:00"))
    score = None if out_of_depth is None else OutOfDepth(out_of_depth, 0.2)
    vote = None if votes is None else Vote(5, 0, 0, 0, votes, {"42": votes})
    episode.rounds.append(Round(1, 0.0, Turn(answer=answer, out_of_depth=score, vote=vote)))
    if outcome is not None:
        episode.apply(EpisodeEnded(outcome, 1.0, answer))
    if correct is not None:
        episode.apply(Graded(correct, "42", 1.1))
    return episode


@pytest.mark.parametrize(
    "episode",
    [
        run(None),
        run("stopped"),
        run("answered", 42),
        run("answered", 42, out_of_depth=0.1),
        run("answered", 42, votes=3),
        run("answered", 42, votes=1, correct=True),
        run("answered", 42, out_of_depth=0.9, correct=True),
    ],
)
def test_a_run_that_goes_on_or_went_well_has_no_offers(episode):
    assert list_offers(episode, MINE) == []


@pytest.mark.parametrize(
    "episode",
    [
        run("gave_up"),
        run("max_rounds"),
        run("orchestrator_failed"),
        run("answered", 41, correct=False),
        run("answered", 42, out_of_depth=0.9),
        run("answered", 42, votes=2),
    ],
)
def test_the_next_orchestrators_are_offered_with_the_same_query(episode):
    offers = list_offers(episode, MINE)
    assert [(offer.orchestrator, offer.query) for offer in offers] == [(READER, QUERY), ("model:far:plan", QUERY)]
    assert offers[0].command == f"""podium run 'Who'"'"'s there?' --orchestrator {READER} --pool mine"""


def test_a_refusal_offers_to_add_the_worker_that_is_missing():
    offer, *others = list_offers(run("answered", refuse("weight of a whale"), READER), MINE)
    assert "weight of a whale" in offer.text and offer.href == "/pool?pool=mine"
    assert READER not in {other.orchestrator for other in others}


def test_without_a_chat_model_a_key_is_offered_and_examples_where_it_was_trained():
    offers = list_offers(run("gave_up"), starter_pool())
    key = next(offer for offer in offers if "key" in offer.text)
    assert key.href.startswith("/pool?")
    examples = [offer for offer in offers if offer.orchestrator == "starter-grpo"]
    assert len(examples) == 2 and all(offer.query in offer.text for offer in examples)
    assert not [
        offer for offer in list_offers(run("gave_up"), Pool(name="mine")) if offer.orchestrator == "starter-grpo"
    ]


def test_a_reader_offers_plain_questions_on_the_starter_pool_and_the_own_tasks_of_another(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    episode = run("gave_up", orchestrator=f"{READER}+samples=4")
    assert list_examples(episode, starter_pool()) == list(PLAIN_QUESTIONS)
    assert list_examples(episode, MINE) == []
    open_task_book("mine").add([TaskLine(query="How much is a kilo of plums?", answer=3, split="test")])
    assert list_examples(episode, MINE) == ["How much is a kilo of plums?"]


def list_examples(episode: Episode, pool: Pool) -> list[str]:
    return [offer.query for offer in list_offers(episode, pool) if offer.query not in ("", QUERY)]


def test_offers_are_lines_with_commands():
    assert format_offers([]) == ""
    text = format_offers(list_offers(run("gave_up"), MINE))
    assert text.startswith("Try next:\n- ") and "podium run" in text

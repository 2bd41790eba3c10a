"""Whether a query is unlike everything that a checkpoint learnt."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.checkpoints import find_checkpoint
from orchestrator.engine.episode import Episode, Round
from orchestrator.engine.events import EpisodeStarted
from orchestrator.out_of_depth.gauge import DepthGauge, describe_depth, find_gauge, is_beyond, measure_depth
from orchestrator.out_of_depth.learnt_queries import FILE, LearntQueries, load_learnt_queries
from orchestrator.plan import OutOfDepth, Turn
from orchestrator.policies.model import checkpoint_policy
from orchestrator.retrieval import sentence_vectors
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

SHIPPED = ("starter-grpo", "starter-sft", "smollm2-sft")
AXES = {"east": [1.0, 0.0], "north": [0.0, 1.0], "north-east": [0.7, 0.7]}


@pytest.fixture
def gauge(tmp_path, monkeypatch):
    """The gauge of a checkpoint that has learnt to go east; sentences are directions."""
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: tmp_path)
    monkeypatch.setattr(sentence_vectors, "embed", lambda texts: np.array([AXES[text] for text in texts]))
    LearntQueries(np.array([AXES["east"]]), intercept=10.0, slope=-20.0).save(tmp_path)
    return DepthGauge(tmp_path)


def episode(query: str) -> Episode:
    begun = Episode("e")
    begun.apply(EpisodeStarted(query, "p", "h", "o", {}, "2026-01-01T00:00:00+00:00"))
    begun.rounds.append(Round(1, 0.0))
    return begun


def test_a_query_is_judged_by_the_most_similar_learnt_one(gauge):
    near, far = (asyncio.run(gauge.measure(episode(query))) for query in ("east", "north"))
    assert near.nearest == 1 and near.probability < 0.001 and not is_beyond(near)
    assert far.nearest == 0 and far.probability > 0.999 and is_beyond(far)


def test_missing_workers_count_and_an_empty_pool_is_always_beyond(gauge):
    score = measure_depth(gauge.folder, "east", missing=0.25)
    assert score.probability == pytest.approx(0.25, abs=0.01)
    assert measure_depth(gauge.folder, "east", missing=1.0).probability == 1


def test_for_a_reader_a_query_is_within_depth_that_is_like_a_worker_of_the_pool(gauge):
    reader = replace(gauge, compare=lambda query: {"north": 0.5, "north-east": 0.1}[query])
    served, strange = (asyncio.run(reader.measure(episode(query))) for query in ("north", "north-east"))
    assert served.likeness == 0.5 and served.probability < 0.1 and not is_beyond(served)
    alone = asyncio.run(gauge.measure(episode("north-east")))
    assert strange.probability == pytest.approx(alone.probability, rel=0.01)


def test_only_the_first_turn_is_judged(gauge):
    later = episode("north")
    later.rounds[0].turn = Turn(answer="x")
    assert asyncio.run(gauge.measure(later)) is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY"])
def test_a_damaged_file_gives_no_score(gauge, content):
    (gauge.folder / FILE).write_bytes(content)
    load_learnt_queries.cache_clear()
    assert measure_depth(gauge.folder, "east") is None


def test_the_sentence_names_what_is_foreign():
    foreign = describe_depth(OutOfDepth(0.9712, 0.2), "mine")
    assert foreign == "The question's words are unlike anything that mine learnt."
    assert "lacks workers" in describe_depth(OutOfDepth(0.9, 0.95, 0.8), "mine")
    assert "unlike every worker here" in describe_depth(OutOfDepth(0.9712, 0.2, 0.0, 0.1), "mine")
    assert "like what a worker of this pool does" in describe_depth(OutOfDepth(0.03, 0.2, 0.0, 0.6), "mine")
    assert "like questions that mine learnt" in describe_depth(OutOfDepth(0.03, 0.9), "mine")


@pytest.mark.parametrize("probability", [0.0, 0.03, 0.49, 0.5, 0.97])
def test_no_sentence_reads_as_confidence_in_the_answer(probability):
    for likeness in (None, 0.1, 0.6):
        sentence = describe_depth(OutOfDepth(probability, 0.5, 0.0, likeness), "mine")
        assert "%" not in sentence and not any(char.isdigit() for char in sentence)
        assert is_beyond(OutOfDepth(probability, 0.5)) or "does not say that the answer is right" in sentence


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_checkpoints_carry_what_they_learnt(name):
    folder, checkpoint = find_checkpoint(name)
    learnt = load_learnt_queries(folder)
    assert learnt is not None and FILE in checkpoint.files
    assert (folder / FILE).stat().st_size <= 1_000_000
    assert learnt.judge(0.95) < 0.1 < 0.9 < learnt.judge(0.1)
    assert (find_gauge(folder) is None) == (sentence_vectors.find_weights() is None)


@pytest.mark.medium
def test_a_reader_is_within_its_depth_on_a_persons_pool_and_not_with_what_no_worker_does():
    folder, _ = find_checkpoint("smollm2-reader")
    pool = open_live_pool(
        Pool(
            name="kitchen",
            workers=(
                calculator_spec("price_per_kilo", "What a kilo of an ingredient costs, in dollars"),
                calculator_spec("main_ingredient", "The main ingredient of a dish"),
            ),
        )
    )
    gauge = checkpoint_policy(pool, "smollm2-reader").gauge
    assert gauge is not None and gauge.folder == folder
    served = ("what does a kilo of salmon cost?", "main ingredient of paella", "how expensive is a kilo of rice")
    strange = ("write me a poem about the sea", "who will win the cup tomorrow", "is my train on time")
    assert not any(is_beyond(asyncio.run(gauge.measure(episode(query)))) for query in served)
    assert all(is_beyond(asyncio.run(gauge.measure(episode(query)))) for query in strange)


@pytest.mark.medium
def test_no_question_to_agents_is_beyond_a_reader_that_asks_them():
    agent = WorkerSpec(name="a", kind="local_model", description="Our model.", config={"model": "starter:smollm2"})
    tool = calculator_spec("price", "What a kilo of an ingredient costs, in dollars")
    alone, both = (open_live_pool(Pool(name="p", workers=workers)) for workers in ((tool,), (tool, agent)))
    assert checkpoint_policy(both, "smollm2-agents").gauge is None
    assert checkpoint_policy(both, "smollm2-reader").gauge is not None
    assert checkpoint_policy(alone, "smollm2-agents").gauge is not None


def calculator_spec(name: str, description: str) -> WorkerSpec:
    return WorkerSpec(name=name, kind="calculator", description=description)

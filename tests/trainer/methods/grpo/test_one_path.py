"""One checkpoint, pool and query: the same prompts, grammars, logits and texts in use, in evaluation and in GRPO."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.engine.events import TaskRef
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.language_models.completion import Grammar
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.learner.generator import Generator, SamplingParams
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollouts import EpisodeFormat, RolloutEngine
from trainer.methods.grpo.section import RewardSettings
from trainer.recipe_sections import ModelSettings
from trainer.tasks.task import Task
from trainer.tasks.verifier import NumberWithin

READER = "smollm2-reader"
QUERY = "What is 82 times 72?"


@dataclass(frozen=True, slots=True)
class Write:
    """One text of the model: the tokens before it, the grammar that held it, and what it wrote."""

    prompt: tuple[int, ...]
    grammar: Grammar | None
    text: str


def make_pool() -> Pool:
    """Functions that do one sum each, beside agents: which sum it is has to be asked."""
    agent = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    sums = {"plus": ("add", "Adds two numbers."), "times": ("multiply", "Multiplies two numbers.")}
    workers = [
        WorkerSpec(name=name, kind="everyday", description=text, config={"work": work, "names": {"a": "a", "b": "b"}})
        for name, (work, text) in sums.items()
    ]
    writer = WorkerSpec(name="writer", kind="chat", description="Writes and edits texts.", config=agent)
    return Pool(name="sums", workers=(*workers, writer))


def make_task() -> Task:
    return Task(TaskRef("own", 1, "train", 0), QUERY, NumberWithin(5904, 1e-6))


@pytest.fixture
def single_precision(monkeypatch) -> Iterator[None]:
    """Serve in float32, in which training computes; on a CPU that computes in bfloat16 serving takes that."""
    import torch

    from pool_registry.language_models import batched_model

    monkeypatch.setattr(batched_model, "pick_dtype", lambda _device: torch.float32)
    batched_model._load.cache_clear()  # what other tests have loaded
    yield
    batched_model._load.cache_clear()


@pytest.fixture
def in_use(monkeypatch, single_precision) -> list[Write]:
    """What the checkpoint that serves writes."""
    from pool_registry.language_models.batched_model import LoadedModel

    writes: list[Write] = []
    generate = LoadedModel.generate

    async def watch(self: Any, messages: Any, *rest: Any) -> Any:
        made = await generate(self, messages, *rest)
        writes.append(Write(tuple(self._encode(messages, None)), rest[-1], made[0]))
        return made

    monkeypatch.setattr(LoadedModel, "generate", watch)
    return writes


async def roll_out(pool: LivePool, generator: Generator, tokenizer: Any) -> list[Write]:
    """What the model writes in a GRPO episode before any update."""
    writes: list[Write] = []
    chat, generate = ChatTokens(tokenizer), generator.generate

    class Watched:
        busy_s, tokens = 0.0, 0

        async def generate(self, ids: Any, limit: int, grammar: Grammar | None = None, seed: int | None = None) -> Any:
            made = await generate(ids, limit, grammar, seed)
            writes.append(Write(tuple(ids), grammar, chat.decode(made.ids)))
            return made

    shown = EpisodeFormat(find_dialect("plan"), "reader", 384, 2400, 1)
    terms = load_rewards([RewardSettings(term="accuracy")])
    await RolloutEngine("learner", pool, chat, shown, terms, NoSink()).run_group(make_task(), Watched(), 1)
    return writes


@pytest.mark.slow
def test_use_evaluation_and_every_backend_of_grpo_see_one_prompt_one_grammar_and_one_distribution(in_use, monkeypatch):
    import torch

    from pool_registry.language_models.batched_model import open_model
    from pool_registry.language_models.model_files import model_path
    from trainer.learner.load_and_save import load_learner
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.learner.vllm_generator import ServerGenerator

    learner = load_learner(ModelSettings(base="starter:smollm2", start=READER, prompt="reader"), 0)
    local = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(0.0))

    async def serve(_method: str, url: str, _headers: Any, _timeout: float, body: dict[str, Any]) -> Any:
        """A vLLM server, as far as requests and replies go."""
        assert url.endswith("/v1/completions") and body["temperature"] == 0
        grammar = Grammar(body["structured_outputs"]["grammar"])
        made = await local.generate(body["prompt"], body["max_tokens"], grammar)
        zeros = {"token_logprobs": [0.0] * len(made.ids)}
        return {"choices": [{"token_ids": made.ids, "logprobs": zeros}]}

    monkeypatch.setattr("trainer.learner.vllm_generator.http_client.ask_json", serve)

    async def run() -> dict[str, list[Write]]:
        async with live_pool(make_pool()) as pool:
            ways: dict[str, list[Write]] = {}
            await run_episode(EpisodeSpec(QUERY), make_orchestrator(READER, pool), pool)
            ways["use"] = in_use[:]
            in_use.clear()
            await evaluate_orchestrator(READER, [make_task()], pool)
            ways["evaluation"] = in_use[:]
            ways["grpo: transformers"] = await roll_out(pool, local, learner.tokenizer)
            server = ServerGenerator("http://127.0.0.1:9/v1", "base", SamplingParams(0.0))
            ways["grpo: vllm, vllm-async"] = await roll_out(pool, server, learner.tokenizer)
            return ways

    ways = asyncio.run(run())
    local.close()
    # The model's own plan. In use repairs follow, which draw other plans; GRPO learns from what the policy drew.
    writes = ways["grpo: transformers"]
    assert [write.grammar is not None for write in writes] == [True] * 3
    assert writes[1].text in ("1. sum of two numbers", "1. product of two numbers"), "which sum it is was asked"
    for way, others in ways.items():
        assert others[:3] == writes, f"{way} plans otherwise"
    assert ways["use"] == ways["evaluation"]
    serving = open_model(model_path("starter:smollm2"), "auto")  # it has the adapter of its last batch
    for write in writes:
        ids = torch.tensor([write.prompt])
        with torch.inference_mode():
            scores = [model(input_ids=ids).logits[0, -1].float() for model in (serving.model, learner.model.eval())]
        torch.testing.assert_close(*scores, atol=0.02, rtol=0.02)

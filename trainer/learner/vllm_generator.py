"""Generates turns with vLLM: inside the trainer's process, or on a server that loads each new adapter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import Grammar
from pool_registry.network import http_client
from trainer.errors import TrainingFailed
from trainer.learner.generator import GATHER_S, BatchingGenerator, GeneratedTokens, SamplingParams

# (prompts, the grammar that holds all of them) -> completions and their log-probabilities
GenerateBatch = Callable[[list[list[int]], Grammar | None], tuple[list[list[int]], list[list[float]] | None]]


class ColocatedGenerator(BatchingGenerator):
    """vLLM inside the trainer's process, through TRL. Waiting sequences with one grammar share a batch, which runs to
    its end."""

    def __init__(self, generate: GenerateBatch) -> None:
        super().__init__()
        self._generate = generate

    async def _run(self) -> None:
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            grammar = self._waiting[0].grammar
            batch = [row for row in self._waiting if row.grammar == grammar]
            self._waiting = [row for row in self._waiting if row.grammar != grammar]
            started = time.perf_counter()
            try:
                prompts = [row.prompt for row in batch]
                completions, logprobs = await asyncio.to_thread(self._generate_in_thread, prompts, grammar)
            except Exception as error:  # noqa: BLE001  every waiting sequence must get it
                self._give_up(batch, error)
                return
            self.busy_s += time.perf_counter() - started
            for index, row in enumerate(batch):
                self.tokens += len(completions[index])
                if not row.done.done():
                    row.done.set_result(GeneratedTokens(completions[index], logprobs[index] if logprobs else None))
            await asyncio.sleep(GATHER_S)

    def _generate_in_thread(
        self, prompts: list[list[int]], grammar: Grammar | None
    ) -> tuple[list[list[int]], list[list[float]] | None]:
        """Generate with as many threads as the recipe says.

        A new thread takes over torch's number when torch first computes in it. vLLM on a CPU counts its threads before
        that, again after it, and stops where the counts differ.
        """
        import torch

        torch.get_num_threads()
        return self._generate(prompts, grammar)


class ServerGenerator:
    """A vLLM server, which batches continuously. `model` is the name of the newest adapter there."""

    def __init__(self, url: str, model: str, sampling: SamplingParams, timeout_s: float = 600.0) -> None:
        self.model = model
        self._url = url
        self._sampling = sampling
        self._timeout_s = timeout_s
        self._adapters = 0
        self._active = 0
        self._active_since = 0.0
        self.busy_s = 0.0
        self.tokens = 0

    async def generate(
        self, ids: Sequence[int], limit: int, grammar: Grammar | None = None, _seed: int | None = None
    ) -> GeneratedTokens:
        """Continue `ids` by at most `limit` tokens. Raises TrainingFailed `vllm` when the server refuses or is gone."""
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": list(ids),
            "max_tokens": limit,
            "temperature": self._sampling.temperature,
            "top_p": self._sampling.top_p,
            "logprobs": 0,
            "return_token_ids": True,
        }
        if grammar is not None:
            body["structured_outputs"] = {"grammar": grammar.lark}
        self._enter()
        try:
            reply: Any = await http_client.ask_json("POST", f"{self._url}/completions", {}, self._timeout_s, body)
            choice = reply["choices"][0]
            new_ids = [int(token) for token in choice["token_ids"]]
            logprobs = [float(value) for value in choice["logprobs"]["token_logprobs"]]
        except (WorkerFault, TimeoutError, KeyError, IndexError, TypeError, ValueError) as error:
            raise TrainingFailed(
                "vllm",
                f"the vLLM server at {self._url} did not generate: {_describe_error(error)}. Start it again, or leave "
                "rollouts.vllm_url empty so that the job starts its own; then resume: it goes on from the last "
                "checkpoint",
            ) from error
        finally:
            self._leave()
        self.tokens += len(new_ids)
        return GeneratedTokens(new_ids, logprobs)

    async def load_adapter(self, name: str, folder: Path) -> None:
        """Load an adapter into the server and generate with it from now on; the previous one is unloaded.

        Each needs a folder and a name of its own, because vLLM caches prefixes by name. Raises TrainingFailed `vllm`
        when the server refuses.
        """
        previous, count = self.model, self._adapters
        try:
            body = {"lora_name": name, "lora_path": str(folder)}
            await http_client.post_text(f"{self._url}/load_lora_adapter", body, {}, self._timeout_s)
            self.model, self._adapters = name, count + 1
            if count:
                await http_client.post_text(
                    f"{self._url}/unload_lora_adapter", {"lora_name": previous}, {}, self._timeout_s
                )
        except (WorkerFault, TimeoutError) as error:
            raise TrainingFailed(
                "vllm", f"the vLLM server did not take the adapter: {_describe_error(error)}"
            ) from error

    def _enter(self) -> None:
        if self._active == 0:
            self._active_since = time.perf_counter()
        self._active += 1

    def _leave(self) -> None:
        self._active -= 1
        if self._active == 0:
            self.busy_s += time.perf_counter() - self._active_since


def _describe_error(error: Exception) -> str:
    return (f"{error}" if isinstance(error, WorkerFault) else f"{type(error).__name__} {error}")[:300]

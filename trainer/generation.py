"""Where the learning model's turns come from: one contract, three backends.

`generate(ids)` continues a token sequence and returns when that one sequence has ended; sequences do not
wait for each other. With transformers a row is handed over the moment it ends, and what became ready in
the meantime joins as soon as at least as many rows wait as still run: the batch is broken off, and its
unfinished rows go on in the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pool_registry import egress
from pool_registry.errors import WorkerFault
from trainer.errors import TrainingFailed

GATHER_S = 0.002  # what becomes ready at nearly the same time shares a batch from its start


@dataclass(frozen=True, slots=True)
class Generated:
    """New token ids, the end token included if there was one, and their sampling log-probabilities
    (natural log; None where the backend does not tell)."""

    ids: list[int]
    logprobs: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample. Temperature 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 1.0


class Generator(Protocol):
    """A backend. `busy_s` is the time it has generated so far, `tokens` what came out of it."""

    busy_s: float
    tokens: int

    async def generate(self, ids: Sequence[int], limit: int) -> Generated: ...


@dataclass(slots=True, eq=False)
class _Row:
    """A sequence on its way: its prompt, what it has so far, and who waits for it."""

    prompt: list[int]
    limit: int
    done: asyncio.Future[Generated]
    made: list[int] = field(default_factory=list)
    released: bool = False


class TransformersGenerator:
    """Generates with a model in this process, in a thread, while the event loop runs workers."""

    def __init__(self, model: Any, tokenizer: Any, sampling: Sampling, max_batch: int = 256) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._sampling, self._max_batch = sampling, max_batch
        self._ends = set(_end_tokens(model, tokenizer))
        self._waiting: list[_Row] = []
        self._runner: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generate")
        self.busy_s = 0.0
        self.tokens = 0
        self.batches = 0

    async def generate(self, ids: Sequence[int], limit: int) -> Generated:
        """Raises TrainingFailed `out_of_memory` or `generation_failed`."""
        row = _Row(list(ids), limit, asyncio.get_running_loop().create_future())
        self._waiting.append(row)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await row.done

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        """Batches, one after another, until nothing waits."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
            started = time.perf_counter()
            try:
                await loop.run_in_executor(self._thread, self._generate, batch, loop)
            except Exception as error:  # noqa: BLE001  every row must hear of it
                for row in [*batch, *self._waiting]:
                    _fail(row, error)
                self._waiting.clear()
                return
            self.busy_s += time.perf_counter() - started
            self.batches += 1
            await asyncio.sleep(0)  # rows that were released are on their way to their episodes
            self._waiting = [row for row in batch if not row.released] + self._waiting

    def _generate(self, batch: list[_Row], loop: asyncio.AbstractEventLoop) -> None:
        """One call of the model's own generate(). Runs in the thread."""
        import torch
        from transformers import StoppingCriteriaList

        device = next(self._model.parameters()).device
        rows = [{"input_ids": row.prompt + row.made} for row in batch]
        self._tokenizer.padding_side = "left"
        padded = self._tokenizer.pad(rows, return_tensors="pt", padding=True).to(device)
        watch = _Watch(self, batch, loop, padded["input_ids"].shape[1])
        sampling = self._sampling
        how: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            how = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                self._model.generate(
                    **padded,
                    **how,
                    max_new_tokens=max(row.limit - len(row.made) for row in batch),
                    pad_token_id=self._tokenizer.pad_token_id,
                    eos_token_id=sorted(self._ends),
                    stopping_criteria=StoppingCriteriaList([watch]),
                    use_cache=True,
                )
        finally:
            self._model.train(was_training)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def ends(self, token: int) -> bool:
        return token in self._ends


class _Watch:
    """Looks at every new token: hands over rows that ended, and breaks the batch off when it pays."""

    def __init__(
        self, owner: TransformersGenerator, batch: list[_Row], loop: asyncio.AbstractEventLoop, width: int
    ) -> None:
        self._owner, self._batch, self._loop = owner, batch, loop
        self._width = width
        self._open = set(range(len(batch)))

    def __call__(self, ids: Any, _scores: Any, **_: Any) -> Any:
        import torch

        newest = ids[:, -1].tolist()
        for index in list(self._open):
            row = self._batch[index]
            row.made.append(newest[index])
            if self._owner.ends(newest[index]) or len(row.made) >= row.limit:
                self._open.discard(index)
                row.released = True
                self._owner.tokens += len(row.made)
                self._loop.call_soon_threadsafe(_settle, row)
        broken_off = 0 < len(self._open) <= self._owner.waiting
        over = [broken_off or index not in self._open for index in range(len(self._batch))]
        return torch.tensor(over, dtype=torch.bool, device=ids.device)


class ColocatedGenerator:
    """vLLM inside the trainer's process, through TRL. Batches run to their end; ready rows share one."""

    def __init__(self, generate: Callable[[list[list[int]]], tuple[list[list[int]], list[list[float]] | None]]) -> None:
        self._generate = generate
        self._waiting: list[_Row] = []
        self._runner: asyncio.Task[None] | None = None
        self.busy_s = 0.0
        self.tokens = 0

    async def generate(self, ids: Sequence[int], limit: int) -> Generated:
        row = _Row(list(ids), limit, asyncio.get_running_loop().create_future())
        self._waiting.append(row)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await row.done

    async def _run(self) -> None:
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            batch, self._waiting = self._waiting, []
            started = time.perf_counter()
            try:
                made, logprobs = await asyncio.to_thread(self._generate, [row.prompt for row in batch])
            except Exception as error:  # noqa: BLE001  every row must hear of it
                for row in batch:
                    _fail(row, error)
                return
            self.busy_s += time.perf_counter() - started
            for index, row in enumerate(batch):
                self.tokens += len(made[index])
                if not row.done.done():
                    row.done.set_result(Generated(made[index], logprobs[index] if logprobs else None))
            await asyncio.sleep(GATHER_S)


class ServerGenerator:
    """A vLLM server; it batches continuously by itself. `model` is the name of the newest adapter there."""

    def __init__(self, url: str, model: str, sampling: Sampling, timeout_s: float = 600.0) -> None:
        self.model = model
        self._url = url
        self._sampling = sampling
        self._timeout_s = timeout_s
        self._adapters = 0
        self._active = 0
        self._since = 0.0
        self.busy_s = 0.0
        self.tokens = 0

    async def generate(self, ids: Sequence[int], limit: int) -> Generated:
        """Raises TrainingFailed `vllm` when the server refuses or is gone."""
        body = {
            "model": self.model,
            "prompt": list(ids),
            "max_tokens": limit,
            "temperature": self._sampling.temperature,
            "top_p": self._sampling.top_p,
            "logprobs": 0,
            "return_token_ids": True,
        }
        self._enter()
        try:
            reply: Any = await egress.post_json(f"{self._url}/completions", body, {}, self._timeout_s)
            choice = reply["choices"][0]
            made = [int(token) for token in choice["token_ids"]]
            logprobs = [float(each) for each in choice["logprobs"]["token_logprobs"]]
        except (WorkerFault, TimeoutError, KeyError, IndexError, TypeError, ValueError) as error:
            raise TrainingFailed("vllm", f"the vLLM server did not generate: {_said(error)}") from error
        finally:
            self._leave()
        self.tokens += len(made)
        return Generated(made, logprobs)

    async def load_adapter(self, name: str, folder: Path) -> None:
        """Make the server read an adapter and generate with it from now on; the one before is let go.

        Each needs a folder and a name of its own: vLLM keeps cached prefixes by name. Raises TrainingFailed
        `vllm` when the server refuses.
        """
        before, known = self.model, self._adapters
        try:
            body = {"lora_name": name, "lora_path": str(folder)}
            await egress.post_text(f"{self._url}/load_lora_adapter", body, {}, self._timeout_s)
            self.model, self._adapters = name, known + 1
            if known:
                await egress.post_text(f"{self._url}/unload_lora_adapter", {"lora_name": before}, {}, self._timeout_s)
        except (WorkerFault, TimeoutError) as error:
            raise TrainingFailed("vllm", f"the vLLM server did not take the adapter: {_said(error)}") from error

    def _enter(self) -> None:
        if self._active == 0:
            self._since = time.perf_counter()
        self._active += 1

    def _leave(self) -> None:
        self._active -= 1
        if self._active == 0:
            self.busy_s += time.perf_counter() - self._since


def _said(error: Exception) -> str:
    return (f"{error}" if isinstance(error, WorkerFault) else f"{type(error).__name__} {error}")[:300]


def _settle(row: _Row) -> None:
    if not row.done.done():
        row.done.set_result(Generated(row.made))


def _fail(row: _Row, error: Exception) -> None:
    if row.done.done():
        return
    if "out of memory" in str(error).lower():
        failure = TrainingFailed(
            "out_of_memory",
            "not enough memory to generate: lower rollouts.group, rollouts.prompts or model.turn_tokens",
        )
    elif isinstance(error, TrainingFailed | WorkerFault):
        row.done.set_exception(error)
        return
    else:
        failure = TrainingFailed("generation_failed", f"generation failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    row.done.set_exception(failure)


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    configured = getattr(model.generation_config, "eos_token_id", None)
    known = configured if isinstance(configured, list) else [] if configured is None else [configured]
    return [*known, tokenizer.eos_token_id]

"""Where the learning model's turns come from: one contract, three backends.

`generate(ids)` continues a token sequence and returns when that one sequence has ended; sequences do not
wait for each other. With transformers a row is handed over the moment it ends. Every few tokens the batch
is broken off if rows wait that fit in, or if half of its own have ended: what is unfinished goes on in the
next batch together with what waits, and keeps its keys and values, so that nothing is computed twice.
(Measured by bench/rollouts.py. Models with other caches, sliding windows for one, compute what they had anew,
and are broken off only when as many rows wait as still run.)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pool_registry import egress
from pool_registry.errors import WorkerFault
from trainer.errors import TrainingFailed

GATHER_S = 0.002  # what becomes ready at nearly the same time shares a batch from its start
LEAST_STEPS = 8  # tokens a row that a batch makes before it is broken off: starting one costs about two of them


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
    """A sequence on its way: its prompt, what it has so far, and who waits for it.

    `past` holds keys and values, by layer, of all its tokens but the last; None where they are not known.
    """

    prompt: list[int]
    limit: int
    done: asyncio.Future[Generated]
    made: list[int] = field(default_factory=list)
    released: bool = False
    past: list[tuple[Any, Any]] | None = None

    @property
    def ids(self) -> list[int]:
        return self.prompt + self.made


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
            ready = [row for row in self._waiting if not row.done.done()]  # without those whose episode was cut short
            batch, self._waiting = ready[: self._max_batch], ready[self._max_batch :]
            if not batch:
                return
            try:
                await loop.run_in_executor(self._thread, self._generate, batch, loop)
            except Exception as error:  # noqa: BLE001  every row must hear of it
                for row in [*batch, *self._waiting]:
                    _fail(row, error)
                self._waiting.clear()
                return
            self.batches += 1
            await asyncio.sleep(0)  # rows that were released are on their way to their episodes
            self._waiting = [row for row in batch if not row.released] + self._waiting

    def _generate(self, batch: list[_Row], loop: asyncio.AbstractEventLoop) -> None:
        """One call of the model's own generate(). Runs in the thread."""
        import torch
        from transformers import StoppingCriteriaList

        started = time.perf_counter()  # here, not in the event loop: that may stand still between two steps
        device = next(self._model.parameters()).device
        self._tokenizer.padding_side = "left"
        rows = [{"input_ids": row.ids} for row in batch]
        padded = self._tokenizer.pad(rows, return_tensors="pt", padding=True).to(device)
        sampling = self._sampling
        how: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            how = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                past = self._past(batch)
                watch = _Watch(self, batch, loop, resumable=past is not None)
                self._model.generate(
                    **padded,
                    **how,
                    past_key_values=past,
                    max_new_tokens=max(row.limit - len(row.made) for row in batch),
                    pad_token_id=self._tokenizer.pad_token_id,
                    eos_token_id=sorted(self._ends),
                    stopping_criteria=StoppingCriteriaList([watch]),
                    use_cache=True,
                )
                if past is not None:
                    _keep_past(batch, past)
        finally:
            self._model.train(was_training)
            self.busy_s += time.perf_counter() - started

    def _past(self, batch: list[_Row]) -> Any:
        """A cache with all tokens of the batch but the last of each row, which `generate` goes on from. None for
        models that keep anything but plain keys and values: their rows are computed anew in every batch.
        """
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        layers = DynamicCache(config=self._model.config).layers
        if any(type(layer) is not DynamicLayer for layer in layers) or any(len(row.ids) < 2 for row in batch):
            for row in batch:
                row.past = None
            return None
        fresh: dict[tuple[int, ...], list[_Row]] = {}  # a group's episodes begin with the same prompt
        for row in batch:
            if row.past is None:
                fresh.setdefault(tuple(row.ids[:-1]), []).append(row)
        if fresh:
            self._read(fresh)
        return _joined(batch)

    def _read(self, fresh: dict[tuple[int, ...], list[_Row]]) -> None:
        """Compute keys and values of new rows. Padded on the right: no token sees what comes after it."""
        import torch

        width = max(map(len, fresh))
        pad = self._tokenizer.pad_token_id
        ids = torch.tensor([[*each, *[pad] * (width - len(each))] for each in fresh])
        device = next(self._model.parameters()).device
        made = self._model(input_ids=ids.to(device), use_cache=True, logits_to_keep=1).past_key_values
        for index, (read, rows) in enumerate(fresh.items()):
            for row in rows:
                row.past = [
                    (each.keys[index, :, : len(read)], each.values[index, :, : len(read)]) for each in made.layers
                ]

    def joinable(self, still: int) -> int:
        """How many rows wait for which a batch with `still` unfinished ones has a place."""
        return min(len(self._waiting), self._max_batch - still)

    def ends(self, token: int) -> bool:
        return token in self._ends


class _Watch:
    """Looks at every new token: hands over rows that ended, and breaks the batch off when it pays."""

    def __init__(
        self, owner: TransformersGenerator, batch: list[_Row], loop: asyncio.AbstractEventLoop, resumable: bool
    ) -> None:
        self._owner, self._batch, self._loop, self._resumable = owner, batch, loop, resumable
        self._open = set(range(len(batch)))
        self._steps = 0
        self._broken_off = False

    def __call__(self, ids: Any, _scores: Any, **_: Any) -> Any:
        import torch

        if self._broken_off:  # on some devices transformers asks once more; that token does not count
            return torch.ones(len(self._batch), dtype=torch.bool, device=ids.device)
        newest = ids[:, -1].tolist()
        self._steps += 1
        for index in list(self._open):
            row = self._batch[index]
            row.made.append(newest[index])
            if self._owner.ends(newest[index]) or len(row.made) >= row.limit:
                self._open.discard(index)
                row.released = True
                self._owner.tokens += len(row.made)
                self._loop.call_soon_threadsafe(_settle, row)
        self._broken_off = self._pays()
        over = [self._broken_off or index not in self._open for index in range(len(self._batch))]
        return torch.tensor(over, dtype=torch.bool, device=ids.device)

    def _pays(self) -> bool:
        """Whether to break off: rows that have ended are computed on in vain, those that wait not at all."""
        still = len(self._open)
        if still == 0:
            return False
        waiting = self._owner.joinable(still)
        if not self._resumable:
            return waiting >= still
        return self._steps >= LEAST_STEPS and (waiting > 0 or 2 * still <= len(self._batch))


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
                for row in [*batch, *self._waiting]:
                    _fail(row, error)
                self._waiting.clear()
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


def _joined(batch: list[_Row]) -> Any:
    """One cache for all rows, padded on the left. The rows let go of their own part."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    width = max(len(row.ids) - 1 for row in batch)
    pasts = [row.past or [] for row in batch]
    for row in batch:
        row.past = None

    def stacked(parts: Iterable[Any]) -> Any:
        return torch.stack([pad(part, (0, 0, width - part.shape[1], 0)) for part in parts])

    cache = DynamicCache()
    for layer in range(len(pasts[0])):
        keys, values = zip(*(past.pop(0) for past in pasts), strict=True)  # let go of: the old ones can be freed
        cache.update(stacked(keys), stacked(values), layer)
    return cache


def _keep_past(batch: list[_Row], past: Any) -> None:
    """Give the rows that go on what the cache knows of them: everything but their last token."""
    for index, row in enumerate(batch):
        if not row.released:
            known = len(row.ids) - 1
            row.past = [(each.keys[index, :, -known:], each.values[index, :, -known:]) for each in past.layers]


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether there was not enough memory: CUDA and MPS say so in other words than torch on a CPU and the system."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in said or "allocate memory" in said


def _settle(row: _Row) -> None:
    if not row.done.done():
        row.done.set_result(Generated(row.made))


def _fail(row: _Row, error: Exception) -> None:
    if row.done.done():
        return
    if ran_out_of_memory(error):
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

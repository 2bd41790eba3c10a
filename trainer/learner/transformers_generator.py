"""Turns from a model in this process, through the model's own generate().

A row is handed over the moment it ends. Every few tokens the batch
is broken off if rows wait that fit in, or if half of its own have ended: what is unfinished goes on in the
next batch together with what waits, and keeps its keys and values, so that nothing is computed twice.
(Measured by bench/rollouts.py. Models with other caches, sliding windows for one, compute what they had anew,
and are broken off only when as many rows wait as still run.)
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainer.learner.generator import GATHER_S, BatchingGenerator, GeneratedTokens, SamplingParams, SequenceState

MIN_STEPS = 8  # tokens a row that a batch makes before it is broken off: starting one costs about two of them


class TransformersGenerator(BatchingGenerator):
    """Generates with a model in this process, in a thread, while the event loop runs workers."""

    def __init__(self, model: Any, tokenizer: Any, sampling: SamplingParams, max_batch: int = 256) -> None:
        super().__init__()
        self._model, self._tokenizer = model, tokenizer
        self._sampling, self._max_batch = sampling, max_batch
        self._ends = set(_list_end_tokens(model, tokenizer))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generate")
        self.batches = 0

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
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
                self._give_up(batch, error)
                return
            self.batches += 1
            await asyncio.sleep(0)  # rows that were released are on their way to their episodes
            self._waiting = [row for row in batch if not row.released] + self._waiting

    def _generate(self, batch: list[SequenceState], loop: asyncio.AbstractEventLoop) -> None:
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
                watch = _StopWatch(self, batch, loop, resumable=past is not None)
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
                    _save_caches(batch, past)
        finally:
            self._model.train(was_training)
            self.busy_s += time.perf_counter() - started

    def _past(self, batch: list[SequenceState]) -> Any:
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
        fresh: dict[tuple[int, ...], list[SequenceState]] = {}  # a group's episodes begin with the same prompt
        for row in batch:
            if row.past is None:
                fresh.setdefault(tuple(row.ids[:-1]), []).append(row)
        if fresh:
            self._read(fresh)
        return _join_caches(batch)

    def _read(self, fresh: dict[tuple[int, ...], list[SequenceState]]) -> None:
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


class _StopWatch:
    """Looks at every new token: hands over rows that ended, and breaks the batch off when it pays."""

    def __init__(
        self, owner: TransformersGenerator, batch: list[SequenceState], loop: asyncio.AbstractEventLoop, resumable: bool
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
        return self._steps >= MIN_STEPS and (waiting > 0 or 2 * still <= len(self._batch))


def _join_caches(batch: list[SequenceState]) -> Any:
    """One cache for all rows. The rows let go of their own part."""
    from trainer.learner.kv_cache import build_preallocated_cache

    width = max(len(row.ids) - 1 for row in batch)
    pasts = [row.past or [] for row in batch]
    for row in batch:
        row.past = None
    return build_preallocated_cache([[past[layer] for past in pasts] for layer in range(len(pasts[0]))], width)


def _save_caches(batch: list[SequenceState], past: Any) -> None:
    """Give the rows that go on what the cache knows of them: everything but their last token."""
    for index, row in enumerate(batch):
        if not row.released:
            known = len(row.ids) - 1
            row.past = [(each.keys[index, :, -known:], each.values[index, :, -known:]) for each in past.layers]


def _settle(row: SequenceState) -> None:
    if not row.done.done():
        row.done.set_result(GeneratedTokens(row.made))


def _list_end_tokens(model: Any, tokenizer: Any) -> list[int]:
    configured = getattr(model.generation_config, "eos_token_id", None)
    known = configured if isinstance(configured, list) else [] if configured is None else [configured]
    return [*known, tokenizer.eos_token_id]

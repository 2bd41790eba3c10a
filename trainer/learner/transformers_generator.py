"""Turns from a model in this process, through the model's own generate().

A sequence is returned the moment it ends. Every few tokens the batch is interrupted if waiting sequences fit in, or if
half of its own have ended: unfinished ones continue in the next batch together with the waiting ones, and keep their
keys and values, so that nothing is computed twice. (See bench/speed/rollouts.py. Models with other caches, such as
sliding windows, recompute their keys and values, and are interrupted only when as many sequences wait as still run.)
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pool_registry.load_once import LoadOnce
from trainer.learner.generator import GATHER_S, BatchingGenerator, GeneratedTokens, SamplingParams, SequenceState
from trainer.learner.held_tokens import list_end_tokens, open_compiler

if TYPE_CHECKING:
    from pool_registry.language_models.token_masks import TokenMasks

MIN_STEPS = 8  # tokens per sequence before a batch may be interrupted: starting one costs the time of about two


class TransformersGenerator(BatchingGenerator):
    """Generates with a model in this process, in a thread, while the event loop runs workers."""

    def __init__(self, model: Any, tokenizer: Any, sampling: SamplingParams, max_batch: int = 256) -> None:
        super().__init__()
        self._model, self._tokenizer = model, tokenizer
        self._sampling, self._max_batch = sampling, max_batch
        self._ends = set(list_end_tokens(model, tokenizer))
        self._compiler = LoadOnce(lambda: open_compiler(model, tokenizer, self._ends))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generate")
        self.batches = 0
        self._counted_at = 0.0

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            ready = [row for row in self._waiting if not row.done.done()]  # an episode may have been cancelled
            batch, self._waiting = ready[: self._max_batch], ready[self._max_batch :]
            if not batch:
                return
            try:
                await loop.run_in_executor(self._thread, self._generate, batch, loop)
            except Exception as error:  # noqa: BLE001  every waiting sequence must get it
                self._give_up(batch, error)
                return
            self.batches += 1
            await asyncio.sleep(0)  # episodes of released sequences run now and may ask for their next turn
            self._waiting = [row for row in batch if not row.released] + self._waiting

    def _generate(self, batch: list[SequenceState], loop: asyncio.AbstractEventLoop) -> None:
        """Call the model's own generate() once for a batch. Runs in the thread."""
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        self._counted_at = time.perf_counter()  # here, not in the event loop, which may be busy between two steps
        device = next(self._model.parameters()).device
        self._tokenizer.padding_side = "left"
        rows = [{"input_ids": row.ids} for row in batch]
        padded = self._tokenizer.pad(rows, return_tensors="pt", padding=True).to(device)
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                masks = self._make_masks(batch, padded["input_ids"].shape[1])
                past = self._build_cache(batch)
                watch = _BatchWatch(self, batch, loop, resumable=past is not None)
                self._model.generate(
                    **padded,
                    **_build_decoding(self._sampling),
                    logits_processor=LogitsProcessorList([masks, *self._list_draws(batch)]),
                    past_key_values=past,
                    max_new_tokens=max(row.limit - len(row.new_ids) for row in batch),
                    pad_token_id=self._tokenizer.pad_token_id,
                    eos_token_id=sorted(self._ends),
                    stopping_criteria=StoppingCriteriaList([watch]),
                    use_cache=True,
                )
                if past is not None:
                    _save_caches(batch, past)
        finally:
            self._model.train(was_training)
            self.count_time()

    def _make_masks(self, batch: list[SequenceState], width: int) -> TokenMasks:
        """What holds each row to its grammar, from where an earlier batch left it."""
        from pool_registry.language_models.token_masks import TokenMasks

        matchers = []
        for row in batch:
            matcher = self._compiler().make_matcher(row.grammar) if row.grammar is not None else None
            if matcher is not None:
                matcher.consume_tokens(row.new_ids)
            matchers.append(matcher)
        left = [row.limit - len(row.new_ids) for row in batch]
        return TokenMasks(matchers, self._ends, width, lambda row, made: made >= left[row])

    def _list_draws(self, batch: list[SequenceState]) -> list[Any]:
        """What draws tokens from the whole distribution, each row's by its own numbers; nothing where they are the
        likeliest, or cut off at top_p."""
        from pool_registry.language_models.token_draws import SeededNumbers, draw_with_numbers

        if not self._sampling.temperature or self._sampling.top_p < 1:
            return []
        for row in batch:
            if row.numbers is None:
                row.numbers = SeededNumbers(draw_seed() if row.seed is None else row.seed)
        return [draw_with_numbers(lambda: [row.numbers[len(row.new_ids)] for row in batch], self._sampling.temperature)]

    def count_time(self) -> None:
        """Add the time since it was last counted. Once a token: whoever gets a row reads a time that includes it."""
        now = time.perf_counter()
        self.busy_s += now - self._counted_at
        self._counted_at = now

    def _build_cache(self, batch: list[SequenceState]) -> Any:
        """Build the cache that `generate` continues from: all tokens of the batch but the last of each row.

        None for models that keep anything but plain keys and values: their rows are recomputed in every batch.
        """
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        layers = DynamicCache(config=self._model.config).layers
        if any(type(layer) is not DynamicLayer for layer in layers) or any(len(row.ids) < 2 for row in batch):
            for row in batch:
                row.past = None
            return None
        fresh: dict[tuple[int, ...], list[SequenceState]] = {}  # the episodes of a group begin with the same prompt
        for row in batch:
            if row.past is None:
                fresh.setdefault(tuple(row.ids[:-1]), []).append(row)
        if fresh:
            self._prefill(fresh)
        return _join_caches(batch)

    def _prefill(self, fresh: dict[tuple[int, ...], list[SequenceState]]) -> None:
        """Compute the keys and values of new prompts, each once for all rows that share it."""
        import torch

        width = max(map(len, fresh))
        pad = self._tokenizer.pad_token_id
        # Padded on the right: causal attention never looks at what follows, so no mask is needed.
        ids = torch.tensor([[*prompt, *[pad] * (width - len(prompt))] for prompt in fresh])
        device = next(self._model.parameters()).device
        cache = self._model(input_ids=ids.to(device), use_cache=True, logits_to_keep=1).past_key_values
        for index, (prompt, rows) in enumerate(fresh.items()):
            for row in rows:
                row.past = [
                    (layer.keys[index, :, : len(prompt)], layer.values[index, :, : len(prompt)])
                    for layer in cache.layers
                ]

    def count_joinable(self, unfinished: int) -> int:
        """How many waiting rows fit into a batch with so many unfinished ones."""
        return min(len(self._waiting), self._max_batch - unfinished)

    def is_end(self, token: int) -> bool:
        return token in self._ends


class _BatchWatch:
    """A stopping criterion that releases rows as they end, and interrupts the batch when that saves time."""

    def __init__(
        self, owner: TransformersGenerator, batch: list[SequenceState], loop: asyncio.AbstractEventLoop, resumable: bool
    ) -> None:
        self._owner, self._batch, self._loop, self._resumable = owner, batch, loop, resumable
        self._open = set(range(len(batch)))
        self._steps = 0
        self._interrupted = False

    def __call__(self, ids: Any, _scores: Any, **_: Any) -> Any:
        import torch

        if self._interrupted:  # on some devices transformers makes one more token, which does not count
            return torch.ones(len(self._batch), dtype=torch.bool, device=ids.device)
        newest = ids[:, -1].tolist()
        self._steps += 1
        self._owner.count_time()
        for index in list(self._open):
            row = self._batch[index]
            row.new_ids.append(newest[index])
            if self._owner.is_end(newest[index]) or len(row.new_ids) >= row.limit:
                self._open.discard(index)
                row.released = True
                self._owner.tokens += len(row.new_ids)
                self._loop.call_soon_threadsafe(_settle, row)
        self._interrupted = self._pays_to_interrupt()
        over = [self._interrupted or index not in self._open for index in range(len(self._batch))]
        return torch.tensor(over, dtype=torch.bool, device=ids.device)

    def _pays_to_interrupt(self) -> bool:
        """Whether to interrupt: rows that have ended are still computed in vain, while waiting rows stand still."""
        unfinished = len(self._open)
        if unfinished == 0:
            return False
        waiting = self._owner.count_joinable(unfinished)
        if not self._resumable:
            return waiting >= unfinished
        return self._steps >= MIN_STEPS and (waiting > 0 or 2 * unfinished <= len(self._batch))


def _build_decoding(sampling: SamplingParams) -> dict[str, Any]:
    """Build the arguments of `generate` that say how tokens are chosen. Without them a logits processor draws."""
    if not sampling.temperature or sampling.top_p >= 1:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}


def draw_seed() -> int:
    """Any seed, by torch's own source, which training seeds."""
    import torch

    return int(torch.randint(2**62, ()))


def _join_caches(batch: list[SequenceState]) -> Any:
    """Join the rows' keys and values into one cache. The rows give up their own, so that they exist only once."""
    from pool_registry.language_models.kv_cache import build_preallocated_cache

    width = max(len(row.ids) - 1 for row in batch)
    pasts = [row.past or [] for row in batch]
    for row in batch:
        row.past = None
    return build_preallocated_cache([[past[layer] for past in pasts] for layer in range(len(pasts[0]))], width)


def _save_caches(batch: list[SequenceState], past: Any) -> None:
    """Store the cached keys and values in the rows that continue: those of all tokens but the last."""
    for index, row in enumerate(batch):
        if not row.released:
            cached = len(row.ids) - 1  # the newest token was sampled, but has not gone through the model yet
            row.past = [(layer.keys[index, :, -cached:], layer.values[index, :, -cached:]) for layer in past.layers]


def _settle(row: SequenceState) -> None:
    if not row.done.done():
        row.done.set_result(GeneratedTokens(row.new_ids))

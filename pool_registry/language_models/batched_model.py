"""Transformers checkpoints in memory: loaded once, shared, run in batches.

Several workers share one set of weights, and adapters of one base share that base (lora_adapters.py). Requests that
arrive while a batch runs are generated together in the next one, those with the same adapter and sampling; each may
have a grammar of its own (token_masks.py).
"""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pool_registry.actions import Usage
from pool_registry.errors import WorkerFault
from pool_registry.language_models.auto_classes import LOADING, import_auto_classes
from pool_registry.language_models.completion import Grammar, join_tool_messages
from pool_registry.language_models.lora_adapters import Adapters
from pool_registry.language_models.model_files import pick_device, pick_dtype
from pool_registry.language_models.prefix_cache import PrefixCache
from pool_registry.load_once import LoadOnce

if TYPE_CHECKING:
    from llguidance import LLMatcher

    from pool_registry.language_models.token_masks import GrammarCompiler, TokenMasks

MAX_BATCH = 16
END_S = 20.0  # for a prompt that is being read when the process ends


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to generate. Temperature 0 is greedy. With a seed the tokens depend on the prompt and the seed alone,
    whatever else is in the batch (but for rounding), and are drawn from the whole distribution."""

    temperature: float = 0.0
    seed: int | None = None

    def fits(self, other: Sampling) -> bool:
        """Whether requests of both can share a batch."""
        return self.temperature == other.temperature and (self.seed is None) == (other.seed is None)


@dataclass(slots=True, eq=False)
class QueuedPrompt:
    """One prompt on its way through the batcher. `adapter` is the folder of the one to generate with, `matcher` holds
    the reply to its grammar."""

    ids: list[int]
    max_tokens: int
    sampling: Sampling
    adapter: Path | None
    finish: Callable[[str | BaseException, int], None]
    matcher: LLMatcher | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def fits(self, other: QueuedPrompt) -> bool:
        """Whether both can be in one batch."""
        return self.adapter == other.adapter and self.sampling.fits(other.sampling)


class LoadedModel:
    """A checkpoint in memory with one thread that generates, and that alone touches the weights: adapters are
    loaded, switched and forgotten between two batches. Get it from `open_model`."""

    def __init__(self, folder: Path, device: str) -> None:
        causal_model, auto_tokenizer = import_auto_classes("AutoModelForCausalLM", "AutoTokenizer")
        from pool_registry.language_models.decode_attention import speed_up_on_cpu  # imports torch

        self.device = pick_device(device)
        self.tokenizer = auto_tokenizer.from_pretrained(
            folder, local_files_only=True, padding_side="left", trust_remote_code=False
        )
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        with LOADING:
            self.model = causal_model.from_pretrained(
                folder,
                dtype=pick_dtype(self.device),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
        self.model.to(self.device).eval()
        speed_up_on_cpu(self.model)
        self.adapters = Adapters(self.model, folder=folder)
        self.prefixes = PrefixCache(self.model)
        self.ends = _end_tokens(self.model, self.tokenizer)
        self.context = int(getattr(self.model.config, "max_position_embeddings", 2048))
        self.compiler = LoadOnce(self._make_compiler)
        self._requests: queue.SimpleQueue[QueuedPrompt | None] = queue.SimpleQueue()
        self.start()

    def start(self) -> None:
        """Start the thread, and register its end at exit."""
        self._thread = threading.Thread(target=self._work, name="generate", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def _end(self) -> None:
        """Let the batch in flight end before the interpreter does: a thread that is inside torch then takes the
        whole process down with an abort, after its work was done."""
        self._requests.put(None)
        self._thread.join(END_S)

    async def generate(
        self,
        messages: Sequence[dict[str, str]],
        max_tokens: int,
        sampling: Sampling,
        tools: Sequence[Any] | None = None,
        adapter: Path | None = None,
        grammar: Grammar | None = None,
    ) -> tuple[str, Usage]:
        """Generate the reply to a chat with this adapter, held to this grammar; return it with its usage. A reply that
        reaches the limit before its grammar ends is closed as shortly as the grammar lets it.

        Raises WorkerFault: `context_overflow`, `no_grammar` and `bad_grammar`, or why the adapter cannot be used.
        """
        ids = self._encode(messages, tools)
        if len(ids) + max_tokens > self.context:
            raise WorkerFault(
                "context_overflow",
                f"the prompt has {len(ids):,} tokens; with {max_tokens} for the reply it exceeds the model's "
                f"context of {self.context:,}. Show it fewer or shorter outputs",
            )
        matcher = await asyncio.to_thread(self._make_matcher, grammar) if grammar is not None else None
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[tuple[str, int]] = loop.create_future()

        def finish(text: str | BaseException, count: int) -> None:
            with suppress(RuntimeError):  # the caller's loop is closed
                loop.call_soon_threadsafe(_settle, reply, text, count)

        request = QueuedPrompt(ids, max_tokens, sampling, adapter, finish, matcher)
        self._requests.put(request)
        try:
            text, count = await reply
        finally:
            request.cancelled.set()
        return text, Usage(len(ids), count)

    def _make_matcher(self, grammar: Grammar) -> LLMatcher:
        return self.compiler().make_matcher(grammar)

    def _make_compiler(self) -> GrammarCompiler:
        from pool_registry.language_models.token_masks import GrammarCompiler, read_tokenizer

        return GrammarCompiler(read_tokenizer(self.tokenizer, int(self.model.config.vocab_size), self.ends))

    def _encode(self, messages: Sequence[dict[str, str]], tools: Sequence[Any] | None) -> list[int]:
        template = self.tokenizer.chat_template or ""
        extra = {"tools": list(tools)} if tools and "tools" in template else {}
        chat = list(messages) if "tools" in template else join_tool_messages(messages)
        text = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, **extra)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _work(self) -> None:
        """Generate the waiting requests that fit one batch, keep the rest for the next; None ends the thread."""
        aside: list[QueuedPrompt] = []
        while True:
            come = [] if aside else [self._requests.get()]
            while not self._requests.empty():
                come.append(self._requests.get())
            if None in come:
                return
            waiting = [request for request in (*aside, *come) if request and not request.cancelled.is_set()]
            batch = [request for request in waiting if request.fits(waiting[0])][:MAX_BATCH]
            aside = [request for request in waiting if request not in batch]
            if batch:
                self._generate(batch)

    def _generate(self, batch: list[QueuedPrompt]) -> None:
        try:
            self.adapters.use(batch[0].adapter)
            texts = self._texts(batch)
        except Exception as error:  # noqa: BLE001  out of memory and the like: every request must hear of it
            expected = isinstance(error, WorkerFault)
            fault = error if expected else WorkerFault("generation_failed", f"{type(error).__name__}: {error}")
            for request in batch:
                request.finish(fault, 0)
            return
        for request, (text, count) in zip(batch, texts, strict=True):
            request.finish(text, count)

    def _texts(self, batch: list[QueuedPrompt]) -> list[tuple[str, int]]:
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        from pool_registry.language_models.token_masks import TokenMasks

        padded = self.tokenizer.pad(
            {"input_ids": [request.ids for request in batch]}, return_tensors="pt", padding=True
        ).to(self.device)
        start = padded["input_ids"].shape[1]
        sampling = [request.sampling for request in batch]
        masks = TokenMasks([request.matcher for request in batch], self.ends, start, _is_over(batch))
        with torch.inference_mode():
            past = self.prefixes.start_batch([request.ids for request in batch], self.adapters.active)
            output = self.model.generate(
                **padded,
                past_key_values=past,
                **_sampling_arguments(sampling),
                **self.draft_arguments(batch, masks, past),
                logits_processor=LogitsProcessorList([masks, *_list_draws(sampling)]),  # a draw is among what is left
                eos_token_id=self.ends or None,
                max_new_tokens=max(request.max_tokens for request in batch),
                pad_token_id=self.tokenizer.pad_token_id,
                stopping_criteria=StoppingCriteriaList([_stop_when_done(batch, start)]),
            )
        new = output[:, start:].tolist()
        if past is not None:
            self._keep_prefixes(batch, new, past)
        return [self._decode(ids, request) for ids, request in zip(new, batch, strict=True)]

    def draft_arguments(self, batch: list[QueuedPrompt], masks: TokenMasks, past: Any) -> dict[str, Any]:
        """Build the arguments of `generate` that draft tokens: for a greedy reply that is alone in its batch, behind a
        cache that can be cut."""
        from pool_registry.language_models.drafted_decoding import decode_greedily

        if len(batch) > 1 or batch[0].sampling.temperature or past is None:
            return {}

        def guess_forced(ids: Any) -> list[int]:
            matcher = masks.find_matcher(ids)
            return [] if matcher is None else self.compiler().guess_forced(matcher)

        return {"custom_generate": decode_greedily, "guess_forced": guess_forced}

    def _keep_prefixes(self, batch: list[QueuedPrompt], new: list[list[int]], past: Any) -> None:
        """Keep what was computed for each request: the next turn of its conversation begins with it."""
        start = past.get_seq_length() - len(new[0]) + 1  # the newest token has not gone through the model
        for row, request in enumerate(batch):
            reply = _cut_after_end(new[row][:-1], self.ends)
            self.prefixes.save(request.ids, reply, self.adapters.active, past, row, start)

    def _decode(self, ids: list[int], request: QueuedPrompt) -> tuple[str, int]:
        kept = _cut_after_end(ids[: request.max_tokens], self.ends)
        ended = kept and kept[-1] in self.ends
        # What closes a reply is code's, not the model's: it costs nothing.
        closing = self.compiler().close(request.matcher, kept) if request.matcher is not None and not ended else []
        return self.tokenizer.decode(kept + closing, skip_special_tokens=True).strip(), len(kept)


def _sampling_arguments(batch: Sequence[Sampling]) -> dict[str, Any]:
    """Build the arguments of `generate` for requests that share a batch. With seeds, logits processors draw."""
    temperature = batch[0].temperature
    if temperature == 0 or batch[0].seed is not None:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": temperature}


def _list_draws(batch: Sequence[Sampling]) -> list[Callable[..., Any]]:
    """What draws the tokens of requests with seeds; nothing for requests without, or greedy ones."""
    from pool_registry.language_models.token_draws import draw_with_seeds

    seeds = [sampling.seed for sampling in batch if sampling.seed is not None]
    return [draw_with_seeds(seeds, batch[0].temperature)] if seeds and batch[0].temperature else []


def _is_over(batch: list[QueuedPrompt]) -> Callable[[int, int], bool]:
    """Build the function that says whether a row with so many new tokens gets no more: its limit is reached, or its
    caller has gone."""
    return lambda row, made: batch[row].cancelled.is_set() or made >= batch[row].max_tokens


def _stop_when_done(batch: list[QueuedPrompt], prompt_length: int) -> Callable[..., Any]:
    """Build a stopping criterion per row: its own token limit, or that its caller has gone."""
    is_over = _is_over(batch)

    def stop(ids: Any, _scores: Any, **_: Any) -> Any:
        import torch

        made = ids.shape[1] - prompt_length
        over = [is_over(row, made) for row in range(len(batch))]
        return torch.tensor(over, dtype=torch.bool, device=ids.device)

    return stop


def _cut_after_end(ids: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens of a reply up to the first that ends it."""
    return ids[: next((place + 1 for place, token in enumerate(ids) if token in ends), len(ids))]


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    end = model.generation_config.eos_token_id
    end = tokenizer.eos_token_id if end is None else end
    return [] if end is None else list(end) if isinstance(end, list) else [end]


def _settle(reply: asyncio.Future[tuple[str, int]], text: str | BaseException, count: int) -> None:
    if reply.done():
        return
    if isinstance(text, BaseException):
        reply.set_exception(text)
    else:
        reply.set_result((text, count))


_load_lock = threading.Lock()


def open_model(folder: Path, device: str) -> LoadedModel:
    """Return the checkpoint, loaded once per process and device."""
    with _load_lock:
        return _load(folder, pick_device(device))


@cache
def _load(folder: Path, device: str) -> LoadedModel:
    return LoadedModel(folder, device)

"""Grammars on a checkpoint in memory: before each token is drawn, those that the grammar refuses are masked.

Each row of a batch has a matcher of its own, or none. llguidance computes a row's mask as bits in about 50 us.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from llguidance import LLMatcher, LLTokenizer

from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import Grammar

MAX_COMPILED = 64  # grammars that a model keeps compiled
MAX_CLOSING = 1000  # tokens that closing a reply may take
MAX_REPEATS = 8  # of a token in a row, before others are tried
# Tried in this order where a reply that ran into its token limit is closed: what ends a value, else what begins one.
CLOSERS = ('"', "}", "]", ")", "\n", "0")


def read_tokenizer(tokenizer: Any, vocabulary: int, ends: Collection[int]) -> LLTokenizer:
    """A tokenizer of transformers as llguidance's; `ends` are the tokens that end a reply. Takes up to a second.

    Raises WorkerFault `no_grammar` for a kind of tokenizer that llguidance cannot read.
    """
    from llguidance.hf import from_tokenizer

    try:
        return from_tokenizer(tokenizer, n_vocab=max(vocabulary, len(tokenizer)), eos_token=list(ends))
    except ValueError as error:
        raise WorkerFault("no_grammar", f"this model's tokenizer takes no grammar: {error}") from error


class GrammarCompiler:
    """Compiles grammars for one tokenizer, and keeps the newest."""

    def __init__(self, tokenizer: LLTokenizer) -> None:
        self._tokenizer = tokenizer
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def make_matcher(self, grammar: Grammar) -> LLMatcher:
        """A matcher at the start of this grammar, for one reply. Raises WorkerFault `bad_grammar`."""
        with self._lock:
            compiled = self._compiled.pop(grammar.lark, None) or self._compile(grammar)
            self._compiled[grammar.lark] = compiled
            if len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
            return compiled.deep_copy()

    def close(self, matcher: LLMatcher, ids: list[int]) -> list[int]:
        """The tokens of a short ending for the reply `ids`, which was cut off: with them it follows its grammar."""
        matcher.reset()
        matcher.consume_tokens(ids)
        closing: list[int] = []
        stuck: set[int] = set()
        while not matcher.is_accepting() and not matcher.is_stopped() and len(closing) < MAX_CLOSING:
            forced = matcher.compute_ff_tokens()
            tokens = forced or [self._choose_closer(matcher, stuck)]
            if not matcher.consume_tokens(tokens):
                break
            closing += tokens
            stuck = set() if forced else self._list_stuck(closing, stuck)
        return closing

    def guess_forced(self, matcher: LLMatcher) -> list[int]:
        """Tokens of the text that has to follow. A guess: the text may be written in other tokens too."""
        return list(self._tokenizer.tokenize_bytes(matcher.compute_ff_bytes()))

    def _compile(self, grammar: Grammar) -> LLMatcher:
        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar.lark), log_level=0)
        if matcher.is_error():
            raise WorkerFault("bad_grammar", f"the grammar cannot be used: {matcher.get_error()[:300]}")
        return matcher

    def _list_stuck(self, closing: Sequence[int], stuck: set[int]) -> set[int]:
        """The tokens that have not led on: one may be repeated a few times, in a text that waits for another letter
        (the @ of an address) for ever. Behind the end of a text, and behind what was forced, all are free again."""
        newest = closing[-1]
        if [newest] == self._tokenizer.tokenize_str('"'):
            return set()
        repeats = len(closing) >= MAX_REPEATS and set(closing[-MAX_REPEATS:]) == {newest}
        return {*stuck, newest} if stuck or repeats else stuck

    def _choose_closer(self, matcher: LLMatcher, stuck: Collection[int]) -> int:
        for text in CLOSERS:
            tokens = self._tokenizer.tokenize_str(text)
            if len(tokens) == 1 and tokens[0] not in stuck and matcher.validate_tokens(tokens) == 1:
                return tokens[0]
        allowed: list[int] = _unpack(matcher.compute_bitmask()).nonzero()[0].tolist()
        free = [token for token in allowed if token not in stuck]
        return min(free or allowed, key=lambda token: (len(self._tokenizer.decode_bytes([token])), token))


class TokenMasks:
    """A logits processor of transformers: each row's logits of refused tokens become -inf. Must come before any draw.

    A matcher of None leaves its row as it is. `is_over` says of a row and its number of new tokens whether it gets no
    more of them: transformers then pads it.
    """

    def __init__(
        self,
        matchers: Sequence[LLMatcher | None],
        ends: Collection[int],
        prompt_length: int,
        is_over: Callable[[int, int], bool],
    ) -> None:
        self._open = {row: matcher for row, matcher in enumerate(matchers) if matcher is not None}
        self._ends = frozenset(ends)
        self._prompt_length = prompt_length
        self._is_over = is_over
        self._made = 0  # new tokens that the matchers have read

    def __call__(self, ids: Any, logits: Any) -> Any:
        self._read(ids)
        if not self._open:
            return logits
        import numpy
        import torch

        rows, size = list(self._open), logits.shape[-1]
        bits = numpy.empty((len(rows), (size + 31) // 32 * 4), dtype=numpy.uint8)
        for place, matcher in enumerate(self._open.values()):
            matcher.unsafe_compute_mask_ptr(bits[place].ctypes.data, bits.shape[1])
        refused = torch.from_numpy(numpy.unpackbits(bits, axis=1, bitorder="little", count=size) == 0)
        refused = refused.to(logits.device)
        if len(rows) == logits.shape[0]:
            return logits.masked_fill(refused, float("-inf"))
        masked = logits.clone()
        masked[rows] = masked[rows].masked_fill(refused, float("-inf"))
        return masked

    def find_matcher(self, ids: Any) -> LLMatcher | None:
        """The first row's matcher behind all of the row's tokens; None where nothing holds the row any more."""
        self._read(ids)
        return self._open.get(0)

    def _read(self, ids: Any) -> None:
        """Read each row's newest token, once."""
        made = ids.shape[1] - self._prompt_length
        if made > self._made:
            self._made = made
            self._advance(ids[:, -1].tolist(), made)

    def _advance(self, newest: Sequence[int], made: int) -> None:
        """Have each row's matcher read its newest token; a row that has ended needs no mask any more."""
        for row, matcher in list(self._open.items()):
            if newest[row] in self._ends or self._is_over(row, made):
                del self._open[row]
            elif not matcher.consume_token(newest[row]):
                raise WorkerFault("bad_grammar", f"the grammar cannot go on: {matcher.get_error()[:300]}")


def _unpack(mask: bytes) -> Any:
    import numpy

    return numpy.unpackbits(numpy.frombuffer(mask, dtype=numpy.uint8), bitorder="little")

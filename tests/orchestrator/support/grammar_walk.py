"""Random texts that a grammar accepts: a walk over its matcher with a vocabulary of bytes."""

from __future__ import annotations

from random import Random

import numpy
from llguidance import LLTokenizer

from pool_registry.language_models.completion import Grammar
from pool_registry.language_models.token_masks import GrammarCompiler

BYTES = LLTokenizer("byte")
STRUCTURE = b'"}],:$0123456789'
compiler = GrammarCompiler(BYTES)


def walk(grammar: Grammar, random: Random, length: int = 300) -> str:
    """A text of about `length` bytes at most: cut off there and closed, as a model's reply is at its limit."""
    matcher = compiler.make_matcher(grammar)
    ids: list[int] = []
    while len(ids) < length:
        mask = numpy.frombuffer(matcher.compute_bitmask(), dtype=numpy.uint8)
        allowed = numpy.unpackbits(mask, bitorder="little").nonzero()[0].tolist()
        preferred = [byte for byte in allowed if byte < 128 and bytes([byte]) in STRUCTURE]
        token = random.choice(preferred if preferred and random.random() < 0.6 else allowed)
        if token == BYTES.eos_token:
            return bytes(ids).decode()
        assert matcher.consume_token(token), matcher.get_error()
        ids.append(token)
    closing = compiler.close(matcher, ids)
    assert matcher.is_accepting(), bytes(ids + closing)
    return bytes(ids + closing).decode()


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether a grammar accepts a whole text."""
    matcher = compiler.make_matcher(grammar)
    return matcher.try_consume_tokens(list(text.encode())) == len(text.encode()) and matcher.is_accepting()

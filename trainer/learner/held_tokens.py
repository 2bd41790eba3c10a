"""Tokens that were drawn under a grammar: their probabilities are those among what the grammar allowed.

A policy that is held to grammars is the model's distribution with the refused tokens taken out, in use as in training.
Its log-probabilities are therefore computed with the masks under which the tokens were drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pool_registry.language_models.completion import Grammar

if TYPE_CHECKING:
    import numpy

    from pool_registry.language_models.token_masks import GrammarCompiler


@dataclass(frozen=True, slots=True)
class HeldTokens:
    """The tokens `first` to `end` of a completion, which a grammar held. Its text begins at the token `turn`."""

    turn: int
    first: int
    end: int
    grammar: Grammar


HeldCompletions = Mapping[tuple[int, ...], Sequence[HeldTokens]]  # token ids of a completion -> what held them


def cut_held(held: Iterable[HeldTokens], length: int) -> list[HeldTokens]:
    """What held the first `length` tokens."""
    return [replace(part, end=min(part.end, length)) for part in held if part.first < length]


def open_compiler(model: Any, tokenizer: Any, ends: Iterable[int]) -> GrammarCompiler:
    """What compiles grammars for a model that learns. Raises WorkerFault `no_grammar`."""
    from pool_registry.language_models.token_masks import GrammarCompiler, read_tokenizer

    return GrammarCompiler(read_tokenizer(tokenizer, int(model.config.get_text_config().vocab_size), list(ends)))


def list_end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a turn."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ends = configured if isinstance(configured, list) else [] if configured is None else [configured]
    return [*ends, tokenizer.eos_token_id]


def pack_masks(
    compiler: GrammarCompiler, ids: Sequence[int], held: Iterable[HeldTokens], vocabulary: int
) -> numpy.ndarray:
    """The tokens that were allowed at each place of a completion, as bits [tokens, vocabulary / 8], lowest bit first.
    Where no grammar held the model all bits are set."""
    import numpy

    width = (vocabulary + 7) // 8
    masks = numpy.full((len(ids), width), 255, dtype=numpy.uint8)
    for part in held:
        matcher = compiler.make_matcher(part.grammar)
        matcher.consume_tokens(list(ids[part.turn : part.first]))
        for place in range(part.first, part.end):
            masks[place] = numpy.frombuffer(matcher.compute_bitmask(), dtype=numpy.uint8)[:width]
            matcher.consume_token(ids[place])
    return masks

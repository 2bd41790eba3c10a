"""Greedy decoding that writes several tokens in one pass of the model, where they can be guessed.

Two guesses are drafted: the tokens that the reply's grammar leaves no choice about, and, where the newest tokens stood
in the text before, what followed them there (prompt lookup decoding, Saxena 2023). One pass checks the whole draft, at
hardly more than the cost of one token on a machine that waits for its memory. What comes out is what greedy decoding
writes, but for ties that rounding breaks. transformers looks up too (`prompt_lookup_num_tokens`), but neither behind
keys and values that are known before it begins nor in a grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

MAX_LOOKED_UP = 8  # tokens; a longer draft costs more time where it is wrong than it saves where it is right
REPEATED = range(3, 1, -1)  # so many of the newest tokens must stand in the text before; one alone says too little


def decode_greedily(
    model: Any,
    input_ids: Any,
    logits_processor: Any,
    stopping_criteria: Any,
    guess_forced: Callable[[Any], list[int]],
    **model_kwargs: Any,
) -> Any:
    """Decode one row [1, tokens] for `generate(custom_generate=...)`; return it with its new tokens.

    `guess_forced` takes the row so far and returns tokens that its grammar leaves no choice about. `past_key_values`
    are plain keys and values of the row's first tokens, and afterwards of all but the newest.
    """
    import torch

    past = model_kwargs["past_key_values"]
    ids, is_over = input_ids, False
    while not is_over:
        draft = torch.tensor([draft_tokens(ids[0].tolist(), guess_forced(ids))], dtype=ids.dtype, device=ids.device)
        unread, size = torch.cat([ids, draft], dim=1)[:, past.get_seq_length() :], draft.shape[1]
        logits = model(input_ids=unread, past_key_values=past, use_cache=True, logits_to_keep=size + 1).logits.float()
        for place in range(size + 1):
            token = logits_processor(ids, logits[:, place]).argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, token], dim=1)
            is_over = bool(stopping_criteria(ids, None).all())
            if is_over or place == size or token != draft[:, place]:
                break
        past.crop(ids.shape[1] - 1 - past.get_seq_length())
    return ids


def draft_tokens(tokens: Sequence[int], forced: Sequence[int]) -> list[int]:
    """Guess what follows: the forced tokens, and what followed the last place where the newest ones stood before."""
    return [*forced, *look_up([*tokens, *forced])]


def look_up(tokens: Sequence[int]) -> list[int]:
    """What followed the last place where the newest tokens stood before, MAX_LOOKED_UP at most; the place where most
    of them did. Nothing when their last pair is new."""
    for count in REPEATED:
        newest = tokens[-count:]
        for end in range(len(tokens) - 1, count - 1, -1):
            if tokens[end - 1] == newest[-1] and tokens[end - count : end] == newest:
                return list(tokens[end : end + MAX_LOOKED_UP])
    return []

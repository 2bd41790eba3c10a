"""Keys and values of recent prompts: what two prompts have in common at their beginning is computed once.

Queries over one pool open with the same listing of its workers, and the next turn of a conversation opens with all that
went before. Only the tokens behind the longest beginning that is known go through the model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pool_registry.language_models.kv_cache import KeysAndValues

MAX_BYTES = 400_000_000  # some 30 conversations of 600 tokens with a model of 135M parameters
MIN_SHARED = 16  # tokens; a shorter beginning is a chat template's, and not worth keeping a prompt for

Key = tuple[str | None, tuple[int, ...]]  # the adapter that computed them, and the tokens


class PrefixCache:
    """The keys and values of one model's latest token sequences. Not thread-safe: for the thread that generates.

    A row of a layer is a pair of tensors, each [heads, tokens, head size].
    """

    def __init__(self, model: Any, max_bytes: int = MAX_BYTES) -> None:
        self._model = model
        self._max_bytes = max_bytes
        self._rows: OrderedDict[Key, list[KeysAndValues]] = OrderedDict()  # the latest used last
        self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes

    def start_batch(self, prompts: Sequence[Sequence[int]], adapter: str | None) -> Any:
        """The cache that `generate` continues from: all tokens of every prompt but its last, padded on the left.

        None for models that keep anything but plain keys and values, and for a prompt of one token.
        """
        if not keeps_plain_keys(self._model) or any(len(prompt) < 2 for prompt in prompts):
            return None
        import torch

        from pool_registry.language_models.kv_cache import build_preallocated_cache

        with torch.inference_mode():
            rows = [self._read(tuple(prompt[:-1]), adapter) for prompt in prompts]
            width = max(map(len, prompts)) - 1
            return build_preallocated_cache([[row[layer] for row in rows] for layer in range(len(rows[0]))], width)

    def save(
        self, prompt: Sequence[int], reply: Sequence[int], adapter: str | None, past: Any, row: int, start: int
    ) -> None:
        """Keep what a batch's cache holds for a row, instead of its prompt alone. The reply begins at position `start`
        of the cache, the prompt ends there."""
        where = slice(start - len(prompt), start + len(reply))
        layers = [(layer.keys[row, :, where].clone(), layer.values[row, :, where].clone()) for layer in past.layers]
        self._remove((adapter, tuple(prompt[:-1])))
        self._add((adapter, (*prompt, *reply)), layers)

    def _read(self, tokens: tuple[int, ...], adapter: str | None) -> list[KeysAndValues]:
        """The keys and values of these tokens, of which those behind the longest known beginning are computed."""
        from transformers import DynamicCache

        key, length = self._find_beginning(tokens, adapter)
        beginning = [(keys[:, :length], values[:, :length]) for keys, values in self._rows[key]] if key else []
        if key:
            self._rows.move_to_end(key)
        if length == len(tokens):
            return beginning
        import torch

        cache = DynamicCache()
        for layer, (keys, values) in enumerate(beginning):
            cache.update(keys[None], values[None], layer)
        ids = torch.tensor([tokens[length:]], device=self._model.device)
        past = self._model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).past_key_values
        rows = [(layer.keys[0], layer.values[0]) for layer in past.layers]
        self._add((adapter, tokens), rows)
        return rows

    def _find_beginning(self, tokens: tuple[int, ...], adapter: str | None) -> tuple[Key | None, int]:
        """The kept sequence that begins like this one for longest, and for how many tokens."""
        lengths = {key: count_shared(tokens, key[1]) for key in self._rows if key[0] == adapter}
        best = max(lengths, key=lambda key: lengths[key], default=None)
        return (best, lengths[best]) if best is not None and lengths[best] >= MIN_SHARED else (None, 0)

    def _add(self, key: Key, rows: list[KeysAndValues]) -> None:
        self._remove(key)
        self._rows[key] = rows
        self._bytes += _count_bytes(rows)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._rows)))

    def _remove(self, key: Key) -> None:
        self._bytes -= _count_bytes(self._rows.pop(key, []))


def keeps_plain_keys(model: Any) -> bool:
    """Whether every layer keeps the keys and values of all tokens: no sliding window, no recurrent state."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)


def count_shared(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the equal tokens with which two sequences begin."""
    shorter = min(len(left), len(right))
    return next((place for place in range(shorter) if left[place] != right[place]), shorter)


def _count_bytes(rows: Sequence[KeysAndValues]) -> int:
    return sum(tensor.nbytes for pair in rows for tensor in pair)

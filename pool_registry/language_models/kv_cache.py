"""A cache of keys and values with spare room for new tokens.

transformers' DynamicCache concatenates: it copies everything that it holds for every new token, which took most of the
time of a small model. Here a new token is written behind the others, and only when the room is used up is all copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

SPARE_TOKENS = 64  # more than most batches generate before they are interrupted

KeysAndValues = tuple[torch.Tensor, torch.Tensor]  # of one row in one layer, each [heads, tokens, head size]


class PreallocatedLayer(DynamicLayer):  # type: ignore[misc]  # transformers has no types
    """One layer's cache. `keys` and `values` are views [rows, heads, tokens, head size] of the part in use."""

    def __init__(self, rows: Sequence[KeysAndValues], width: int) -> None:
        super().__init__()
        keys, values = zip(*rows, strict=True)
        self._key_buffer, self._value_buffer = _allocate(keys, width), _allocate(values, width)
        self.dtype, self.device, self.is_initialized = keys[0].dtype, keys[0].device, True
        self._set_length(width)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> KeysAndValues:
        """Append the states of new tokens [rows, heads, new tokens, head size]; return all keys and values."""
        old = self.get_seq_length()
        new = old + key_states.shape[-2]
        if new > self._key_buffer.shape[-2]:
            self._key_buffer, self._value_buffer = _grow(self._key_buffer, new), _grow(self._value_buffer, new)
        self._key_buffer[:, :, old:new] = key_states
        self._value_buffer[:, :, old:new] = value_states
        self._set_length(new)
        return self.keys, self.values

    def _set_length(self, width: int) -> None:
        # Views, not copies: DynamicLayer reads its length off `keys`.
        self.keys, self.values = self._key_buffer[:, :, :width], self._value_buffer[:, :, :width]


def build_preallocated_cache(layers: Sequence[Sequence[KeysAndValues]], width: int) -> DynamicCache:
    """Build one cache for all rows, each padded on the left to `width` tokens.

    `layers` holds, for every layer, the keys and values of every row.
    """
    cache = DynamicCache()
    cache.layers.extend(PreallocatedLayer(rows, width) for rows in layers)
    return cache


def _allocate(parts: Sequence[torch.Tensor], width: int) -> torch.Tensor:
    """Join rows [heads, tokens, head size] of different lengths, padded on the left, with spare tokens on the right."""
    heads, _, size = parts[0].shape
    buffer = parts[0].new_empty(len(parts), heads, width + SPARE_TOKENS, size)
    for row, part in zip(buffer, parts, strict=True):
        start = width - part.shape[1]
        # Zero, not uninitialized: masked positions get weight 0, but 0 x NaN would still be NaN.
        row[:, :start] = 0
        row[:, start:width] = part
    return buffer


def _grow(buffer: torch.Tensor, width: int) -> torch.Tensor:
    """Copy a buffer into one with room for `width` tokens and the spare ones."""
    larger = buffer.new_empty(*buffer.shape[:2], width + SPARE_TOKENS, buffer.shape[3])
    larger[:, :, : buffer.shape[2]] = buffer
    return larger

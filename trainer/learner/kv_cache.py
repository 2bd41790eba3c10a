"""A cache of keys and values with room for the tokens to come.

transformers' own DynamicCache copies everything it holds for every new token, which took most of the time of a small
model. Here a token is written behind the others; a copy is made when the room is used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

SPARE_TOKENS = 64  # tokens: more than most batches make before they are broken off

KeysAndValues = tuple[
    torch.Tensor, torch.Tensor
]  # keys and values of one row in one layer, each (heads, tokens, size of a head)


class PreallocatedLayer(DynamicLayer):  # type: ignore[misc]  # transformers has no types
    """`keys` and `values` are views of what is in use, (rows, heads, tokens, size of a head)."""

    def __init__(self, rows: Sequence[KeysAndValues], width: int) -> None:
        super().__init__()
        keys, values = zip(*rows, strict=True)
        self._key_room, self._value_room = _allocate(keys, width), _allocate(values, width)
        self.dtype, self.device, self.is_initialized = keys[0].dtype, keys[0].device, True
        self._show(width)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> KeysAndValues:
        old = self.get_seq_length()
        new = old + key_states.shape[-2]
        if new > self._key_room.shape[-2]:
            self._key_room, self._value_room = _grow(self._key_room, new), _grow(self._value_room, new)
        self._key_room[:, :, old:new] = key_states
        self._value_room[:, :, old:new] = value_states
        self._show(new)
        return self.keys, self.values

    def _show(self, width: int) -> None:
        self.keys, self.values = self._key_room[:, :, :width], self._value_room[:, :, :width]


def build_preallocated_cache(layers: Sequence[Sequence[KeysAndValues]], width: int) -> DynamicCache:
    """One cache for all rows, each padded on the left to `width` tokens; `layers` holds every row's part by layer."""
    cache = DynamicCache()
    cache.layers.extend(PreallocatedLayer(rows, width) for rows in layers)
    return cache


def _allocate(parts: Sequence[torch.Tensor], width: int) -> torch.Tensor:
    """The rows with room behind them. The padding is zero: what is masked still takes part in a product."""
    heads, _, size = parts[0].shape
    room = parts[0].new_empty(len(parts), heads, width + SPARE_TOKENS, size)
    for row, part in zip(room, parts, strict=True):
        start = width - part.shape[1]
        row[:, :start] = 0
        row[:, start:width] = part
    return room


def _grow(room: torch.Tensor, width: int) -> torch.Tensor:
    wider = room.new_empty(*room.shape[:2], width + SPARE_TOKENS, room.shape[3])
    wider[:, :, : room.shape[2]] = room
    return wider

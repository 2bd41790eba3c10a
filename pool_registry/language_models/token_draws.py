"""Draws of tokens, with one random number a row.

`torch.multinomial` makes a random number for each token of the vocabulary, which takes a small model a good part of the
time of a step. Here one number chooses a place in the cumulated probabilities: first a block of tokens, then a token in
it, so that few sums are made one after the other (`python bench/speed/cpu_decoding.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import torch
from torch.nn.functional import pad

BLOCK = 256  # tokens: about the root of a vocabulary
NUMBERS_AT_ONCE = 64  # making one takes as long as making so many
Processor = Callable[[Any, torch.Tensor], torch.Tensor]


class SeededNumbers:
    """The random numbers of one text, by the places of its tokens: they do not depend on the batches in which it is
    written. Made on the CPU: equal on every device."""

    def __init__(self, seed: int) -> None:
        self._source = torch.Generator().manual_seed(seed % 2**63)
        self._numbers: list[float] = []

    def __getitem__(self, place: int) -> float:
        while place >= len(self._numbers):
            self._numbers += torch.rand(NUMBERS_AT_ONCE, generator=self._source).tolist()
        return self._numbers[place]


def draw_with_seeds(seeds: Sequence[int], temperature: float) -> Processor:
    """Make a logits processor for texts that are written in one batch, each from its first token on."""
    numbers, places = [SeededNumbers(seed) for seed in seeds], count()

    def list_numbers() -> list[float]:
        place = next(places)
        return [row[place] for row in numbers]

    return draw_with_numbers(list_numbers, temperature)


def draw_with_numbers(list_numbers: Callable[[], Sequence[float]], temperature: float) -> Processor:
    """Make a logits processor that leaves one token of each row: greedy decoding then takes the draw. `list_numbers`
    gives a number in [0, 1) for each row, for every token anew."""

    def leave_one(_ids: Any, logits: torch.Tensor) -> torch.Tensor:
        numbers = torch.tensor(list_numbers(), device=logits.device)[:, None]
        chosen = choose_tokens(logits.float() / temperature, numbers)
        return torch.full_like(logits, float("-inf")).scatter_(1, chosen, 0.0)

    return leave_one


def choose_tokens(logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Choose a token of each row of `logits` [rows, vocabulary] by `numbers` [rows, 1] in [0, 1), uniform ones for
    draws from the softmax. Returns tokens [rows, 1]; never one whose logit is minus infinity."""
    probabilities = logits.softmax(-1)
    blocks = pad(probabilities, (0, -probabilities.shape[-1] % BLOCK)).view(len(logits), -1, BLOCK)
    block, rest = _choose_place(blocks.sum(-1), numbers.double())
    inside = blocks.take_along_dim(block[:, :, None], 1)[:, 0]
    place, _ = _choose_place(inside, rest)
    return block * BLOCK + place


def _choose_place(weights: torch.Tensor, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose a place of each row of `weights` [rows, places] by `numbers` [rows, 1]. Returns the places [rows, 1], and
    how far each number lies inside the weight of its place, in [0, 1)."""
    cumulated = weights.double().cumsum(-1)
    targets = numbers * cumulated[:, -1:]
    # The first place that lies above the target: one without weight does not rise above the one before it.
    places = torch.searchsorted(cumulated, targets, right=True)
    chosen = weights.double().gather(1, places)
    inside = (targets - (cumulated.gather(1, places) - chosen)) / chosen
    return places, inside.clamp(0.0, 1 - 2**-40)

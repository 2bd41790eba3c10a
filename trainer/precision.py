"""The precision in which a model computes while it learns."""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import Literal

from trainer.recipe_sections import ModelSettings

LEAST_SPEEDUP = 1.3  # of a product: casts, and what is no product, take a part of what is gained
ROWS, INPUTS, OUTPUTS = 512, 576, 1536  # of the product that is timed: a small model's, for a short row
ROUNDS = 3

log = logging.getLogger(__name__)


def choose_precision(settings: ModelSettings, gpu: bool) -> Literal["float32", "bfloat16"]:
    """What the recipe asks for; where that is `auto`, bfloat16 if the device multiplies it faster than float32."""
    if settings.precision != "auto":
        return settings.precision
    return "bfloat16" if multiplies_bfloat16_faster(gpu) else "float32"


def multiplies_bfloat16_faster(gpu: bool) -> bool:
    """Whether large products take less time in bfloat16: on GPUs that have it, and on a processor where a product shows
    it. Apple's GPUs learn in float32, whatever their processor is faster at."""
    import torch

    if gpu:
        return not torch.cuda.is_available() or torch.cuda.is_bf16_supported(including_emulation=False)
    return not torch.backends.mps.is_available() and measure_speedup() >= LEAST_SPEEDUP


@cache
def measure_speedup() -> float:
    """How many times faster this processor multiplies bfloat16 than float32, by a product of some milliseconds.

    The names of its instructions do not tell: with vector units for bfloat16 alone (avx512_bf16) one processor takes
    less than half of the time, and another one longer; where it is emulated it takes several times as long.
    """
    import torch

    kinds = (torch.float32, torch.bfloat16)
    factors = {kind: (torch.ones(ROWS, INPUTS, dtype=kind), torch.ones(OUTPUTS, INPUTS, dtype=kind)) for kind in kinds}
    seconds: dict[torch.dtype, list[float]] = {kind: [] for kind in kinds}
    for _ in range(1 + ROUNDS):  # in turn, so that another process's load is on both; the first round warms up
        for kind, (left, right) in factors.items():
            start = time.perf_counter()
            torch.nn.functional.linear(left, right)
            seconds[kind].append(time.perf_counter() - start)
    return min(seconds[torch.float32][1:]) / min(seconds[torch.bfloat16][1:])


def warn_of_slow_bfloat16(settings: ModelSettings) -> None:
    """Say so in the log where a recipe asks a processor for bfloat16 and that costs time."""
    import torch

    on_processor = not (torch.cuda.is_available() or torch.backends.mps.is_available())
    if settings.precision == "bfloat16" and on_processor and measure_speedup() < 1:
        log.warning(
            "this processor multiplies float32 faster than bfloat16: model.precision: auto makes a step shorter and "
            "takes twice the memory for the frozen weights"
        )

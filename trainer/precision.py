"""The precision in which a model computes while it learns."""

from __future__ import annotations

import logging
import platform
from typing import Literal

from trainer.recipe_sections import ModelSettings

log = logging.getLogger(__name__)


def choose_precision(settings: ModelSettings, gpu: bool) -> Literal["float32", "bfloat16"]:
    """What the recipe asks for; where that is `auto`, bfloat16 if the device multiplies it faster than float32."""
    if settings.precision != "auto":
        return settings.precision
    return "bfloat16" if multiplies_bfloat16_faster(gpu) else "float32"


def multiplies_bfloat16_faster(gpu: bool) -> bool:
    """Whether large products take less time in bfloat16: on GPUs that have it, and on x86 processors with matrix units
    for it (AMX). With vector units for it alone (avx512_bf16) they take longer, and longer still where it is emulated.
    """
    import torch

    if gpu:
        return not torch.cuda.is_available() or torch.cuda.is_bf16_supported(including_emulation=False)
    return platform.machine() == "x86_64" and torch.cpu._is_amx_tile_supported()  # noqa: SLF001


def warn_of_slow_bfloat16(settings: ModelSettings) -> None:
    """Say so in the log where a recipe asks a processor for bfloat16 and that costs time."""
    import torch

    slow = platform.machine() == "x86_64" and not torch.cuda.is_available() and not multiplies_bfloat16_faster(False)
    if settings.precision == "bfloat16" and slow:
        log.warning(
            "this processor multiplies float32 faster than bfloat16: model.precision: auto makes a step shorter and "
            "takes twice the memory for the frozen weights"
        )

"""Attention on a CPU for a few new tokens behind many that are known.

torch's fused kernel is made for long queries. For one new token in each of many rows two plain products are faster, in
which heads that share their keys are multiplied together: 16 rows of a small model are written 1.7 times as fast
(`python bench/speed/cpu_decoding.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from pool_registry.language_models.freed_memory import keep_freed_memory

NAME = "podium_decode"
FUSED = "sdpa"
MOST_NEW = 16  # new tokens a row; with more the fused kernel is the faster one


def speed_up_on_cpu(model: Any) -> None:
    """Let a model on a CPU attend this way, if it attends by torch's fused kernel, and keep the memory that it frees.
    Others stay as they are."""
    if model.device.type == "cpu":
        keep_freed_memory()
    if model.device.type != "cpu" or model.config._attn_implementation != FUSED:  # noqa: SLF001  there is no public one
        return
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attend as transformers' attention functions do.

    `query` is [rows, heads, new, size], `key` and `value` [rows, groups, tokens, size]: each group serves heads /
    groups neighbouring heads. The mask [rows, 1, new, tokens] is True where a token is seen; without one all are.
    Returns [rows, new, heads, size].
    """
    rows, heads, new, size = query.shape
    groups, tokens = key.shape[1:3]
    if dropout or new > min(MOST_NEW, tokens - 1) or not _is_plain(attention_mask, new, more):
        fused: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **more
        )
        return fused
    scaled = query * (size**-0.5 if scaling is None else scaling)
    # Keys times queries: in bfloat16 twice as fast as queries times transposed keys.
    scores = (key @ scaled.reshape(rows, groups, -1, size).transpose(2, 3)).transpose(2, 3)
    if attention_mask is not None:
        # Not minus infinity: a row that sees nothing, as padding does, would become NaN and spoil what follows it.
        hidden = ~attention_mask[:, :, None]
        scores = scores.reshape(rows, groups, -1, new, tokens).masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = scores.reshape(rows, groups, -1, tokens).softmax(-1, dtype=torch.float32).to(value.dtype)
    return (weights @ value).view(rows, heads, new, size).transpose(1, 2).contiguous(), None


def _is_plain(mask: torch.Tensor | None, new: int, more: dict[str, Any]) -> bool:
    """Whether nothing but the mask says which tokens are seen, and nothing adds to the scores."""
    seen = new == 1 if mask is None else mask.dtype == torch.bool and mask.shape[1] == 1
    return seen and all(more.get(name) is None for name in ("position_bias", "softcap", "s_aux"))

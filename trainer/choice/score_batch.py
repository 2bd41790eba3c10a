"""The predictor's logits for a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from orchestrator.choice.network import SuccessPredictor, join_segments
from trainer.choice.corpus import Corpus, is_fast_in_bfloat16
from trainer.choice.draw_pools import Batch


def score_batch(predictor: SuccessPredictor, corpus: Corpus, batch: Batch) -> Tensor:
    """The logits [rows] of a batch."""
    tokens, mask = join_segments(corpus.table, batch.segments)
    with torch.autocast(corpus.device.type, torch.bfloat16, enabled=is_fast_in_bfloat16(corpus.device)):
        logits: Tensor = predictor(tokens, mask, batch.logs, batch.cosines)
    return logits.float()

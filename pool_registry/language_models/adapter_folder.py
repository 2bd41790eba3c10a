"""Check the folder of a LoRA adapter before anything is loaded from it."""

from __future__ import annotations

import json
from pathlib import Path

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault

MAX_CONFIG_BYTES = 64_000_000  # an index of many shards is the largest
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_CODE = "megatron_config"  # with it, peft imports a module that the configuration names


def check_adapter(folder: Path) -> None:
    """Refuse an adapter that peft would read code for: pickled weights, or a module to import. Raises WorkerFault."""
    if (folder / "config.json").is_file() and not (folder / ADAPTER_CONFIG).is_file():
        raise WorkerFault("model_refused", f"{folder} is a whole model, no adapter: put it under model")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise WorkerFault("model_refused", f"{folder} has no {ADAPTER_WEIGHTS}; other formats can hold code")
    config = folder / ADAPTER_CONFIG
    if not config.is_file():
        raise WorkerFault("model_refused", f"{folder} has no adapter_config.json to go by")
    document = read_json(config)
    if isinstance(document, dict) and document.get(ADAPTER_CODE):
        sentence = f"{folder} wants other code to run ({ADAPTER_CODE} in adapter_config.json); that is not done here"
        raise WorkerFault("model_refused", sentence)


def read_base(folder: Path) -> str:
    """The base model that an adapter's configuration names; "" where it names none or cannot be read."""
    try:
        document = read_json(folder / ADAPTER_CONFIG)
    except WorkerFault:
        return ""
    base = document.get("base_model_name_or_path") if isinstance(document, dict) else None
    return base[:300] if isinstance(base, str) else ""


def read_json(path: Path) -> JsonValue:
    """The document in a configuration of a model. Raises WorkerFault where it is too large or no JSON."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise WorkerFault("model_refused", f"{path} is larger than a configuration can be")
        document: JsonValue = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise WorkerFault("model_refused", f"{path} is no JSON document: {str(error)[:120]}") from error
    return document

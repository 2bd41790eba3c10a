"""The encoder of the success predictor with a low-rank adapter of its own, kept in the files that PEFT reads.

Written without PEFT, so that a training needs torch and transformers alone. Weights stay in 32 bits while they learn;
files hold 16.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

PREFIX = "base_model.model."
HEAD_FILE, ADAPTER_FILE, CONFIG_FILE = "head.safetensors", "adapter_model.safetensors", "adapter_config.json"
TARGETS = r"encoder\.layer\.\d+\..*(query|key|value|dense)"


class AdaptedLinear(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A frozen linear layer plus a learnt product of two thin matrices."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, inputs: Tensor) -> Tensor:
        added: Tensor = nn.functional.linear(nn.functional.linear(inputs, self.lora_A), self.lora_B)
        return self.base(inputs) + added


def load_encoder(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the plain encoder of a folder."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    model = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True, trust_remote_code=False)
    return tokenizer, model.float().eval()


def merge_adapter(encoder: Any, folder: Path) -> Any:
    """Add the adapter of a folder to the weights of an encoder."""
    scale = _read_scale(folder)
    weights = load_file(folder / ADAPTER_FILE)
    with torch.no_grad():
        for name, down in weights.items():
            if name.endswith(".lora_A.weight"):
                up = weights[name.replace("lora_A", "lora_B")]
                layer = encoder.get_submodule(name.removeprefix(PREFIX).removesuffix(".lora_A.weight"))
                layer.weight += scale * (up.float() @ down.float()).to(layer.weight)
    return encoder


def _read_scale(folder: Path) -> float:
    config = json.loads((folder / CONFIG_FILE).read_text())
    return float(config["lora_alpha"]) / float(config["r"])


def adapt(encoder: Any, rank: int) -> Any:
    """Freeze an encoder and put an adapter on every linear layer of its blocks."""
    encoder.requires_grad_(False)
    for block in encoder.encoder.layer:
        for name, layer in list(block.named_modules()):
            if isinstance(layer, nn.Linear):
                parent, _, own = name.rpartition(".")
                setattr(block.get_submodule(parent) if parent else block, own, AdaptedLinear(layer, rank))
    return encoder


def load_adapter(encoder: Any, folder: Path) -> None:
    """Put saved weights into an adapted encoder, to go on from them."""
    scale = _read_scale(folder)
    weights = load_file(folder / ADAPTER_FILE)
    with torch.no_grad():
        for name, layer in encoder.named_modules():
            if isinstance(layer, AdaptedLinear):
                layer.lora_A.copy_(weights[f"{PREFIX}{name}.lora_A.weight"])
                layer.lora_B.copy_(scale * weights[f"{PREFIX}{name}.lora_B.weight"].float())


def save_predictor(folder: Path, predictor: Any, rank: int) -> None:
    """Write adapter and head as halves, and what PEFT needs to know."""
    folder.mkdir(parents=True, exist_ok=True)
    adapter = {
        f"{PREFIX}{name}.{part}.weight": getattr(layer, part).detach().half().cpu().contiguous()
        for name, layer in predictor.encoder.named_modules()
        if isinstance(layer, AdaptedLinear)
        for part in ("lora_A", "lora_B")
    }
    save_file(adapter, folder / ADAPTER_FILE, {"format": "pt"})
    head = {name: value.detach().half().cpu().contiguous() for name, value in predictor.head_state().items()}
    save_file(head, folder / HEAD_FILE, {"format": "pt"})
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": "sentence-transformers/all-MiniLM-L6-v2",
        "r": rank,
        "lora_alpha": rank,
        "target_modules": TARGETS,
        "bias": "none",
        "inference_mode": True,
    }
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")

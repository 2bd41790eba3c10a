"""Gives a checkpoint's LoRA adapter a higher rank without changing what it computes, so that it can learn more.

    python scripts/widen_adapter.py smollm2-reader --rank 32 --out FOLDER

The new rows of A are drawn as PEFT draws them, the new columns of B are zero, and alpha grows with the rank: B A and
alpha / rank stay what they were (arXiv 2106.09685, section 4.1). A recipe goes on from it with `model.start: FOLDER`.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.checkpoints import open_checkpoint, seal

if TYPE_CHECKING:
    import torch

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--seed", type=int, default=7, help="of the new rows")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    widen_checkpoint(options.checkpoint, options.rank, options.seed, options.out)


def widen_checkpoint(name: str, rank: int, seed: int, out: Path) -> None:
    """Write the checkpoint with a wider adapter to a folder. Raises UnknownOrchestrator when there is none like it."""
    from safetensors.torch import load_file, save_file

    folder, checkpoint = open_checkpoint(name)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    if rank <= config["r"]:
        raise SystemExit(f"{name} has rank {config['r']} already; --rank must be higher")
    shutil.copytree(folder, out, dirs_exist_ok=True)
    save_file(widen(load_file(folder / WEIGHTS), rank, seed), out / WEIGHTS, {"format": "pt"})
    wider = {**config, "r": rank, "lora_alpha": config["lora_alpha"] * rank / config["r"]}
    (out / CONFIG).write_text(json.dumps(wider, indent=1) + "\n", encoding="utf-8")
    seal(out, checkpoint)


def widen(weights: dict[str, torch.Tensor], rank: int, seed: int) -> dict[str, torch.Tensor]:
    """The same weights with A of shape (rank, inputs) and B of shape (outputs, rank)."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    wider = {}
    for name, weight in weights.items():
        if "lora_A" in name:
            missing, inputs = rank - weight.shape[0], weight.shape[1]
            rows = (2 * torch.rand(missing, inputs, generator=generator) - 1) / math.sqrt(inputs)
            wider[name] = torch.cat([weight, rows.to(weight.dtype)])
        else:
            columns = torch.zeros(weight.shape[0], rank - weight.shape[1], dtype=weight.dtype)
            wider[name] = torch.cat([weight, columns], dim=1)
    return wider


if __name__ == "__main__":
    main()

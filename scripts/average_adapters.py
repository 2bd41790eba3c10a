"""Averages the LoRA adapters of two checkpoints of which one was trained on from the other.

    python scripts/average_adapters.py CHECKPOINT OTHER --share 0.5 --out FOLDER [--queries-of-other]

Weights that went on learning something new forget a part of what they knew; on the way between the two lie some that
keep much of both (WiSE-FT, arXiv 2109.01903). A and B are averaged each on its own, which is near the average of their
products as long as the two lie near each other. The manifest is that of CHECKPOINT, and so are the queries by which
an orchestrator tells that it is out of its depth; where its lessons were of few kinds, take those of OTHER.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.checkpoints import open_checkpoint, seal
from orchestrator.out_of_depth.learnt_queries import FILE as LEARNT_QUERIES

if TYPE_CHECKING:
    import torch

WEIGHTS = "adapter_model.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("other")
    parser.add_argument("--share", type=float, default=0.5, help="of CHECKPOINT, from 0 to 1")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--queries-of-other", action="store_true", help="keep the queries that OTHER learnt from")
    options = parser.parse_args()
    average_checkpoints(options.checkpoint, options.other, options.share, options.out, options.queries_of_other)


def average_checkpoints(name: str, other: str, share: float, out: Path, queries_of_other: bool = False) -> None:
    """Write the average to a folder. Raises UnknownOrchestrator where there is no such checkpoint."""
    from safetensors.torch import load_file, save_file

    folder, checkpoint = open_checkpoint(name)
    other_folder, _ = open_checkpoint(other)
    averaged = average(load_file(folder / WEIGHTS), load_file(other_folder / WEIGHTS), share)
    shutil.copytree(folder, out, dirs_exist_ok=True)
    save_file(averaged, out / WEIGHTS, {"format": "pt"})
    if queries_of_other:
        shutil.copy(other_folder / LEARNT_QUERIES, out / LEARNT_QUERIES)
    seal(out, checkpoint)


def average(weights: dict[str, torch.Tensor], others: dict[str, torch.Tensor], share: float) -> dict[str, torch.Tensor]:
    """`share` of the first and the rest of the second. Raises SystemExit where they differ in names or shapes."""
    if not 0 <= share <= 1:
        raise SystemExit(f"--share is from 0 to 1, not {share}")
    shapes = {name: weight.shape for name, weight in weights.items()}
    if shapes != {name: weight.shape for name, weight in others.items()}:
        raise SystemExit("the two adapters differ in layers or in rank; widen the smaller one first")
    return {
        name: (share * weight.float() + (1 - share) * others[name].float()).to(weight.dtype)
        for name, weight in weights.items()
    }


if __name__ == "__main__":
    main()

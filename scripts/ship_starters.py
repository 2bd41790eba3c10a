"""Copies the checkpoints of a finished job into assets/starters, without what only resuming needs.

    python scripts/ship_starters.py JOB [--prefix tiny] [--home FOLDER]
    python scripts/ship_starters.py JOB --name smollm2-reader [--average STEP=WEIGHT ...] [--home FOLDER]
    python scripts/ship_starters.py CHECKPOINT --name smollm2-reader

Weights are stored in half precision and loaded in single precision. The last checkpoint of each stage is taken, under
the name PREFIX-STAGE; with --name the job's last one alone. --average ships the weighted mean of several checkpoints
of the job, which does what a falling learning rate would have done (arXiv 1803.05407). CHECKPOINT is a folder, such as
average_adapters.py writes. Folders of this machine do not stay in the manifest.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from assets import asset
from orchestrator.checkpoints import MANIFEST, complete_steps, read_checkpoint, seal
from pool_registry.actions import JsonValue
from pool_registry.atomic_write import draft_folder
from pool_registry.storage.data_folder import choose_home

KEPT = {
    "full": ("*.json", "*.safetensors", "*.jinja", "*.npz"),
    "adapter": ("adapter_config.json", "adapter_model.safetensors", "*.npz"),  # everything else is its base's
}
RESUMING = ("trainer_state.json",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", metavar="JOB or CHECKPOINT")
    parser.add_argument("--prefix", default="tiny")
    parser.add_argument("--name", help="of the job's last checkpoint, shipped alone")
    parser.add_argument("--average", nargs="+", default=[], metavar="STEP=WEIGHT")
    parser.add_argument("--home")
    options = parser.parse_args()
    checkpoints = choose_home(options.home).jobs / options.job / "checkpoints"
    shipped: set[str] = set()
    is_checkpoint = (Path(options.job) / MANIFEST).is_file()
    for folder in [Path(options.job)] if is_checkpoint else [step for _, step in complete_steps(checkpoints)]:
        name = options.name or f"{options.prefix}-{read_checkpoint(folder, verify=True).stage}"
        if name not in shipped:
            shipped.add(name)
            place = asset("starters") / name
            shares = dict(item.split("=") for item in options.average)
            size = ship(folder, place, {checkpoints / step: float(share) for step, share in shares.items()})
            print(f"{name}: {size / 1e6:.1f} MB")


def ship(folder: Path, place: Path, shares: Mapping[Path, float]) -> int:
    """Copy, shrink and seal one checkpoint, with the mean of other checkpoints' weights where these have shares.
    Returns its size in bytes."""
    checkpoint = read_checkpoint(folder)
    with draft_folder(place, replace=True) as draft:
        for pattern in KEPT[checkpoint.kind]:
            for file in folder.glob(pattern):
                if file.name not in RESUMING:
                    shutil.copy(file, draft / file.name)
        for weights in draft.glob("*.safetensors"):
            if shares:
                average(weights, {other / weights.name: share for other, share in shares.items()})
            halve(weights)
        if checkpoint.kind == "full":
            amend(draft / "config.json", dtype="float32")
        else:  # instead of a folder of this machine
            amend(draft / "adapter_config.json", base_model_name_or_path=checkpoint.base)
        seal(draft, checkpoint.model_copy(update={"name": place.name, "recipe": without_folders(checkpoint.recipe)}))
    return sum(file.stat().st_size for file in place.iterdir())


PLACES = (("model", "start"), ("sft", "demonstrations", "lessons"), ("sft", "demonstrations", "file"))


def without_folders(recipe: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The recipe, without the folders of this machine that its training went on from and learnt from."""
    for place in PLACES:
        recipe = _without_folder(recipe, place)
    return recipe


def _without_folder(section: dict[str, JsonValue], place: tuple[str, ...]) -> dict[str, JsonValue]:
    name, *rest = place
    value = section.get(name)
    if rest:
        return {**section, name: _without_folder(value, tuple(rest))} if isinstance(value, dict) else section
    return {**section, name: ""} if "/" in str(value) else section


def amend(file: Path, **settings: str) -> None:
    """Change settings in a JSON file."""
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**document, **settings}, indent=1) + "\n", encoding="utf-8")


def average(file: Path, shares: Mapping[Path, float]) -> None:
    """Store the weighted mean of several safetensors files with equal names and shapes."""
    from safetensors.torch import load_file, save_file

    total = sum(shares.values())
    parts = [(share / total, load_file(other)) for other, share in shares.items()]
    names = parts[0][1]
    save_file({name: sum(share * part[name] for share, part in parts) for name in names}, file, {"format": "pt"})


def halve(file: Path) -> None:
    """Store a safetensors file's weights in half precision."""
    from safetensors.torch import load_file, save_file

    save_file({name: weight.half() for name, weight in load_file(file).items()}, file, {"format": "pt"})


if __name__ == "__main__":
    main()

"""Whether a LoRA adapter belongs to a base model, by the shapes in both files. Only the heads of the files are read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_folder import ADAPTER_WEIGHTS, MAX_CONFIG_BYTES, read_base

Shape = tuple[int, ...]
_PART = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_(A|B)(?:\.\w+)?\.weight")
_FLOATS = ("F64", "F32", "F16", "BF16")  # packed weights have shapes of their own


def check_fit(adapter: Path, base: Path) -> None:
    """Raise WorkerFault where the adapter was made for a model of other shapes. A base whose layers have other names
    than those in the adapter is left to the loader."""
    weights = read_shapes(base)
    parts = [(match[1], match[2], shape) for name, shape in _read_head(adapter / ADAPTER_WEIGHTS).items()
             if (match := _PART.fullmatch(name))]  # fmt: skip
    matches = [part for part in parts if f"{part[0]}.weight" in weights]
    if not matches:
        return
    missing = next((layer for layer, _, _ in parts if f"{layer}.weight" not in weights), "")
    if missing:
        raise _other_base(adapter, base, f"it changes {missing}, which this model has not")
    for layer, side, shape in matches:
        whole = weights[f"{layer}.weight"]
        place = 1 if side == "A" else 0  # A reads the layer's inputs, B writes its outputs
        if len(whole) == len(shape) == 2 and whole[place] != shape[place]:
            what = "inputs" if side == "A" else "outputs"
            raise _other_base(adapter, base, f"{layer} has {whole[place]:,} {what} here, and {shape[place]:,} there")


def describe_base(adapter: Path, model: str) -> str:
    """A question about an adapter whose configuration names another model than this one; "" where it is the same."""
    base = read_base(adapter)
    if not base or _last_part(base) == _last_part(model):
        return ""
    return f"the adapter says that it was trained on {base}; is {model} the same model?"


def read_shapes(folder: Path) -> dict[str, Shape]:
    """The shapes of a checkpoint's weights, by name."""
    return {name: shape for file in sorted(folder.glob("*.safetensors")) for name, shape in _read_head(file).items()}


def _read_head(file: Path) -> Mapping[str, Shape]:
    """The shapes in a safetensors file. Raises WorkerFault for one that is damaged."""
    try:
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            head = json.loads(opened.read(min(size, MAX_CONFIG_BYTES)))
        return {
            name: tuple(entry["shape"])
            for name, entry in head.items()
            if name != "__metadata__" and entry["dtype"] in _FLOATS
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WorkerFault("model_refused", f"{file} is no whole safetensors file; copy it again") from error


def _other_base(adapter: Path, base: Path, why: str) -> WorkerFault:
    named = read_base(adapter)
    advice = f"; give {named} as the model" if named else "; give the model that it was trained on"
    return WorkerFault("model_refused", f"the adapter {adapter} was made for another model than {base}: {why}{advice}")


def _last_part(reference: str) -> str:
    return re.split(r"[/:]", reference.rstrip("/"))[-1].lower()

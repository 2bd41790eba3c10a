"""A checkpoint for other programs: the adapter as it is, merged into its base, or as GGUF for llama.cpp."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from orchestrator.checkpoints import MANIFEST, TEXTS, WEIGHTS, Checkpoint, find_checkpoint, seal
from orchestrator.errors import OrchestratorError
from pool_registry.atomic_write import draft_folder
from pool_registry.errors import WorkerFault
from pool_registry.language_models.model_files import model_path

Form = Literal["adapter", "merged", "gguf"]
CONVERTER = "convert_hf_to_gguf.py"
GET_CONVERTER = (
    "git clone --depth 1 https://github.com/ggml-org/llama.cpp && "
    "pip install -r llama.cpp/requirements/requirements-convert_hf_to_gguf.txt && export LLAMA_CPP=$PWD/llama.cpp"
)


class ExportError(OrchestratorError):
    """Nothing was exported; the message says what to do."""


def export_checkpoint(name: str, form: Form, out: Path) -> Path:
    """Write the checkpoint `name` to `out` (a folder; for gguf a file). Raises ExportError or UnknownOrchestrator."""
    folder, checkpoint = find_checkpoint(name)
    out = out.expanduser().absolute()
    if out.exists():
        raise ExportError(f"{out} is there already; choose another place with --out")
    if form == "adapter" and checkpoint.kind != "adapter":
        raise ExportError(f"{name} is a whole model, not an adapter; export it with --as merged")
    if form == "gguf":
        return _gguf(name, out)
    if form == "merged" and checkpoint.kind == "adapter":
        return merged(name, out)
    with _drafted(out) as draft:
        for path in folder.iterdir():
            if path.name in TEXTS or path.name == MANIFEST or WEIGHTS.fullmatch(path.name):
                shutil.copyfile(path, draft / path.name)
    return out


def merged(name: str, out: Path) -> Path:
    """The adapter `name` merged into its base, as a whole model in safetensors. Takes the base's memory twice."""
    folder, checkpoint = find_checkpoint(name)
    if out.exists():
        shutil.rmtree(out)
    with _drafted(out) as draft:
        _merge(folder, checkpoint, draft)
        seal(draft, checkpoint.model_copy(update={"kind": "full", "name": f"{checkpoint.name}-merged"}))
    return out


def _merge(folder: Path, checkpoint: Checkpoint, draft: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        base = model_path(checkpoint.base)
    except WorkerFault as fault:
        raise ExportError(f"the base of {checkpoint.name} is missing: {fault}") from fault
    spoken = folder if (folder / "tokenizer.json").is_file() else base
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, use_safetensors=True, local_files_only=True)
    model = PeftModel.from_pretrained(model, folder, use_safetensors=True).merge_and_unload()
    model.config.name_or_path = checkpoint.name
    model.to(torch.bfloat16).save_pretrained(draft)
    AutoTokenizer.from_pretrained(spoken, local_files_only=True).save_pretrained(draft)


def converter() -> Path | None:
    """llama.cpp's converter: below $LLAMA_CPP, or on the PATH; None when it is not installed."""
    place = os.environ.get("LLAMA_CPP")
    if place and (Path(place).expanduser() / CONVERTER).is_file():
        return Path(place).expanduser() / CONVERTER
    found = shutil.which(CONVERTER)
    return Path(found) if found else None


def _gguf(name: str, out: Path) -> Path:
    script = converter()
    if script is None:
        raise ExportError(f"llama.cpp's converter ({CONVERTER}) is not installed; get it with:  {GET_CONVERTER}")
    folder, checkpoint = find_checkpoint(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="podium-gguf-", dir=out.parent) as place:
        whole = merged(name, Path(place) / "merged") if checkpoint.kind == "adapter" else folder
        draft = Path(place) / "model.gguf"
        command = [sys.executable, str(script), str(whole), "--outfile", str(draft)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  no shell, our paths
        if done.returncode or not draft.is_file():
            lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
            raise ExportError(f"llama.cpp's converter refused {name}: {lines[-1][:300]}")
        draft.rename(out)
    return out


@contextmanager
def _drafted(out: Path) -> Iterator[Path]:
    """A folder beside `out` that becomes it when everything went well, and vanishes otherwise."""
    try:
        with draft_folder(out) as draft:
            yield draft
    except OSError as error:
        if error.strerror is None:  # raised by transformers, not by the file system
            raise
        raise ExportError(f"{out} cannot be written ({error.strerror}); choose another place with --out") from error

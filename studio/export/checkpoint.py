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

from orchestrator.checkpoints import MANIFEST, TEXTS, WEIGHTS, Checkpoint, open_checkpoint, seal
from orchestrator.errors import OrchestratorError
from pool_registry.atomic_write import draft_folder
from pool_registry.errors import WorkerFault, writing_to
from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.model_files import model_path

Form = Literal["adapter", "merged", "gguf"]
CONVERTER = "convert_hf_to_gguf.py"
GET_CONVERTER = (
    "git clone --depth 1 https://github.com/ggml-org/llama.cpp && "
    "pip install -r llama.cpp/requirements/requirements-convert_hf_to_gguf.txt && export LLAMA_CPP=$PWD/llama.cpp"
)


class ExportError(OrchestratorError):
    """Raised when nothing was exported; the message says what to do."""


def export_checkpoint(name: str, form: Form, out: Path) -> Path:
    """Write the checkpoint `name` to `out` (a folder; for gguf a file). Raises ExportError or UnknownOrchestrator."""
    folder, checkpoint = open_checkpoint(name)
    out = out.expanduser().absolute()
    if out.exists():
        raise ExportError(f"{out} is there already; choose another path with --out")
    if form == "adapter" and checkpoint.kind != "adapter":
        raise ExportError(f"{name} is a whole model, not an adapter; export it with --as merged")
    if form == "gguf":
        return _convert_to_gguf(name, out)
    if form == "merged" and checkpoint.kind == "adapter":
        return merge_adapter(name, out)
    with _draft_export(out) as draft:
        for path in folder.iterdir():
            if path.name in TEXTS or path.name == MANIFEST or WEIGHTS.fullmatch(path.name):
                shutil.copyfile(path, draft / path.name)
    return out


def merge_adapter(name: str, out: Path) -> Path:
    """Merge the adapter `name` into its base and write the whole model, as safetensors, to `out`.

    Needs the RAM of two copies of the base.
    """
    folder, checkpoint = open_checkpoint(name)
    if out.exists():
        shutil.rmtree(out)
    with _draft_export(out) as draft:
        _merge(folder, checkpoint, draft)
        seal(draft, checkpoint.model_copy(update={"kind": "full", "name": f"{checkpoint.name}-merged"}))
    return out


def _merge(folder: Path, checkpoint: Checkpoint, draft: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        base = model_path(checkpoint.base)
        check_adapter(folder)
    except WorkerFault as fault:
        raise ExportError(f"{checkpoint.name} cannot be merged: {fault}") from fault
    tokenizer = folder if (folder / "tokenizer.json").is_file() else base
    model = AutoModelForCausalLM.from_pretrained(
        base, dtype=torch.float32, use_safetensors=True, local_files_only=True, trust_remote_code=False
    )
    model = PeftModel.from_pretrained(model, folder, use_safetensors=True).merge_and_unload()
    model.config.name_or_path = checkpoint.name
    model.to(torch.bfloat16).save_pretrained(draft)
    AutoTokenizer.from_pretrained(tokenizer, local_files_only=True, trust_remote_code=False).save_pretrained(draft)


def find_converter() -> Path | None:
    """Find llama.cpp's converter, in $LLAMA_CPP or on the PATH; None when it is not installed."""
    folder = os.environ.get("LLAMA_CPP")
    if folder and (Path(folder).expanduser() / CONVERTER).is_file():
        return Path(folder).expanduser() / CONVERTER
    path = shutil.which(CONVERTER)
    return Path(path) if path else None


def _convert_to_gguf(name: str, out: Path) -> Path:
    script = find_converter()
    if script is None:
        raise ExportError(f"llama.cpp's converter ({CONVERTER}) is not installed; get it with:  {GET_CONVERTER}")
    folder, checkpoint = open_checkpoint(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="podium-gguf-", dir=out.parent) as folder_name:
        whole = merge_adapter(name, Path(folder_name) / "merged") if checkpoint.kind == "adapter" else folder
        draft = Path(folder_name) / "model.gguf"
        command = [sys.executable, str(script), str(whole), "--outfile", str(draft)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  no shell, our paths
        if process.returncode or not draft.is_file():
            lines = (process.stderr or process.stdout).strip().splitlines() or ["it printed nothing"]
            raise ExportError(f"llama.cpp's converter refused {name}: {lines[-1][:300]}")
        draft.rename(out)
    return out


@contextmanager
def _draft_export(out: Path) -> Iterator[Path]:
    """Yield a draft folder that becomes `out` when the body succeeds. Raises UnwritablePath."""
    with writing_to(out), draft_folder(out) as draft:
        yield draft

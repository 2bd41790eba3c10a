"""A checkpoint that was exported is the same model; what cannot be exported says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets import asset
from orchestrator.checkpoints import Checkpoint, find_checkpoint, read_checkpoint, seal
from studio.export.checkpoint import CONVERTER, ExportError, export_checkpoint
from studio.publish.model_repo import checkpoint_entries, find_checkpoint_weights
from studio.publish.request import Publication

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LoRA adapter with random weights for the tiny model, sealed as a checkpoint."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("adapter") / "1"
    model = AutoModelForCausalLM.from_pretrained(asset("starters/tiny-base"), dtype=torch.float32)
    tuned = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    tuned.save_pretrained(folder)
    seal(folder, Checkpoint(name="tuned", kind="adapter", base="starter:tiny", stage="sft", step=1))
    return folder


def logits(folder: Path, adapter: Path | None = None):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if adapter is not None:
        model = PeftModel.from_pretrained(model, adapter)
    with torch.inference_mode():
        return model.eval()(torch.arange(5, 25)[None]).logits


@pytest.mark.slow
def test_a_merged_adapter_computes_what_the_adapter_computed(adapter, tmp_path):
    import torch

    out = export_checkpoint(str(adapter), "merged", tmp_path / "merged")
    assert read_checkpoint(out, verify=True).kind == "full" and (out / "tokenizer.json").is_file()
    before, after = logits(asset("starters/tiny-base"), adapter), logits(out)
    plain = logits(asset("starters/tiny-base"))
    assert torch.nn.functional.cosine_similarity(before.flatten(), after.flatten(), dim=0) > 0.999
    assert (before - after).abs().mean() < 0.1 * (before - plain).abs().mean(), "bfloat16 rounds, nothing more"


def test_an_adapter_whose_base_nobody_can_fetch_is_published_merged(adapter, tmp_path):
    weights = find_checkpoint_weights(str(adapter), tmp_path / "place")
    assert weights is not None
    names = {entry.path for entry in checkpoint_entries(weights, Publication(pool="p", orchestrator="o", repo="r"))}
    assert {"model.safetensors", "config.json", "tokenizer.json", "podium.json"} <= names
    assert "adapter_model.safetensors" not in names


def test_forms_that_do_not_fit_and_places_that_are_taken_are_told(adapter, tmp_path):
    with pytest.raises(ExportError, match="--as merged"):
        export_checkpoint("starter-grpo", "adapter", tmp_path / "a")
    (tmp_path / "taken").mkdir()
    with pytest.raises(ExportError, match="there already"):
        export_checkpoint("starter-grpo", "merged", tmp_path / "taken")
    same = export_checkpoint(str(adapter), "adapter", tmp_path / "adapter")
    assert {path.name for path in same.iterdir()} >= {"adapter_model.safetensors", "adapter_config.json"}


def test_without_llama_cpp_the_command_that_gets_it_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("LLAMA_CPP", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExportError, match=r"git clone .*llama\.cpp"):
        export_checkpoint("starter-grpo", "gguf", tmp_path / "m.gguf")


def test_the_converter_gets_the_whole_model_and_its_failure_is_told(tmp_path, monkeypatch):
    """A converter in llama.cpp's place, with llama.cpp's arguments."""
    script = tmp_path / CONVERTER
    copies = "pathlib.Path(a[3]).write_bytes(b'GGUF' + (pathlib.Path(a[1]) / 'config.json').read_bytes())"
    script.write_text(f"import sys, pathlib; a = sys.argv; assert a[2] == '--outfile'; {copies}")
    monkeypatch.setenv("LLAMA_CPP", str(tmp_path))
    out = export_checkpoint("starter-grpo", "gguf", tmp_path / "m.gguf")
    folder, _ = find_checkpoint("starter-grpo")
    assert out.read_bytes() == b"GGUF" + (folder / "config.json").read_bytes()
    script.write_text("import sys; sys.exit('Model architecture is not supported')")
    with pytest.raises(ExportError, match="architecture is not supported"):
        export_checkpoint("starter-grpo", "gguf", tmp_path / "n.gguf")
    assert not (tmp_path / "n.gguf").exists()

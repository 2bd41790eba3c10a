"""What our trainer for CPUs skips changes nothing: the same losses, gradients and figures as TRL's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from tests.trainer.tiny_model import tiny_base  # noqa: F401
from trainer.cpu_sft import CpuSftTrainer, sft_trainer

ROWS = [
    {"input_ids": [10, 11, 12, 13, 14, 15, 16], "labels": [-100, -100, -100, -100, 14, 15, 16]},
    {"input_ids": [20, 21, 22, 23], "labels": [-100, 21, 22, 23]},
    {"input_ids": [30, 31, 32, 33, 34], "labels": [-100, -100, -100, -100, 34]},
    {"input_ids": [40, 41, 42], "labels": [-100, 41, -100]},
]


def trained(kind: type[SFTTrainer], base: Path, out: Path, lora: bool, **more: Any) -> list[dict[str, float]]:
    model = AutoModelForCausalLM.from_pretrained(base)
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    settings = SFTConfig(
        output_dir=str(out),
        max_steps=3,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        logging_steps=1,
        save_strategy="no",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        seed=3,
        bf16=False,
        max_length=16,
        gradient_checkpointing=False,
        **more,
    )
    rows = Dataset.from_list(ROWS)
    trainer = kind(model=model, args=settings, train_dataset=rows, processing_class=AutoTokenizer.from_pretrained(base))
    trainer.train()
    return [row for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize("lora", [False, True])
def test_the_same_training_as_trls_own(tiny_base: Path, tmp_path: Path, lora: bool) -> None:  # noqa: F811
    theirs = trained(SFTTrainer, tiny_base, tmp_path / "theirs", lora)
    ours = trained(CpuSftTrainer, tiny_base, tmp_path / "ours", lora)
    assert theirs[0]["loss"] > theirs[-1]["loss"] > 0  # it learns, so that later steps compare gradients, too
    for one, other in zip(theirs, ours, strict=True):
        for key in ("loss", "grad_norm", "entropy", "mean_token_accuracy", "num_tokens"):
            assert other[key] == pytest.approx(one[key], rel=2e-3), key


@pytest.mark.parametrize(("key", "value"), [("final_logit_softcapping", 30.0), ("vocab_size", 151_936)])
def test_other_heads_are_left_to_trl(tiny_base: Path, key: str, value: float) -> None:  # noqa: F811
    model = AutoModelForCausalLM.from_pretrained(tiny_base)
    assert sft_trainer(model) is CpuSftTrainer
    setattr(model.config, key, value)
    assert sft_trainer(model) is SFTTrainer

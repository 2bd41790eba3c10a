"""Measures what real training steps need in memory against what trainer/memory_fit/stages.py says.

    python bench/memory.py [--json] [--only NAME ...] [--out bench/results/memory.json]

Every point is a process of its own with a random Llama model: TRL's trainer with our arguments takes two
steps on rows as long as the recipe allows. On a card the figure is torch.cuda.max_memory_allocated, and the
runtime's share of the estimate is left out. On a CPU it is the peak of resident memory above what it was
after imports (Linux only).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SMALL = {"hidden_size": 192, "intermediate_size": 512, "layers": 4, "heads": (6, 6), "vocabulary": 2048}
MIDDLE = {"hidden_size": 384, "intermediate_size": 1024, "layers": 6, "heads": (6, 2), "vocabulary": 8192}
LARGE = {"hidden_size": 640, "intermediate_size": 1792, "layers": 10, "heads": (10, 5), "vocabulary": 16384}
QWEN3_06B = {"hidden_size": 1024, "intermediate_size": 3072, "layers": 28, "heads": (16, 8), "vocabulary": 151_936}
LORA = "model: {lora: {rank: 16}}"


@dataclass(frozen=True, slots=True)
class Point:
    """A model's shape and the recipe's YAML, as mappings that lie over each other."""

    shape: dict[str, Any]
    recipe: tuple[str, ...]


BFLOAT16 = "model: {precision: bfloat16}"
SFT = "sft: {steps: 2, batch: 8, max_length: 512}"
GRPO = "grpo: {steps: 2, micro_batch: 8, rollouts: {prompts: 2, group: 4, max_length: 512}}"
POINTS = {
    "sft-2M-full": Point(SMALL, ("sft: {steps: 2, batch: 16, max_length: 512}",)),
    "sft-2M-lora": Point(SMALL, (SFT, LORA)),
    "sft-2M-full-bfloat16": Point(SMALL, (SFT, BFLOAT16)),
    "sft-2M-lora-checkpointing": Point(SMALL, (SFT, LORA, "model: {checkpointing: true}")),
    "grpo-2M-lora": Point(SMALL, (GRPO, LORA)),
    "grpo-2M-full": Point(SMALL, (GRPO,)),
    "sft-600M-lora": Point(QWEN3_06B, (SFT, LORA)),
    "sft-600M-lora-bfloat16": Point(QWEN3_06B, (SFT, LORA, BFLOAT16)),
    "sft-600M-full-bfloat16": Point(QWEN3_06B, (SFT, BFLOAT16)),
    "sft-600M-lora-checkpointing": Point(QWEN3_06B, (SFT, LORA, BFLOAT16, "model: {checkpointing: true}")),
    "grpo-600M-lora-bfloat16": Point(QWEN3_06B, (GRPO, LORA, BFLOAT16)),
    "grpo-600M-full-bfloat16": Point(QWEN3_06B, (GRPO, BFLOAT16)),
    "sft-15M-full": Point(MIDDLE, (SFT,)),
    "sft-15M-lora": Point(MIDDLE, (SFT, LORA)),
    "sft-15M-full-checkpointing": Point(MIDDLE, (SFT, "model: {checkpointing: true}")),
    "sft-15M-lora-checkpointing": Point(MIDDLE, (SFT, LORA, "model: {checkpointing: true}")),
    "sft-15M-lora-bfloat16": Point(MIDDLE, (SFT, LORA, "model: {precision: bfloat16}")),
    "sft-15M-full-bfloat16": Point(MIDDLE, (SFT, "model: {precision: bfloat16}")),
    "sft-15M-long": Point(MIDDLE, ("sft: {steps: 2, batch: 2, max_length: 1536}",)),
    "sft-60M-full": Point(LARGE, ("sft: {steps: 2, batch: 4, max_length: 256}",)),
    "sft-60M-full-accumulation": Point(LARGE, ("sft: {steps: 2, batch: 2, accumulation: 2, max_length: 256}",)),
    "sft-60M-tiny-batch": Point(LARGE, ("sft: {steps: 2, batch: 1, max_length: 64}",)),
    "grpo-15M-full": Point(MIDDLE, (GRPO,)),
    "grpo-15M-lora": Point(MIDDLE, (GRPO, LORA)),
    "grpo-15M-full-kl": Point(MIDDLE, (GRPO, "grpo: {loss: {beta: 0.02}}")),
    "grpo-15M-lora-checkpointing": Point(MIDDLE, (GRPO, LORA, "model: {checkpointing: true}")),
    "grpo-15M-micro-batch": Point(MIDDLE, (GRPO, "grpo: {micro_batch: 1}")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="+", choices=POINTS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", choices=POINTS, help="measure this one in this process")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(options.point)))
        return
    rows = []
    for name in options.only or [
        name for name in POINTS if has_card() or ("bfloat16" not in name and "600M" not in name)
    ]:
        rows.append(in_a_process(name))
        sys.stderr.write(f"{name} {rows[-1]}\n")
    report = {"goal": "within 10 % on a GPU", "points": rows}
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1) if options.json else markdown(rows))


def has_card() -> bool:
    """Without one bfloat16 is left out: a CPU that only emulates it takes minutes for a step."""
    import torch

    return bool(torch.cuda.is_available())


def in_a_process(name: str, timeout: float = 900.0) -> dict[str, Any]:
    """Measure one point in a fresh process."""
    # glibc otherwise keeps freed blocks of up to 32 MB, and resident memory tells of the past
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "bench.memory", "--point", name]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, timeout=timeout)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return row


def measure(name: str) -> dict[str, Any]:
    """Bytes estimated and measured, without the runtime's share."""
    import torch
    from trl import GRPOTrainer, SFTTrainer  # noqa: F401  before the baseline

    from trainer.learner.load_and_save import configure_libraries
    from trainer.memory_fit import estimate
    from trainer.memory_fit.model_sizes import measure_model
    from trainer.methods.grpo import stage as grpo_stage  # noqa: F401
    from trainer.methods.sft import stage as sft_stage  # noqa: F401

    configure_libraries(0)
    point = POINTS[name]
    with tempfile.TemporaryDirectory(prefix="podium-memory-") as folder:
        base = Path(folder) / "base"
        make_base(base, point.shape)
        recipe = recipe_of(point, base)
        estimated = estimate.estimate_fit(recipe)
        parts = {part.name: part.bytes for part in estimated.parts}
        expected = estimated.need_bytes - parts["runtime"]
        row: dict[str, Any] = {"name": name, "device": estimated.device, "parts_mb": in_mb(parts)}
        row |= {"parameters": measure_model(recipe.model, torch.cuda.is_available()).parameters}
        run = (run_sft if recipe.sft else run_grpo)(recipe, Path(folder))
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
            run()
            return row | ratio("allocated", expected, torch.cuda.max_memory_allocated())
        warm_up(recipe, Path(folder))
        before = resident()
        reset_peak()
        run()
        peak = peak_resident()
        return row | {"baseline_mb": before >> 20} | ratio("resident", expected, peak - before)


def warm_up(recipe: Any, folder: Path) -> None:
    """Take the steps once with a small model and short rows: libraries that are loaded at first use belong to the
    runtime."""
    document = recipe.model_dump(mode="json")
    make_base(folder / "small", SMALL)
    document["model"]["base"] = str(folder / "small")
    if recipe.sft:
        document["sft"] |= {"max_length": 64, "batch": 1}
    else:
        document["grpo"]["rollouts"] |= {"max_length": 136}
    (run_sft if recipe.sft else run_grpo)(type(recipe).model_validate(document), folder)()


def ratio(kind: str, expected: int, measured: int) -> dict[str, Any]:
    return {"estimate_mb": expected >> 20, f"{kind}_mb": measured >> 20, f"ratio_{kind}": round(expected / measured, 3)}


def in_mb(parts: dict[str, int]) -> dict[str, int]:
    return {name: size >> 20 for name, size in parts.items()}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_resident() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def make_base(folder: Path, shape: dict[str, Any]) -> None:
    """A random Llama checkpoint with a tokenizer of numbers."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1, **{str(number): number for number in range(2, shape["vocabulary"])}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    wrapped.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    config = LlamaConfig(
        hidden_size=shape["hidden_size"],
        intermediate_size=shape["intermediate_size"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"][0],
        num_key_value_heads=shape["heads"][1],
        vocab_size=shape["vocabulary"],
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        dtype="float32",
    )
    with torch.no_grad():
        LlamaForCausalLM(config).save_pretrained(folder)
    wrapped.save_pretrained(folder)


def recipe_of(point: Point, base: Path) -> Any:
    import yaml

    from trainer.recipe import Recipe

    document: dict[str, Any] = {"model": {"base": str(base), "turn_tokens": 64}}
    for text in point.recipe:
        document = over(document, yaml.safe_load(text))
    return Recipe.model_validate(document)


def over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: over(below.get(key), value) for key, value in above.items()}}


def lengths(rows: int, longest: int) -> list[int]:
    """Unequal, so that there is a mask as in real batches; a single row has none."""
    return [longest - 8 * (row % 2) for row in range(rows)]


def run_sft(recipe: Any, folder: Path) -> Any:
    """What runs the steps of the SFT stage."""
    from datasets import Dataset

    from trainer.learner.load_and_save import load_learner
    from trainer.methods.sft.cpu_trainer import choose_sft_trainer
    from trainer.methods.sft.stage import _make_arguments

    settings = recipe.sft
    count = settings.batch * settings.accumulation * settings.steps
    rows = [[2 + place % 1000 for place in range(size)] for size in lengths(count, settings.max_length)]
    data = Dataset.from_list([{"input_ids": ids, "labels": ids} for ids in rows])

    def run() -> None:
        learner = load_learner(recipe.model, 0)
        place = SimpleNamespace(draft=folder / "draft")
        arguments = _make_arguments(recipe, settings, place, settings.steps)  # type: ignore[arg-type]
        kind = choose_sft_trainer(learner.model)
        kind(model=learner.model, args=arguments, train_dataset=data, processing_class=learner.tokenizer).train()

    return run


def run_grpo(recipe: Any, folder: Path) -> Any:
    """What runs the steps of the GRPO stage; the episodes are one generation of every row, then filled up."""
    from trainer.learner.generator import SamplingParams
    from trainer.learner.load_and_save import TrainingContext, load_learner
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.methods.grpo.cpu_trainer import choose_grpo_trainer
    from trainer.methods.grpo.stage import _make_arguments, _make_placeholders

    settings = recipe.grpo
    job_folder = SimpleNamespace(draft=folder / "draft")
    longest, new = settings.rollouts.max_length, recipe.model.turn_tokens

    def run() -> None:
        learner = load_learner(recipe.model, 0)
        generator = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(1.0))

        async def generate(rows: int) -> None:
            prompt = [2] * (longest - new)
            await asyncio.gather(*(generator.generate(prompt, new) for _ in range(rows)))

        def rollout(prompts: list[Any], _trainer: Any) -> dict[str, Any]:
            asyncio.run(generate(len(prompts)))
            sizes = lengths(len(prompts), longest - 64)
            return {
                "prompt_ids": [[2] * 64 for _ in sizes],
                "completion_ids": [[3] * size for size in sizes],
                "env_mask": [[1] * size for size in sizes],
                "logprobs": None,
                "score": [float(row % 2) for row in range(len(sizes))],
            }

        def score(**columns: Any) -> list[float]:
            return list(columns["score"])

        training = TrainingContext(recipe, [], None, None, job_folder, None)  # type: ignore[arg-type]
        choose_grpo_trainer(learner.model)(
            model=learner.model,
            args=_make_arguments(training, settings.model_copy(update={"rewards": settings.rewards[:1]})),
            reward_funcs=[score, score],  # the one reward, which is shown, and the total, which trains
            train_dataset=_make_placeholders(settings),
            processing_class=learner.tokenizer,
            rollout_func=rollout,
        ).train()
        generator.close()

    return run


def markdown(rows: list[dict[str, Any]]) -> str:
    kind = next(key.removeprefix("ratio_") for key in rows[0] if key.startswith("ratio_"))
    lines = [f"| point | parameters | estimate, MB | {kind}, MB | estimate / measured |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['name']} | {row['parameters']:,} | {row['estimate_mb']:,} | {row[kind + '_mb']:,} "
        f"| {row['ratio_' + kind]:.2f} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

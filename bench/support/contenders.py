"""What the contenders of bench/gpu.py share: the model that they train, TRL's own arguments, clocks and memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.support.device import has_gpu
from bench.support.small_presets import make_small_base

SEED = 0
ERROR_CHARACTERS = 1_500
LORA = {"rank": 32, "alpha": 64}
QWEN3_06B = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
}


def make_base(folder: Path, toy: bool, vocabulary: int | None = None) -> Path:
    """A model with random weights: of the shape of Qwen3-0.6B, or two layers at toy size. Its tokenizer is a small
    one, whose words are the first of the `vocabulary`, or all of it."""
    shape = {} if toy else QWEN3_06B
    more = {} if vocabulary is None else {"vocab_size": vocabulary}
    return make_small_base(folder, "hub:Qwen/Qwen3-0.6B", SEED, shape={**shape, **more})


def make_model_settings(base: Path, turn_tokens: int = 512) -> Any:
    from trainer.recipe_sections import LoraSettings, ModelSettings

    lora = LoraSettings(**LORA)
    return ModelSettings(base=str(base), lora=lora, precision="bfloat16", turn_tokens=turn_tokens)


def make_stopwatch() -> Any:
    """A callback that keeps the seconds of every optimizer step in `steps`."""
    from transformers import TrainerCallback

    class Stopwatch(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
        def __init__(self) -> None:
            self.steps: list[float] = []
            self._began = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self._began = read_clock()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.steps.append(read_clock() - self._began)

    return Stopwatch()


def read_clock() -> float:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def make_plain_arguments(folder: Path, steps: int) -> dict[str, Any]:
    """TRL's own defaults, but for what keeps it quiet and comparable: no checkpoints, no recomputation."""
    gpu = has_gpu()
    return {
        "output_dir": str(folder),
        "max_steps": steps,
        "learning_rate": 1e-5,
        "bf16": gpu,
        "use_cpu": not gpu,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "seed": SEED,
    }


def make_lora() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=LORA["rank"], lora_alpha=LORA["alpha"], target_modules="all-linear", task_type="CAUSAL_LM")


def forget_memory() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def read_peak_gb() -> float | None:
    import torch

    return round(torch.cuda.max_memory_allocated() / 1e9, 2) if torch.cuda.is_available() else None


def try_each(contenders: Mapping[str, Callable[[], dict[str, Any]]]) -> dict[str, Any]:
    """The figures of each contender, or its error: one that fails does not lose the other's."""
    results: dict[str, Any] = {}
    for name, measure in contenders.items():
        forget_memory()
        try:
            results[name] = {**measure(), "peak_gb": read_peak_gb()}
        except Exception as error:  # noqa: BLE001  whatever happens belongs into the report
            results[name] = {"error": f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS]}
    return results


def divide(results: Mapping[str, Any], key: str, one: str = "podium", other: str = "trl") -> float | None:
    """The quotient of a figure of two contenders, where both have it."""
    values = [results.get(name, {}).get(key) for name in (one, other)]
    return round(values[0] / values[1], 3) if all(values) else None


def silence(trainer: Any) -> None:
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)

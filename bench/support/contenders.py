"""What the contenders of bench/gpu.py share: the model that they train, TRL's own arguments, clocks and memory."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.support.device import has_gpu
from bench.support.small_presets import ModelShape, make_small_base

SEED = 0
ERROR_CHARACTERS = 1_500
LORA = {"rank": 32, "alpha": 64}
QWEN3_06B = ModelShape(
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
)
REFERENCE = "hub:Qwen/Qwen3-0.6B"


def make_base(folder: Path, shape: ModelShape, vocabulary: int | None = None) -> Path:
    """A model with random weights of this shape. Its tokenizer is a small one, whose words are the first of the
    `vocabulary`, or all of it."""
    return make_small_base(folder, REFERENCE, SEED, shape, vocabulary)


def make_model_settings(base: Path, turn_tokens: int = 512) -> Any:
    from trainer.recipe_sections import LoraSettings, ModelSettings

    lora = LoraSettings(**LORA)
    return ModelSettings(base=str(base), lora=lora, precision="bfloat16", turn_tokens=turn_tokens)


Keep = Callable[[dict[str, Any]], None]  # takes the figures that there are by now


def print_figures(figures: Mapping[str, Any]) -> None:
    """Print figures as a line of their own: the last line of a part's output is what it has measured, also where its
    process is ended."""
    print(json.dumps(figures), flush=True)


def make_stopwatch(on_step: Callable[[list[float]], None] = lambda _: None) -> Any:
    """A callback that keeps the seconds of every optimizer step in `steps`; `on_step` gets them after each."""
    from transformers import TrainerCallback

    class Stopwatch(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
        def __init__(self) -> None:
            self.steps: list[float] = []
            self._began = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self._began = read_clock()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.steps.append(read_clock() - self._began)
            on_step(self.steps)

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


def try_each(contenders: Mapping[str, Callable[[Keep], dict[str, Any]]], keep: Keep = print_figures) -> dict[str, Any]:
    """The figures of each contender, or its error: one that fails does not lose the other's. What is measured so far
    is kept as it comes."""
    results: dict[str, Any] = {}

    def keep_of(name: str) -> Keep:
        return lambda figures: keep({**results, name: figures})

    for name, measure in contenders.items():
        forget_memory()
        try:
            results[name] = {**measure(keep_of(name)), "peak_gb": read_peak_gb()}
        except Exception as error:  # noqa: BLE001  whatever happens belongs into the report
            results[name] = {"error": f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS]}
        keep(results)
    return results


def divide(results: Mapping[str, Any], key: str, one: str = "podium", other: str = "trl") -> float | None:
    """The quotient of a figure of two contenders, where both have it."""
    values = [results.get(name, {}).get(key) for name in (one, other)]
    return round(values[0] / values[1], 3) if all(values) else None


def silence(trainer: Any) -> None:
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)

"""What it costs to keep several checkpoints of one base model at hand.

    python bench/checkpoints.py [--json] [--adapters 3] [--model starter:smollm2] [--out bench/results/checkpoints.json]

LoRA adapters with random weights are made for the model. Each arrangement then lives in a process of its own and
answers once with every checkpoint before its memory is read: the base alone; the base with all adapters, as the
studio keeps them (language_models/lora_adapters.py); and a model for each adapter, merged into its weights. Memory is
what the process would give back if it ended (USS) and what it has resident (RSS), in MB.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from pool_registry.language_models.batched_model import LoadedModel, Sampling  # noqa: E402
from pool_registry.language_models.model_files import model_path  # noqa: E402

PROMPT = [{"role": "user", "content": "What is the capital of France?"}]
TOKENS = 16
SWITCHES = 30


def make_adapters(folder: Path, model: Path, count: int, rank: int) -> list[Path]:
    """LoRA adapters for all linear layers, with random weights."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(
        model, dtype="auto", local_files_only=True, use_safetensors=True, trust_remote_code=False
    )
    settings = {"r": rank, "lora_alpha": 1, "target_modules": "all-linear", "init_lora_weights": False}
    tuned = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings))
    for seed in range(count):
        torch.manual_seed(seed)
        for weights in (parameter for parameter in tuned.parameters() if parameter.requires_grad):
            torch.nn.init.normal_(weights, std=0.05)
        tuned.save_pretrained(folder / str(seed))
    return [folder / str(seed) for seed in range(count)]


def load_merged(model: Path, adapter: Path) -> LoadedModel:
    """A model of its own with the adapter in its weights: what sharing does away with."""
    from peft import PeftModel

    loaded = LoadedModel(model, "auto")
    loaded.model = PeftModel.from_pretrained(loaded.model, adapter, use_safetensors=True).merge_and_unload().eval()
    return loaded


def say(model: LoadedModel, adapter: Path | None = None, tokens: int = TOKENS) -> int:
    """Let the model write; how many tokens it wrote."""
    return asyncio.run(model.generate(PROMPT, tokens, Sampling(), adapter=adapter))[1].tokens_out


def seconds(do: Callable[[], object]) -> float:
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


def memory() -> dict[str, float]:
    gc.collect()
    used = psutil.Process().memory_full_info()
    return {"uss_mb": used.uss / 1e6, "rss_mb": used.rss / 1e6}


def measure_arrangement(arrangement: str, model: Path, adapters: Sequence[Path]) -> dict[str, float]:
    """Memory of one arrangement, and its times. Runs in a process of its own; what is imported is in `libraries`."""
    import peft  # noqa: F401
    import transformers.models.llama.modeling_llama  # noqa: F401

    libraries = memory()["uss_mb"]
    models: list[LoadedModel] = []
    if arrangement == "apart":
        cpu_s = time.process_time()
        load_s = [seconds(lambda item=item: models.append(load_merged(model, item))) for item in adapters]
        cpu_s = (time.process_time() - cpu_s) / len(adapters)
        speed = statistics.median(rate(lambda item=item: say(item)) for item in models)
        times = {"load_s": statistics.median(load_s), "load_cpu_s": cpu_s, "tokens_per_s": speed}
        return {**memory(), "libraries_mb": libraries, **times}
    load_s = [seconds(lambda: models.append(LoadedModel(model, "auto")))]
    base = models[0]
    speed = rate(lambda: say(base))
    if arrangement == "base":
        return {**memory(), "libraries_mb": libraries, "load_s": load_s[0], "tokens_per_s": speed}
    add_s = [seconds(lambda item=item: base.adapters.use(item)) for item in adapters]
    turns = [adapters[number % len(adapters)] for number in range(SWITCHES)]
    cpu_s = time.process_time()
    switch_s = [seconds(lambda item=item: base.adapters.use(item)) for item in turns]
    cpu_s = (time.process_time() - cpu_s) / len(turns)
    speed = statistics.median(rate(lambda item=item: say(base, item)) for item in adapters)
    return {
        **memory(),
        "libraries_mb": libraries,
        "add_s": statistics.median(add_s),
        "switch_s": statistics.median(switch_s),
        "switch_cpu_s": cpu_s,
        "tokens_per_s": speed,
    }


def rate(write: Callable[[], int]) -> float:
    """Tokens per second, the better of two."""
    rates = []
    for _ in range(2):
        started = time.perf_counter()
        rates.append(write() / (time.perf_counter() - started))
    return max(rates)


def in_own_process(arrangement: str, options: argparse.Namespace, adapters: Sequence[Path]) -> dict[str, float]:
    command = [sys.executable, __file__, "--model", options.model, "--arrangement", arrangement, *map(str, adapters)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arrangement} failed:\n{done.stderr[-2000:]}")
    sys.stderr.write(f"{arrangement} done\n")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """All arrangements, and what follows from them."""
    model = model_path(options.model)
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        adapters = make_adapters(Path(folder), model, options.adapters, options.rank)
        size_mb = sum(file.stat().st_size for file in adapters[0].glob("*.safetensors")) / 1e6
        results = {
            arrangement: in_own_process(arrangement, options, adapters) for arrangement in ("base", "shared", "apart")
        }
    base, shared, apart = results["base"], results["shared"], results["apart"]
    figures = {
        "adapters_over_base_mb": shared["uss_mb"] - base["uss_mb"],
        "models_over_base_mb": apart["uss_mb"] - base["uss_mb"],
        "model_mb": base["uss_mb"] - base["libraries_mb"],
        "reload_over_switch": apart["load_s"] / shared["switch_s"],
        "reload_over_switch_cpu": apart["load_cpu_s"] / shared["switch_cpu_s"],
        "speed_of_adapter": shared["tokens_per_s"] / base["tokens_per_s"],
    }
    about = {"model": options.model, "adapters": options.adapters, "rank": options.rank, "adapter_file_mb": size_mb}
    machine = {"cpus": os.cpu_count(), "load_1min": os.getloadavg()[0], "python": platform.python_version()}
    return round_figures({**about, **results, "figures": figures, "machine": machine})


def round_figures(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: round_figures(item) for name, item in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def markdown(result: dict[str, Any]) -> str:
    lines = ["| | memory of its own (USS), MB | resident (RSS), MB | tokens a second |", "|---|---|---|---|"]
    names = {
        "base": "the base alone",
        "shared": f"the base and {result['adapters']} adapters",
        "apart": f"{result['adapters']} models",
    }
    for name, label in names.items():
        row = result[name]
        lines.append(f"| {label} | {row['uss_mb']:.0f} | {row['rss_mb']:.0f} | {row['tokens_per_s']:.1f} |")
    shared, apart = result["shared"], result["apart"]
    lines.append(
        f"\nSwitching takes {shared['switch_s'] * 1000:.1f} ms, reading an adapter {shared['add_s']:.2f} s, "
        f"loading a model {apart['load_s']:.2f} s."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapters", type=int, default=3)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--model", default="starter:smollm2")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--arrangement", help=argparse.SUPPRESS)
    parser.add_argument("folders", nargs="*", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arrangement:
        print(json.dumps(measure_arrangement(options.arrangement, model_path(options.model), options.folders)))
        return
    result = measure_all(options)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1) if options.json else markdown(result))


if __name__ == "__main__":
    main()

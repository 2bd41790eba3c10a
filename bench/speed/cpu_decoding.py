"""How fast a small model writes on a CPU, with what of it is ours and without.

    python bench/speed/cpu_decoding.py [--rows 1 16 32] [--repeats 3] [--out bench/results/cpu_decoding.json]

Tokens a second of smollm2-reader in bfloat16 (SmolLM2-135M with its adapter, as rollouts use it): 48 tokens in each row
behind a prompt of 300 that all rows share, drawn at temperature 1. Each arm runs in a process of its own, and the arms
take turns; medians, and their ratio to `usual`.

usual       torch's fused attention, torch.multinomial, and glibc as it is
memory      what tensors free is kept (language_models/freed_memory.py)
attention   and new tokens attend by two plain products (language_models/decode_attention.py)
ours        and one random number a row draws a token (language_models/token_draws.py)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

ARMS = ("usual", "memory", "attention", "ours")
PROMPT, TOKENS = 300, 48


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 32])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--arm", choices=ARMS, help="measure one arm in this process")
    options = parser.parse_args()
    if options.arm:
        print(json.dumps(measure_arm(options.arm, options.rows)))
        return
    runs = [{arm: run_arm(arm, options.rows) for arm in ARMS} for _ in range(options.repeats)]
    report = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "tokens_per_s": summarize(runs, options.rows)}
    text = json.dumps(report, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def summarize(runs: list[dict[str, list[float]]], rows: list[int]) -> list[dict[str, Any]]:
    """A line for each number of rows and each arm."""
    lines = []
    for place, count in enumerate(rows):
        medians = {arm: median(run[arm][place] for run in runs) for arm in ARMS}
        lines += [
            {"rows": count, "arm": arm, "median": round(rate, 1), "ratio": round(rate / medians["usual"], 2)}
            for arm, rate in medians.items()
        ]
    return lines


def run_arm(arm: str, rows: list[int]) -> list[float]:
    command = [sys.executable, __file__, "--arm", arm, "--rows", *map(str, rows)]
    return list(json.loads(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout))


def measure_arm(arm: str, rows: list[int]) -> list[float]:
    """Tokens a second for each number of rows."""
    from pool_registry.language_models import decode_attention
    from trainer.learner import transformers_generator
    from trainer.learner.cpu_kernels import speed_up_adapters
    from trainer.learner.generator import SamplingParams
    from trainer.learner.load_and_save import configure_libraries, load_learner
    from trainer.recipe_sections import ModelSettings

    configure_libraries(0)
    if arm == "usual":
        decode_attention.keep_freed_memory = lambda: False
    if arm in ("usual", "memory"):
        decode_attention.FUSED = "none"  # no model attends so: all stay as they are
    if arm != "ours":
        usual = {"do_sample": True, "temperature": 1.0, "top_k": 0}
        transformers_generator._build_decoding = lambda _: usual
    settings = ModelSettings(base="starter:smollm2", start="smollm2-reader", prompt="reader", precision="bfloat16")
    learner = load_learner(settings, 0)
    speed_up_adapters(learner.model, samples=True)
    prompt = list(range(1000, 1000 + PROMPT))
    generator = transformers_generator.TransformersGenerator(learner.model, learner.tokenizer, SamplingParams())
    generator.is_end = lambda _: False  # every row writes all of its tokens

    async def write(count: int) -> float:
        started = time.perf_counter()
        await asyncio.gather(*(generator.generate(prompt, TOKENS) for _ in range(count)))
        return count * TOKENS / (time.perf_counter() - started)

    async def write_all() -> list[float]:
        await write(1)
        return [await write(count) for count in rows]

    return asyncio.run(write_all())


if __name__ == "__main__":
    main()

"""What training the tiny model costs on a CPU: a step, ours against TRL's; a turn; and how long torch's threads spin.

    python bench/cpu_training.py [--json] [--out bench/results/cpu_training.json]

`grpo`: seconds of the learning part of a step (no episodes are sampled) over 32 episodes of unlike lengths, with TRL's
GRPOTrainer and with trainer/learner/cpu_trainers.py, in turns in one process; medians and their ratio.
`decoding`: seconds in which the shipped tiny-sft writes the first turns of 64 test tasks, all at once, with
transformers' DynamicCache and with trainer/learner/kv_cache.py, in turns in one process; medians and their ratio.
`spin`: seconds of a forward and backward pass of 8 x 220 tokens for values of GOMP_SPINCOUNT (GNU OpenMP's default is
300,000 rounds), each in a process of its own, on cores that are free and beside one busy process per core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

SPINS = (1_000, 10_000, 300_000)
EPISODES, GROUP, STEPS, ROUNDS, PASSES = 32, 8, 4, 2, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pass", dest="one", action="store_true", help="time passes in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(passes()))
        return
    report = {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "grpo": grpo(),
        "decoding": decoding(),
        "spin": spin(),
    }
    text = json.dumps(report, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text if options.json else format_report(report))


def format_report(report: dict[str, Any]) -> str:
    steps = report["grpo"]
    turns = report["decoding"]
    lines = [
        f"GRPO step: TRL {steps['trl_s']:.2f} s, ours {steps['ours_s']:.2f} s, ratio {steps['ratio']:.2f}",
        f"64 turns: DynamicCache {turns['dynamic_s']:.2f} s, ours {turns['roomy_s']:.2f} s, ratio {turns['ratio']:.2f}",
    ]
    lines += [
        f"spin {row['spin']:>7,}: free cores {row['free_s']:.2f} s, busy {row['busy_s']:.2f} s"
        for row in report["spin"]
    ]
    return "\n".join(lines)


def grpo() -> dict[str, float]:
    """The learning part of a step with both trainers."""
    from trl import GRPOTrainer

    from trainer.learner.cpu_trainers import CpuGrpoTrainer
    from trainer.learner.load_and_save import configure_libraries

    configure_libraries(0)
    times: dict[str, list[float]] = {"trl": [], "ours": []}
    for _ in range(ROUNDS):
        times["trl"] += steps_of(GRPOTrainer)
        times["ours"] += steps_of(CpuGrpoTrainer)
    trl, ours = median(times["trl"]), median(times["ours"])
    return {"trl_s": round(trl, 3), "ours_s": round(ours, 3), "ratio": round(ours / trl, 3)}


def steps_of(kind: Any) -> list[float]:
    """Seconds of each step but the first, which warms up."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig

    from trainer.learner.load_and_save import load_learner
    from trainer.recipe import ModelSettings

    learner = load_learner(ModelSettings(base="starter:tiny"), 0)
    random = Random(0)
    prompts = [[5] * random.randint(40, 160) for _ in range(EPISODES // GROUP)]
    rows = [(prompt, [7] * random.randint(45, 340)) for prompt in prompts for _ in range(GROUP)]

    def rollout(_prompts: list[Any], _trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": [prompt for prompt, _ in rows],
            "completion_ids": [completion for _, completion in rows],
            "env_mask": [[1] * len(completion) for _, completion in rows],
            "logprobs": None,
            "score": [float(index % 2) for index in range(EPISODES)],
        }

    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder, max_steps=STEPS, per_device_train_batch_size=EPISODES, num_generations=GROUP, beta=0.02,
            max_completion_length=340, save_strategy="no", logging_steps=1, report_to=[], disable_tqdm=True,
            use_cpu=True, bf16=False, gradient_checkpointing=False, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = kind(
            model=learner.model,
            args=settings,
            reward_funcs=[lambda **columns: columns["score"]],
            train_dataset=Dataset.from_list([{"prompt": "a"}] * (EPISODES // GROUP)),
            processing_class=learner.tokenizer,
            rollout_func=rollout,
        )
        trainer.remove_callback(PrinterCallback)  # only the report goes to standard output
        trainer.train()
        return [row["step_time"] for row in trainer.state.log_history if "step_time" in row][1:]


def decoding() -> dict[str, float]:
    """The same turns with both caches."""
    from trainer.learner import kv_cache

    made, times = [], {}
    arms = {"dynamic": dynamic_cache, "roomy": kv_cache.build_preallocated_cache}
    for name in [*arms, *arms, *arms]:
        kv_cache.build_preallocated_cache = arms[name]
        started = time.perf_counter()
        made.append(turns())
        times.setdefault(name, []).append(time.perf_counter() - started)
    assert all(item == made[0] for item in made), "both caches hold the same"
    dynamic, roomy = median(times["dynamic"]), median(times["roomy"])
    return {"dynamic_s": round(dynamic, 3), "roomy_s": round(roomy, 3), "ratio": round(roomy / dynamic, 3)}


def dynamic_cache(layers: Any, width: int) -> Any:
    """What stood in place of `roomy_cache`: rows padded on the left, in a cache that grows by copying."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    grown = DynamicCache()
    for index, rows in enumerate(layers):
        padded = [[pad(part, (0, 0, width - part.shape[1], 0)) for part in parts] for parts in zip(*rows, strict=True)]
        grown.update(*map(torch.stack, padded), index)
    return grown


def turns() -> list[list[int]]:
    """The tokens of 64 first turns, greedily."""
    from pool_registry.language_models.completion import Message
    from trainer.grpo.token_transcript import ChatTokens
    from trainer.learner.generator import SamplingParams
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.tasks.registry import open_source

    learner = tiny_sft()
    chat = ChatTokens(learner.tokenizer)
    tasks = open_source("ledger,atlas,forge,itinerary").tasks("test", 64, levels=(1, 2, 3))
    generator = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(0.0))

    async def all_of_them() -> list[list[int]]:
        prompts = [chat.encode_prompt([Message("user", task.query)]) for task in tasks]
        return [item.ids for item in await asyncio.gather(*(generator.generate(prompt, 288) for prompt in prompts))]

    try:
        return asyncio.run(all_of_them())
    finally:
        generator.close()


@cache
def tiny_sft() -> Any:
    from orchestrator.checkpoints import find_checkpoint
    from trainer.learner.load_and_save import load_learner
    from trainer.recipe import ModelSettings

    return load_learner(ModelSettings(base="starter:tiny"), 0, find_checkpoint("starter-sft")[0])


def spin() -> list[dict[str, float]]:
    rows = []
    for rounds in SPINS:
        free = time_once(rounds)
        with busy_cores():
            rows.append({"spin": rounds, "free_s": free, "busy_s": time_once(rounds)})
    return rows


def time_once(rounds: int) -> float:
    """Median seconds of a pass in a process of its own."""
    environment = {**os.environ, "GOMP_SPINCOUNT": str(rounds)}
    command = [sys.executable, __file__, "--pass"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return round(median(json.loads(done.stdout.splitlines()[-1])), 3)


def passes() -> list[float]:
    import torch

    from trainer.learner.load_and_save import configure_libraries, load_learner
    from trainer.recipe import ModelSettings

    configure_libraries(0)
    model = load_learner(ModelSettings(base="starter:tiny"), 0).model
    ids = torch.randint(3, 3000, (8, 220))
    times = []
    for _ in range(PASSES + 1):
        started = time.perf_counter()
        model(ids, labels=ids).loss.backward()
        times.append(time.perf_counter() - started)
    return times[1:]


@contextmanager
def busy_cores() -> Iterator[None]:
    """A process for each core that does nothing but count."""
    counters = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for counter in counters:
            counter.kill()
            counter.wait()


if __name__ == "__main__":
    main()

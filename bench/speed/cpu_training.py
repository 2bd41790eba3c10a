"""What training costs on a CPU: a step, ours against TRL's; a turn; and how long torch's threads spin.

    python bench/speed/cpu_training.py [--only sft] [--json] [--out bench/results/cpu_training.json]

`sft`: CPU milliseconds of one thread, and wall milliseconds, for each token of the demonstrations in a step of SFT
with an adapter on SmolLM2-135M. 8 rows: two listings of workers (180 tokens), below each 4 conversations (150 tokens,
70 of them learnt). With TRL's SFTTrainer in float32 (`trl`), with logits for learnt tokens only and bfloat16 autocast
(`autocast`), and as the SFT stage trains with `precision: bfloat16` (`stage`) and with `float32` (`stage_float32`), in
one process. `bound` is what the
frozen layers' products alone cost at the rate of a bfloat16 product measured beside each step: forward and the
gradient of the input, once for every row token; `packed_bound` counts each shared token once.
`grpo`: seconds of the learning part of a step (no episodes are sampled) over 32 episodes of unlike lengths, with TRL's
GRPOTrainer and with trainer/learner/cpu_trainers.py, in turns in one process; medians and their ratio.
`decoding`: seconds in which the shipped tiny-sft writes the first turns of 64 test tasks, all at once, with
transformers' DynamicCache and with pool_registry/language_models/kv_cache.py, in turns in one process; medians and
their ratio.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SPINS = (1_000, 10_000, 300_000)
EPISODES, GROUP, STEPS, ROUNDS, PASSES = 32, 8, 4, 2, 8
SFT_ARMS = ("trl", "autocast", "stage", "stage_float32")
FROZEN_PRODUCTS = 424e6  # operations a token: 2 for each of 106 million weights outside the embedding, both ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part, keep the others of --out")
    parser.add_argument("--pass", dest="one", action="store_true", help="time passes in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(passes()))
        return
    kept = json.loads(options.out.read_text()) if options.only and options.out and options.out.is_file() else {}
    figures = {name: measure() for name, measure in PARTS.items() if name in (options.only or PARTS)}
    report = {**kept, "cores": os.cpu_count(), "load": os.getloadavg()[0], **figures}
    text = json.dumps(report, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text if options.json else format_report(report))


def format_report(report: dict[str, Any]) -> str:
    lines = []
    if "sft" in report:
        lines += [
            f"SFT {name:>13}: {row['cpu_ms']:.2f} CPU-ms a token, {row['wall_ms']:.2f} wall, ratio {row['ratio']:.2f}"
            for name, row in report["sft"]["arms"].items()
        ]
        lines.append(
            f"SFT bound: {report['sft']['bound_ms']:.2f} CPU-ms, packed {report['sft']['packed_bound_ms']:.2f}"
        )
    if "grpo" in report:
        steps = report["grpo"]
        lines.append(f"GRPO step: TRL {steps['trl_s']:.2f} s, ours {steps['ours_s']:.2f} s, ratio {steps['ratio']:.2f}")
    if "decoding" in report:
        turns = report["decoding"]
        lines.append(
            f"64 turns: DynamicCache {turns['dynamic_s']:.2f} s, ours {turns['roomy_s']:.2f} s, "
            f"ratio {turns['ratio']:.2f}"
        )
    lines += [
        f"spin {row['spin']:>7,}: free cores {row['free_s']:.2f} s, busy {row['busy_s']:.2f} s"
        for row in report.get("spin", [])
    ]
    return "\n".join(lines)


def sft() -> dict[str, Any]:
    """The trainers in turns, a step to warm up and one to measure, and the bound beside each."""
    import torch

    from trainer.learner.load_and_save import configure_libraries

    configure_libraries(1)  # the CPU time of one thread holds no waiting for another
    rows = listing_rows()
    tokens, packed = sum(len(row["input_ids"]) for row in rows), count_packed(rows)
    rate, arms = [], {}
    for name in SFT_ARMS:
        rate.append(product_rate())
        wall, cpu = sft_step(name, rows)
        arms[name] = {"cpu_ms": round(cpu / tokens * 1e3, 2), "wall_ms": round(wall / tokens * 1e3, 2)}
    for arm in arms.values():
        arm["ratio"] = round(arm["cpu_ms"] / arms["autocast"]["cpu_ms"], 2)
    bound = FROZEN_PRODUCTS / median(rate) * 1e3
    torch.set_num_threads(os.cpu_count() or 1)
    return {
        "row_tokens": tokens,
        "packed_tokens": packed,
        "gflops": round(median(rate) / 1e9),
        "bound_ms": round(bound, 2),
        "packed_bound_ms": round(bound * packed / tokens, 2),
        "arms": arms,
    }


def listing_rows() -> list[dict[str, list[int]]]:
    """Rows like those of a reader of pools: listing, query, needs (learnt), cards, arguments (learnt)."""
    random = Random(0)

    def draw(count: int) -> list[int]:
        return [random.randint(100, 40_000) for _ in range(count)]

    rows = []
    for listing in (draw(180), draw(180)):
        for _ in range(4):
            query, needs, cards, fill = draw(40), draw(40), draw(40), draw(30)
            labels = [*[-100] * 220, *needs, *[-100] * 40, *fill]
            rows.append({"input_ids": [*listing, *query, *needs, *cards, *fill], "labels": labels})
    return rows


def count_packed(rows: list[dict[str, list[int]]]) -> int:
    from trainer.learner.shared_openings import collate_trees

    return int(collate_trees(rows)["input_ids"].numel())


def product_rate() -> float:
    """Operations a CPU second of a bfloat16 product of the shape that occurs most."""
    import torch
    from torch.nn.functional import linear

    x, weight = torch.randn(1560, 576).bfloat16(), torch.randn(1536, 576).bfloat16()
    linear(x, weight)
    started = time.process_time()
    for _ in range(30):
        linear(x, weight)
    return 30 * 2 * 1560 * 576 * 1536 / (time.process_time() - started)


def sft_step(name: str, rows: list[dict[str, list[int]]]) -> tuple[float, float]:
    """Wall and CPU seconds of the second step of a training."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    from trainer.learner.load_and_save import load_learner
    from trainer.methods.sft.cpu_trainer import CpuSftTrainer
    from trainer.recipe_sections import LoraSettings, ModelSettings

    class LabelledOnly(CpuSftTrainer):
        """Rows as TRL pads them and layers as PEFT multiplies them."""

        def __init__(self, *arguments: Any, **more: Any) -> None:
            SFTTrainer.__init__(self, *arguments, **more)
            self._trees = False

    class Clock(TrainerCallback):
        """Keeps when each step began and the last one ended."""

        def __init__(self) -> None:
            self.times: list[tuple[float, float]] = []

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.times.append((time.perf_counter(), time.process_time()))

        on_step_end = on_step_begin

    kind = {"trl": SFTTrainer, "autocast": LabelledOnly, "stage": CpuSftTrainer}.get(name, CpuSftTrainer)
    precision = "bfloat16" if name == "stage" else "float32"
    learner = load_learner(ModelSettings(base="starter:smollm2", precision=precision, lora=LoraSettings()), 0)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = SFTConfig(
            output_dir=folder, max_steps=2, per_device_train_batch_size=len(rows), max_length=1024,
            save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, bf16=name == "autocast",
            gradient_checkpointing=False, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = kind(
            model=learner.model,
            args=settings,
            train_dataset=Dataset.from_list(rows),
            processing_class=learner.tokenizer,
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    (wall, cpu), (wall_end, cpu_end) = clock.times[-2:]
    return wall_end - wall, cpu_end - cpu


def grpo() -> dict[str, float]:
    """The learning part of a step with both trainers."""
    from trl import GRPOTrainer

    from trainer.learner.load_and_save import configure_libraries
    from trainer.methods.grpo.cpu_trainer import CpuGrpoTrainer

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
    from trainer.recipe_sections import ModelSettings

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
    from pool_registry.language_models import kv_cache

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
    from trainer.learner.generator import SamplingParams
    from trainer.learner.token_transcript import ChatTokens
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
    from trainer.recipe_sections import ModelSettings

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
    from trainer.recipe_sections import ModelSettings

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


PARTS = {"sft": sft, "grpo": grpo, "decoding": decoding, "spin": spin}

if __name__ == "__main__":
    main()

"""What a GPU is worth to training here, in one command that needs no network: beside plain TRL, and beside the bound.

    python bench/gpu.py [--minutes 9] [--only PART ...] [--toy] [--out FILE]

Models have random weights and the shape of Qwen3-0.6B: speed and memory do not depend on what was learnt. Without a
GPU, or with --toy, the same runs at toy size (two layers), to show that it runs; its figures mean nothing.

sft        tokens/s of an adapter's SFT, ours (`podium`: learner and arguments of the SFT stage) and TRL's SFTTrainer as
           it comes (`trl`), on the same rows. `mfu` is the share of the device's peak in bfloat16 (TRL's table), for
           the operations of a step with frozen weights; null where the peak is unknown.
grpo       seconds of a GRPO step on the same prompts with as many tokens: sampling and learning, ours (the trainer and
           generator of the GRPO stage) and TRL's GRPOTrainer with its own generation.
preset     the recipe reader-gpu as a job, with small counts: seconds of each step, when each came, and peak memory
           beside its estimate. With vLLM in this process where it is installed and there is a GPU, else transformers.
memory     estimate beside peak for six recipes (bench/memory.py).
rollouts   the rollouts of one step whose workers take 50 to 800 ms: ours, a round barrier, TRL's tool loop, and the
           bound max(generation, slowest chain); bench/speed/rollouts.py explains it.

Parts run in this order, each in a process of its own with its share of the time that is left. One that runs out of time
is ended: `cut_off` says so beside what it had measured by then. One that fails is recorded with its error. The file is
written after every part. The bench needs the product and this folder, and no other folder. `busy` is the share of
a part's time in which the GPU worked (nvidia-smi, five times a second; without a GPU the processors' load), starting
included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.support.contenders import (  # noqa: E402
    ERROR_CHARACTERS,
    QWEN3_06B,
    SEED,
    Keep,
    divide,
    forget_memory,
    make_base,
    make_lora,
    make_model_settings,
    make_plain_arguments,
    make_stopwatch,
    print_figures,
    read_clock,
    read_peak_gb,
    silence,
    try_each,
)
from bench.support.device import describe_device, describe_machine, find_peak, has_gpu, make_slug, watch_device  # noqa: E402
from bench.support.small_presets import TWO_LAYERS, ModelShape  # noqa: E402

WARM_UP = 2  # steps that are not counted: kernels are chosen, memory is taken
FROZEN_SHARE = 2 / 3  # of a training step's operations: frozen weights have no gradient of their own


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: the model, rows of SFT, episodes of GRPO, rollouts, and points of bench/memory.py.

    In SFT and GRPO the model's `vocabulary` is as large as Qwen3's, in the other parts as its tokenizer's."""

    shape: ModelShape
    rows: int
    length: int
    steps: int
    prompts: int
    group: int
    new_tokens: int
    rollouts: tuple[int, ...]
    latencies: float
    vocabulary: int
    points: tuple[str, ...]

    @property
    def toy(self) -> bool:
        return self.shape == TWO_LAYERS


FULL = Size(
    QWEN3_06B, 8, 1024, 10, 4, 8, 192, (16,), 1.0, 151_936,
    ("sft-600M-lora", "sft-600M-lora-bfloat16", "sft-600M-full-bfloat16", "sft-600M-lora-checkpointing",
     "grpo-600M-lora-bfloat16", "grpo-600M-full-bfloat16"),
)  # fmt: skip
TOY = Size(
    TWO_LAYERS, 2, 96, 3, 2, 2, 16, (4,), 0.5, 4_096,
    ("sft-2M-lora-checkpointing", "grpo-2M-lora"),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--only", choices=PARTS, nargs="+", help="measure these parts, keep the others of the file")
    parser.add_argument("--out", type=Path, help="default: bench/results/gpu-DEVICE.json")
    parser.add_argument("--toy", action="store_true", help="two layers and small counts, also on a GPU")
    parser.add_argument("--part", choices=PARTS, help="measure this one in this process")
    options = parser.parse_args()
    size = TOY if options.toy else choose_size()
    if options.part:
        print_figures(PARTS[options.part](size))
        return
    device = describe_device()
    out = options.out or ROOT / "bench" / "results" / f"gpu-{make_slug(device['name'])}.json"
    report = json.loads(out.read_text()) if options.only and out.exists() else {}
    report |= {"device": device, "toy": size.toy, "machine": describe_machine()}
    names = [name for name in PARTS if name in (options.only or PARTS)]
    ends = time.monotonic() + 60 * options.minutes
    for place, name in enumerate(names):
        seconds = share_time(names[place:], ends - time.monotonic())
        sys.stderr.write(f"{name}: at most {seconds:.0f} s\n")
        report[name] = measure_part(name, seconds, size)
        write_report(out, report)
    print(json.dumps(report, indent=1))


def share_time(names: list[str], left: float) -> float:
    """The seconds of the first of some parts. What a part leaves the others share."""
    return left * SHARES[names[0]] / sum(SHARES[name] for name in names)


def write_report(out: Path, report: Mapping[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure_part(name: str, seconds: float, size: Size) -> dict[str, Any]:
    """The figures of a part, or its `error`; with its seconds and how busy the device was."""
    if seconds < 1:
        return {"error": "no time was left; measure it alone with --only"}
    started = time.monotonic()
    with watch_device() as samples:
        figures = run_part(name, seconds, size)
    took = {"seconds": round(time.monotonic() - started, 1)}
    return {**figures, **took, "busy": round(mean(samples) / 100, 3) if samples else None}


def run_part(name: str, seconds: float, size: Size) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--part", name, *["--toy"] * size.toy]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    environment["PART_SECONDS"] = str(seconds)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, err = process.communicate()
        cut_off = f"cut off after {seconds:.0f} s"
        figures = read_last_figures(out)
        if figures is None:
            return {"error": f"{cut_off}, before its first figure", "log": err[-ERROR_CHARACTERS:]}
        return {**figures, "cut_off": cut_off}
    figures = read_last_figures(out)
    if process.returncode or figures is None:
        error = {"error": f"it ended with status {process.returncode}", "log": err[-ERROR_CHARACTERS:]}
        return {**(figures or {}), **error}
    return figures


def read_last_figures(out: str) -> dict[str, Any] | None:
    """The last whole line of figures in a part's output; None where there is none."""
    for line in reversed(out.splitlines()):
        try:
            figures = json.loads(line)
        except ValueError:
            continue
        if isinstance(figures, dict):
            return figures
    return None


def choose_size() -> Size:
    return FULL if has_gpu() else TOY


# sft


def measure_sft(size: Size) -> dict[str, Any]:
    from trainer.learner.load_and_save import configure_libraries

    configure_libraries(0)
    with tempfile.TemporaryDirectory(prefix="podium-gpu-") as folder:
        place = Path(folder)
        base = make_base(place / "base", size.shape, size.vocabulary)
        rows = make_rows(size, base)
        results = try_each(
            {
                "podium": lambda keep: train_sft(size, base, place, rows, keep, plain=False),
                "trl": lambda keep: train_sft(size, base, place, rows, keep, plain=True),
            }
        )
    return {**results, "speedup": divide(results, "tokens_per_s")}


def make_rows(size: Size, base: Path) -> list[dict[str, Any]]:
    """Rows of one length; the first third of each is a prompt without a loss."""
    from random import Random

    vocabulary = json.loads((base / "config.json").read_text())["vocab_size"]
    random = Random(SEED)
    opening = size.length // 3
    rows = []
    for _ in range(size.rows * (size.steps + WARM_UP)):
        ids = [random.randrange(10, vocabulary) for _ in range(size.length)]
        rows.append({"input_ids": ids, "labels": [-100] * opening + ids[opening:], "length": len(ids)})
    return rows


def train_sft(
    size: Size, base: Path, folder: Path, rows: list[dict[str, Any]], keep: Keep, plain: bool
) -> dict[str, Any]:
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer  # type: ignore[attr-defined]  # lazily exported

    from trainer.learner.load_and_save import build_trainer_arguments, load_learner
    from trainer.methods.sft.cpu_trainer import choose_sft_trainer
    from trainer.recipe_sections import OptimizerSettings

    steps = size.steps + WARM_UP
    shared: dict[str, Any] = {"per_device_train_batch_size": size.rows, "max_length": size.length}
    data = Dataset.from_list(rows)
    stopwatch = make_stopwatch(lambda seconds: keep({"all_step_s": [round(value, 4) for value in seconds]}))
    if plain:
        trainer = SFTTrainer(
            model=str(base),
            args=SFTConfig(**make_plain_arguments(folder / "trl", steps), **shared),
            train_dataset=data.remove_columns("length"),
            peft_config=make_lora(),
            callbacks=[stopwatch],
        )
    else:
        settings = make_model_settings(base)
        learner = load_learner(settings, SEED)
        arguments = build_trainer_arguments(settings, OptimizerSettings(), steps, folder / "podium")
        trainer = choose_sft_trainer(learner.model)(
            model=learner.model,
            args=SFTConfig(**arguments, **shared, train_sampling_strategy="batch_rebalance"),
            train_dataset=data,
            processing_class=learner.tokenizer,
            callbacks=[stopwatch],
        )
    silence(trainer)
    trainer.train()
    return summarize_sft(size, trainer.model, stopwatch.steps[WARM_UP:])


def summarize_sft(size: Size, model: Any, seconds: list[float]) -> dict[str, Any]:
    from trl.trainer import utils

    speed = size.rows * size.length / median(seconds)
    flops = FROZEN_SHARE * utils.compute_flops_per_token(model.config, size.length)
    peak = find_peak()
    return {
        "step_s": round(median(seconds), 4),
        "tokens_per_s": round(speed, 1),
        "mfu": round(flops * speed / peak, 4) if peak else None,
        "all_step_s": [round(value, 4) for value in seconds],
    }


# grpo


def measure_grpo(size: Size) -> dict[str, Any]:
    from trainer.learner.load_and_save import configure_libraries

    configure_libraries(0)
    with tempfile.TemporaryDirectory(prefix="podium-gpu-") as folder:
        place = Path(folder)
        base = make_base(place / "base", size.shape, size.vocabulary)
        results = try_each(
            {
                "podium": lambda keep: train_grpo(size, base, place, keep, plain=False),
                "trl": lambda keep: train_grpo(size, base, place, keep, plain=True),
            }
        )
    return {**results, "speedup": divide(results, "step_s", "trl", "podium")}


def train_grpo(size: Size, base: Path, folder: Path, keep: Keep, plain: bool) -> dict[str, Any]:
    """A few steps; the trainer's own generation, or ours through `rollout_func`."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer  # type: ignore[attr-defined]  # lazily exported

    from trainer.learner.load_and_save import build_trainer_arguments, load_learner
    from trainer.methods.grpo.cpu_trainer import choose_grpo_trainer
    from trainer.recipe_sections import OptimizerSettings

    episodes, steps = size.prompts * size.group, WARM_UP + (2 if size.toy else 3)
    shared = {
        "per_device_train_batch_size": episodes,
        "num_generations": size.group,
        "max_completion_length": size.new_tokens,
        "scale_rewards": "none",
        "log_completions": False,
    }
    prompts = [{"prompt": [{"role": "user", "content": f"Task {place}: {'look it up ' * 20}"}]} for place in range(64)]
    stopwatch = make_stopwatch(lambda seconds: keep({"all_step_s": [round(value, 4) for value in seconds]}))
    common: dict[str, Any] = {
        "reward_funcs": [score_by_length],
        "train_dataset": Dataset.from_list(prompts),
        "callbacks": [stopwatch],
    }
    if plain:
        arguments = GRPOConfig(**make_plain_arguments(folder / "trl", steps), **shared)
        trainer = GRPOTrainer(model=str(base), args=arguments, peft_config=make_lora(), **common)
    else:
        settings = make_model_settings(base, size.new_tokens)
        learner = load_learner(settings, SEED)
        arguments = GRPOConfig(
            **build_trainer_arguments(settings, OptimizerSettings(), steps, folder / "podium"), **shared
        )
        trainer = choose_grpo_trainer(learner.model)(
            model=learner.model,
            args=arguments,
            processing_class=learner.tokenizer,
            rollout_func=make_sampler(learner, size),
            **common,
        )
    silence(trainer)
    sampling, tokens = watch_generation(trainer)
    trainer.train()
    step, sampled = median(stopwatch.steps[WARM_UP:]), median(sampling[WARM_UP:])
    return {
        "step_s": round(step, 4),
        "sampling_s": round(sampled, 4),
        "learning_s": round(step - sampled, 4),
        "new_tokens": round(mean(tokens[WARM_UP:]), 1),
        "sampled_tokens_per_s": round(mean(tokens[WARM_UP:]) / sampled, 1),
    }


def score_by_length(completion_ids: list[list[int]], **_: Any) -> list[float]:
    """Rewards that differ within a group."""
    return [float(sum(ids) % 7) for ids in completion_ids]


def make_sampler(learner: Any, size: Size) -> Callable[[list[Any], Any], dict[str, Any]]:
    """What TRL calls for the episodes of a step: our generator, as the GRPO stage uses it."""
    from trainer.learner.generator import SamplingParams
    from trainer.learner.transformers_generator import TransformersGenerator

    generator = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(1.0))

    async def sample(rows: list[list[int]]) -> list[list[int]]:
        made = await asyncio.gather(*(generator.generate(row, size.new_tokens) for row in rows))
        return [one.ids for one in made]

    def roll_out(prompts: list[Any], _trainer: Any) -> dict[str, Any]:
        rows = [
            learner.tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False)
            for prompt in prompts
        ]
        return {"prompt_ids": rows, "completion_ids": asyncio.run(sample(rows)), "logprobs": None}

    return roll_out


def watch_generation(trainer: Any) -> tuple[list[float], list[int]]:
    """Lists that fill with the seconds and the new tokens of every sampling."""
    seconds: list[float] = []
    tokens: list[int] = []
    generate = trainer._generate

    def watch(*arguments: Any, **more: Any) -> Any:
        began = read_clock()
        made = generate(*arguments, **more)
        seconds.append(read_clock() - began)
        tokens.append(sum(map(len, made[1])))
        return made

    trainer._generate = watch
    return seconds, tokens


# rollouts


def measure_rollouts(size: Size) -> dict[str, Any]:
    from bench.speed import rollouts

    shape = None if size.toy else size.shape
    repeats = 1 if size.toy else 2
    return rollouts.compare(size.rollouts, repeats, size.latencies, trl=True, shape=shape, keep=print_figures)


# preset


def measure_preset(size: Size) -> dict[str, Any]:
    """The steps of a job that runs reader-gpu, and its peak memory beside the estimate."""
    from trainer.memory_fit.estimate import estimate_fit
    from trainer.memory_fit.stages import CUDA_RUNTIME

    with tempfile.TemporaryDirectory(prefix="podium-gpu-") as folder:
        os.environ["PODIUM_HOME"] = folder
        recipe = make_preset(size, Path(folder))
        forget_memory()
        estimated = estimate_fit(recipe).need_bytes - (0 if size.toy else CUDA_RUNTIME)
        known = {"backend": recipe.grpo.rollouts.backend, "estimate_gb": round(estimated / 1e9, 2)}
        began = time.time()
        row, metrics = run_here(
            recipe, Path(folder), lambda lines: print_figures(known | {"steps": list_steps(lines, began)})
        )
    if row.state != "done":
        return {**known, "error": row.message or row.state, "steps": list_steps(metrics, began)}
    return {**known, "peak_gb": read_peak_gb(), "steps": list_steps(metrics, began)}


def list_steps(metrics: list[dict[str, Any]], began: float) -> list[dict[str, Any]]:
    """The figures of the steps of training, each with its stage and the seconds since the job began."""
    return [
        {"stage": line["stage"], "at_s": round(line["at"] - began, 1)}
        | {key: round(value, 3) for key, value in line.items() if isinstance(value, float) and key != "at"}
        for line in metrics
        if line["stage"] in ("sft", "grpo")
    ]


def make_preset(size: Size, folder: Path) -> Any:
    """reader-gpu on the random model: with small counts everywhere, on a GPU with its own batches."""
    from bench.support.small_presets import LONGER, shrink_recipe
    from trainer.recipe import load_recipe

    preset = load_recipe("reader-gpu")
    recipe = shrink_recipe(preset, make_base(folder / "base", size.shape)).model_copy(update={"evaluate": None})
    backend = "vllm-colocate" if has_gpu() and find_spec("vllm") else "transformers"
    assert recipe.grpo and recipe.sft and preset.grpo and preset.sft
    rollouts = recipe.grpo.rollouts.model_copy(update={"backend": backend})
    grpo = recipe.grpo.model_copy(update={"rollouts": rollouts})
    if size.toy:
        return recipe.model_copy(update={"grpo": grpo})
    rollouts = preset.grpo.rollouts.model_copy(
        update={"backend": backend, "prompts": 4, "max_length": LONGER * preset.grpo.rollouts.max_length}
    )
    changes: dict[str, Any] = {"steps": 4, "rollouts": rollouts, "saving": grpo.saving.model_copy(update={"every": 4})}
    changes["saving"] = changes["saving"].model_copy(update={"check_tasks": 0})
    return recipe.model_copy(
        update={
            "model": recipe.model.model_copy(update={"turn_tokens": 128}),
            # Before the first step each lesson's pool is embedded on the processor, up to a second a lesson, and the
            # GPU stands still: no more lessons than the steps take.
            "tasks": recipe.tasks.model_copy(update={"count": 16}),
            "sft": recipe.sft.model_copy(update={"steps": 4, "batch": 4, "saving": changes["saving"]}),
            "grpo": grpo.model_copy(update=changes),
            "threads": 0,
        }
    )


def run_here(
    recipe: Any, home: Path, on_lines: Callable[[list[dict[str, Any]]], None]
) -> tuple[Any, list[dict[str, Any]]]:
    """Run the recipe as a job in this process; its row and the lines of its metrics. `on_lines` gets those that there
    are, every other second, so that a job that is cut off has told how far it came."""
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home
    from trainer.job_process import run_job
    from trainer.jobs.job_folder import read_lines
    from trainer.jobs.queue import JobStore

    store = open_store(find_home(home))
    try:
        jobs = JobStore(store.engine, store.home)
        job = jobs.submit(recipe, here=True).id
        metrics = jobs.folder(job).metrics
        with repeat_while(lambda: on_lines(read_lines(metrics))):
            run_job(job, store, jobs)
        return jobs.get(job), read_lines(metrics)
    finally:
        store.close()


@contextmanager
def repeat_while(act: Callable[[], None]) -> Iterator[None]:
    """Act in a thread every other second while the block runs."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(2.0):
            act()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# memory


def measure_memory(size: Size) -> dict[str, Any]:
    """Each point in a process of its own; those for which no time is left are named."""
    from bench.memory import in_a_process

    ends = time.monotonic() + float(os.environ.get("PART_SECONDS", "600")) - 20
    points: dict[str, Any] = {}
    for name in size.points:
        if time.monotonic() > ends:
            points[name] = {"error": "no time was left"}
            continue
        try:
            points[name] = in_a_process(name, timeout=max(10.0, ends - time.monotonic()))
        except (SystemExit, subprocess.SubprocessError, ValueError, KeyError) as error:
            points[name] = {"error": str(error)[-ERROR_CHARACTERS:]}
        print_figures({"points": points})
    return {"points": points}


# What is wanted most comes first.
PARTS: dict[str, Callable[[Size], dict[str, Any]]] = {
    "sft": measure_sft,
    "grpo": measure_grpo,
    "preset": measure_preset,
    "memory": measure_memory,
    "rollouts": measure_rollouts,
}
SHARES = {"sft": 2, "grpo": 3, "preset": 4, "memory": 4, "rollouts": 2}  # of the time; a process starts in 10 s


if __name__ == "__main__":
    main()

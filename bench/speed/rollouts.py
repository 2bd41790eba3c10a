"""The rollouts of one GRPO step with slow workers: ours, a round barrier, and TRL's own tool loop, in one run.

    python bench/speed/rollouts.py [--json] [--sizes 8,32,64] [--repeats N] [--scale X] [--no-trl] [--save PATH]

Every episode has two rounds of 2 or 3 steps; every step calls a worker that takes 50 to 800 ms, drawn by a seed
from what it is asked. A tiny model (bench/support/tiny_base.py) does the work of generating; which token it
"samples" is forced, so that every contender writes the same plans and makes the same calls.

podium      RolloutEngine with TransformersGenerator, as in a GRPO job, traces to SQLite included.
barrier     the same engine, tasks, model and workers, but in rounds: one call of the model's generate() for all
            episodes, then all their graphs, then the next call. Both run `--repeats` times, in turn; the best counts.
trl         GRPOTrainer with `tools=`: the time of its `_generate` in a real training step, once. The calls are the
            same, but written as tool calls; it knows no access lists, so those of a turn all run at once (which
            is easier), and it asks for one more turn ("done") where our last turn quotes a step as the answer.

The bound is what a step cannot beat, max(generation, slowest chain), in seconds:

generation      the generator's busy time for all turns, batched ideally: the least that podium and barrier took
                when workers answered at once (`at_once_s`; with the barrier, one batch of all episodes per round).
slowest chain   of all episodes, the longest: its workers' latencies along the critical path of each of its
                rounds, plus its own tokens at the speed of a batch of one (the best of all runs of an episode alone).

A ratio is wall seconds over the bound. It cannot reach 1 where both terms are of one size: the episode with the
slowest chain is generated in a batch with the others, not alone. The goal is 1.25 (DESIGN.md, section 7).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.support.contenders import Keep
from bench.support.scripted_model import (
    LIMIT,
    POOL,
    GenerationClock,
    Script,
    Slow,
    build_scripted_model,
    compute_critical_path,
    draw_turns,
    look_up,
    make_tasks,
)
from bench.support.small_presets import ModelShape
from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.traces.store import Store, open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from trainer.learner.generator import GeneratedTokens, SamplingParams
from trainer.learner.transformers_generator import TransformersGenerator
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollouts import EpisodeFormat, RolloutEngine
from trainer.methods.grpo.section import RewardSettings
from trainer.tasks.task import Task

GOAL = 1.25
GROUP = 8
# The contenders


class TasksInOrder:
    """A curriculum that deals the tasks in their order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = iter(tasks)

    def draw(self) -> Task:
        return next(self._tasks)

    def learn(self, _task: Task, _success: float) -> None:
        return


class Barrier:
    """A generator that waits for all episodes, generates one batch and lets none go before it has ended."""

    def __init__(self, model: Any, tokenizer: Any, live: int) -> None:
        self._model, self._tokenizer, self._live = model, tokenizer, live
        self._held: list[tuple[Sequence[int], asyncio.Future[GeneratedTokens]]] = []
        self.busy_s, self.tokens, self.batches = 0.0, 0, 0

    async def generate(self, ids: Sequence[int], limit: int, *_: object) -> GeneratedTokens:
        done: asyncio.Future[GeneratedTokens] = asyncio.get_running_loop().create_future()
        self._held.append((ids, done))
        if len(self._held) == self._live:
            held, self._held = self._held, []
            started = time.perf_counter()
            made = await asyncio.to_thread(self._batch, [list(item) for item, _ in held], limit)
            self.busy_s += time.perf_counter() - started
            self.batches += 1
            for (_, waiting), turn in zip(held, made, strict=True):
                self.tokens += len(turn)
                waiting.set_result(GeneratedTokens(turn))
        return await done

    def _batch(self, rows: list[list[int]], limit: int) -> list[list[int]]:
        import torch

        padded = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt", padding=True, padding_side="left")
        padded = padded.to(self._model.device)
        with torch.no_grad():
            ids = self._model.generate(
                **padded, do_sample=True, max_new_tokens=limit, pad_token_id=self._tokenizer.pad_token_id
            )
        made = ids[:, padded["input_ids"].shape[1] :].tolist()
        return [turn[: turn.index(self._tokenizer.eos_token_id) + 1] for turn in made]

    async def wait_until_finished(self) -> None:
        return

    def close(self) -> None:
        return


class TimedGenerator(TransformersGenerator):
    async def wait_until_finished(self) -> None:
        """Wait for the last batch, so that its time is counted: rows are returned before their batch has ended."""
        if self._runner is not None:
            await self._runner


@dataclass(frozen=True, slots=True)
class Bench:
    """What all contenders share."""

    model: Any
    script: Script
    clock: GenerationClock
    store: Store

    @contextmanager
    def watch(self, plain: bool, scale: float) -> Any:
        """A dict that holds the wall seconds, the model's part of them, and the batches, after the block."""
        self.script.start(plain)
        Slow.scale, Slow.calls = scale, 0
        self.clock.busy_s, self.clock.batches = 0.0, 0
        timings: dict[str, Any] = {}
        started = time.perf_counter()
        yield timings
        timings.setdefault("wall_s", time.perf_counter() - started)
        timings |= {"generation_s": self.clock.busy_s, "batches": self.clock.batches, "calls": Slow.calls}

    async def run_engine(self, size: int, barrier: bool, scale: float) -> dict[str, Any]:
        """One step's rollouts with our engine."""
        group = min(GROUP, size)
        tokenizer = self.script.tokenizer
        made = Barrier(self.model, tokenizer, size) if barrier else None
        generator = made or TimedGenerator(self.model, tokenizer, SamplingParams())
        episode_format = EpisodeFormat(PlanDialect(), "query", LIMIT, 4096, 2)
        async with live_pool(POOL) as pool:
            terms = load_rewards([RewardSettings(term="accuracy", weight=1.0)])
            engine = RolloutEngine("bench", pool, self.script.chat, episode_format, terms, self.store.traces)
            tasks: Any = TasksInOrder(make_tasks(size // group))
            with self.watch(True, scale) as timings:
                async with asyncio.timeout(300):
                    groups, _ = await engine.run_step(tasks, generator, size // group, group, 0, mixed_only=False)
            await generator.wait_until_finished()
        generator.close()
        episodes = [rollout.sample.episode for group in groups for rollout in group.rollouts]
        ends = [episode.ended for episode in episodes]
        assert all(end is not None and end.outcome == "answered" for end in ends), ends[0]
        figures = {"generation_s": generator.busy_s, "batches": generator.batches, "tokens": generator.tokens}
        return {**timings, **figures}

    def run_trl(self, size: int, scale: float) -> dict[str, Any]:
        """One step's rollouts with TRL's tool loop, taken out of a training step."""
        from datasets import Dataset
        from transformers import PrinterCallback
        from trl import GRPOConfig, GRPOTrainer

        async def slow(instruction: str) -> str:
            """Looks something up.

            Args:
                instruction: What to look up.
            """
            return await look_up(instruction)

        group = min(GROUP, size)
        prompts = [[{"role": "user", "content": task.query}] for task in make_tasks(size // group)]
        with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
            settings = GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=size,
                num_generations=group,
                max_completion_length=1024,
                max_steps=1,
                learning_rate=0.0,
                shuffle_dataset=False,
                use_cpu=self.model.device.type == "cpu",
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
            )
            trainer = GRPOTrainer(
                model=self.model,
                args=settings,
                reward_funcs=[lambda completions, **_: [0.0] * len(completions)],
                train_dataset=Dataset.from_dict({"prompt": prompts}),
                processing_class=self.script.tokenizer,
                tools=[slow],
            )
            trainer.remove_callback(PrinterCallback)
            timings: dict[str, Any] = {}
            trainer._generate = self._watch_once(trainer._generate, scale, timings)
            trainer.train()
        return timings

    def _watch_once(self, generate: Callable[..., Any], scale: float, timings: dict[str, Any]) -> Callable[..., Any]:
        def watch(*args: Any) -> Any:
            with self.watch(False, scale) as measured:
                made = generate(*args)
            timings.update(measured, tokens=sum(len(turn) for turns in self.script._turns.values() for turn in turns))
            return made

        return watch

    def measure_alone(self) -> float:
        """Seconds a token of an episode that has the model to itself."""
        run = asyncio.run(self.run_engine(1, False, 0.0))
        return run["generation_s"] / run["tokens"]

    def measure_chain(self, size: int, scale: float, per_token: float) -> float:
        """The slowest episode's workers and its own generation."""
        group = min(GROUP, size)
        self.script.start(plain=True)
        Slow.scale = scale
        return max(
            sum(compute_critical_path(turn) for turn in draw_turns(task, variant))
            + sum(map(len, self.script.encode_turns(task, variant))) * per_token
            for task in range(size // group)
            for variant in range(group)
        )

    def compare(self, size: int, repeats: int, scale: float, trl: bool, keep: Keep) -> dict[str, dict[str, Any]]:
        """The best run of each contender at one number of rollouts. `keep` gets the runs as they come."""
        runs: dict[str, list[dict[str, Any]]] = {"podium": [], "barrier": []}
        at_once: dict[str, list[float]] = {"podium": [], "barrier": []}
        for _ in range(repeats):
            for name, results in runs.items():
                results.append(asyncio.run(self.run_engine(size, name == "barrier", scale)))
                at_once[name].append(asyncio.run(self.run_engine(size, name == "barrier", 0.0))["generation_s"])
                keep({"runs": {str(size): runs}})
        best = {name: min(results, key=lambda run: run["wall_s"]) for name, results in runs.items()}
        for name, results in runs.items():
            best[name] |= {"at_once_s": min(at_once[name]), "all_wall_s": [round(run["wall_s"], 2) for run in results]}
        if trl:
            best["trl"] = self.run_trl(size, scale)
        assert len({run["calls"] for run in best.values()}) == 1, best
        return best

    def add_bounds(self, size: int, scale: float, per_token: float, best: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The contenders' figures with the bound and their ratios to it."""
        generation = min(run["at_once_s"] for run in best.values() if "at_once_s" in run)
        chain = self.measure_chain(size, scale, per_token)
        bound = max(generation, chain)
        for run in best.values():
            run["ratio"] = run["wall_s"] / bound
        rounded = {name: {key: _round_figures(value) for key, value in run.items()} for name, run in best.items()}
        return {"bound_s": round(bound, 3), "generation_s": round(generation, 3), "chain_s": round(chain, 3), **rounded}


def _round_figures(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def compare(
    sizes: Sequence[int],
    repeats: int,
    scale: float,
    trl: bool,
    shape: ModelShape | None = None,
    keep: Keep = lambda _: None,
) -> dict[str, Any]:
    """The figures of all contenders at every size. `keep` gets what there is by now."""
    silence_libraries()
    expect_many_episodes()
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        store = open_store(find_home(folder))
        try:
            bench = Bench(*build_scripted_model(shape), store)
            asyncio.run(bench.run_engine(2, False, 0.0))  # the first batch of a process is slow
            runs, per_token = {}, []
            for size in sizes:
                runs[size] = bench.compare(size, repeats, scale, trl, keep)
                per_token += [bench.measure_alone() for _ in range(repeats)]
            results = {str(size): bench.add_bounds(size, scale, min(per_token), best) for size, best in runs.items()}
        finally:
            store.close()
    import torch

    packages = ("torch", "transformers", *(("trl",) if trl else ()))
    return {
        "rollouts": results,
        "goal": {"ratio": GOAL, "met": {size: item["podium"]["ratio"] <= GOAL for size, item in results.items()}},
        "workers_ms": [50 * scale, 800 * scale],
        "machine": {
            "cpus": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "load_1min": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "packages": {name: version(name) for name in packages},
        },
    }


def silence_libraries() -> None:
    from trainer.learner.load_and_save import configure_libraries as quiet

    quiet(int(os.environ.get("OMP_NUM_THREADS", "2")))
    warnings.filterwarnings("ignore")


def format_table(result: Mapping[str, Any]) -> str:
    lines = [f"{'rollouts':>8}{'generation':>12}{'chain':>8}{'contender':>12}{'wall s':>9}{'ratio':>8}{'batches':>9}"]
    for size, results in result["rollouts"].items():
        for name in ("podium", "barrier", "trl"):
            if name in results:
                run = results[name]
                lines.append(
                    f"{size:>8}{results['generation_s']:>12.2f}{results['chain_s']:>8.2f}{name:>12}{run['wall_s']:>9.2f}"
                    f"{run['ratio']:>8.2f}{run['batches']:>9}"
                )
        met = result["goal"]["met"][size]
        lines.append(f"{'':>28}{'goal (podium)':>24} {'' if met else 'MISSED '}<= {GOAL}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--sizes", default="8,32,64", help="numbers of rollouts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the workers' latencies")
    parser.add_argument("--no-trl", action="store_true", help="without TRL, which takes minutes")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    result = compare(sizes, options.repeats, options.scale, not options.no_trl)
    if options.save:
        options.save.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if options.json else format_table(result))


if __name__ == "__main__":
    main()

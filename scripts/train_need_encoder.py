"""Train the adapter with which needs are bound to workers: assets/need-encoder.

    python scripts/train_need_encoder.py [--source ...] [--tasks 12000] [--start ADAPTER] [--seed 1] [--out FOLDER]

all-MiniLM-L6-v2 with LoRA; for every need of a reference plan the worker that serves it, and for every query all that
its plan calls, are to be nearer than every other worker of the task's pool (softmax over the pool, InfoNCE of arXiv
1807.03748 with hard negatives only). Reports before and after, on validation tasks, on held-out worlds and on the four
families with every worker renamed or described in words that no training uses: the share of needs whose nearest worker
is right, and of queries whose workers are all among the nearest HINTS.

Pools are drawn anew for every few tasks. An encoder that had met the families on the unchanged starter pool alone took
"find a passage about a country" for the work of a reader of passages as soon as both were described in other words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from orchestrator.reader.cards import describe_whole
from orchestrator.retrieval.sentence_vectors import encode, load_encoder
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.tasks import list_train_families
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.registry import open_source
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks

TEMPERATURE = 0.05
HINTS = 5
POOLS_PER_STEP = 4
CONDITIONS = ("renamed", "redescribed")
POOLS = PoolSettings(
    rename=0.6, rename_parameters=0.4, redescribe=0.9, subset=12, distractors=3, substitute=0.1, tasks_per_pool=4
)

Text = tuple[str, tuple[int, ...]]  # a need or a query, and the places of the workers that serve it
Example = tuple[list[str], list[Text], list[Text]]  # the cards of a pool's workers; needs; queries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="worlds*6 + everyday*2 + ledger,atlas,forge,itinerary")
    parser.add_argument("--held-out", default="worlds:held_out")
    parser.add_argument("--tasks", type=int, default=12_000)
    parser.add_argument("--start", type=Path, help="an adapter to go on from")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0, help="of the tasks drawn")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--out", type=Path, default=Path("assets/need-encoder"))
    options = parser.parse_args()
    train(options)


def train(options: argparse.Namespace) -> None:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model

    torch.manual_seed(0)
    tokenizer, model = load_encoder()
    sets = {
        "validation": list(make_examples(vary_tasks(open_source(options.source).tasks("validation", 240), 0))),
        "worlds": list(make_examples(open_source(options.held_out).tasks("test", 240))),
        **{condition: list(make_examples(change_families(condition, 80))) for condition in CONDITIONS},
    }
    if options.start is not None:
        model = PeftModel.from_pretrained(
            model, options.start, is_trainable=True, autocast_adapter_dtype=True, use_safetensors=True
        )
    else:
        config = LoraConfig(r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear")
        model = get_peft_model(model, config)
    print_shares("before", tokenizer, model, sets)
    tasks = open_source(options.source).tasks("train", options.tasks, options.seed)
    examples = list(make_examples(vary_tasks(tasks, options.seed)))
    Random(0).shuffle(examples)
    steps = len(examples) // POOLS_PER_STEP
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), options.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.learning_rate, total_steps=max(steps, 1))
    started, losses = time.perf_counter(), []
    for step in range(steps):
        batch = examples[step * POOLS_PER_STEP : (step + 1) * POOLS_PER_STEP]
        with torch.autocast("cpu", torch.bfloat16):
            loss = compute_loss(tokenizer, model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 99:
            seconds = time.perf_counter() - started
            print(f"step {step + 1} of {steps}, loss {sum(losses[-100:]) / 100:.3f}, {seconds:.0f} s", flush=True)
    model.eval()
    print_shares("after", tokenizer, model, sets)
    model.peft_config["default"].base_model_name_or_path = "sentence-transformers/all-MiniLM-L6-v2"  # no local path
    model.half().save_pretrained(options.out)
    (options.out / "README.md").unlink(missing_ok=True)


def vary_tasks(tasks: Sequence[Task], seed: int) -> Iterator[Task]:
    """The tasks on pools that are drawn anew for every few of them."""
    return map(make_vary(starter_pool(), POOLS, seed, tasks=tasks), tasks)


def change_families(condition: str, count: int) -> Iterator[Task]:
    """Change the test tasks of the families to a condition of the starter pool, a pool for every twenty."""
    tasks = open_source(",".join(list_train_families())).tasks("test", count)
    for seed in range(0, count, 20):
        pool, changed, _ = apply_condition_to_tasks(condition, starter_pool(), tasks[seed : seed + 20], seed)
        yield from (replace(task, pool=task.pool or pool) for task in changed)


def print_shares(when: str, tokenizer: Any, model: Any, sets: dict[str, list[Example]]) -> None:
    """Print the shares of every set of examples."""
    for name, examples in sets.items():
        print(f"{when}, {name}: {measure(tokenizer, model, examples)}", flush=True)


def make_examples(tasks: Iterable[Task]) -> Iterator[Example]:
    """One example for each pool: its cards, and the needs and queries of all tasks on it."""
    for pool, group in groupby(tasks, key=lambda task: task.pool or starter_pool()):
        live = open_live_pool(pool)
        places = {name: place for place, name in enumerate(live.workers)}
        cards = [describe_whole(worker) for worker in live.workers.values()]
        plans = [(task.query, task.oracle_turn.steps) for task in group if task.oracle_turn and task.oracle_turn.steps]
        steps = [step for _, steps in plans for step in steps]
        needs = dict.fromkeys((step.need, (places[step.worker],)) for step in steps if step.worker in places)
        served = [
            (query, sorted({places[step.worker] for step in steps if step.worker in places})) for query, steps in plans
        ]
        if needs:
            yield cards, list(needs), [(query, tuple(right)) for query, right in served if right]


def compute_loss(tokenizer: Any, model: Any, batch: Sequence[Example]) -> Any:
    """The mean over needs and queries, where a query counts as much as a need. Of a query with several workers each is
    compared with those that do not serve it."""
    import torch

    texts = list(
        dict.fromkeys(text for cards, *rows in batch for text in (*cards, *(text for part in rows for text, _ in part)))
    )
    vectors = encode(tokenizer, model, texts).float()
    rows = {text: row for row, text in enumerate(texts)}
    losses = []
    for cards, needs, queries in batch:
        nearness = vectors[[rows[card] for card in cards]]
        for text, places in (*needs, *queries):
            scores = nearness @ vectors[rows[text]] / TEMPERATURE
            right = torch.zeros(len(cards), dtype=torch.bool)
            right[list(places)] = True
            wrong = scores[~right].logsumexp(0) if not right.all() else scores.new_tensor(float("-inf"))
            losses.append((torch.logaddexp(scores[right], wrong) - scores[right]).mean())
    return torch.stack(losses).mean()


def measure(tokenizer: Any, model: Any, examples: Sequence[Example]) -> str:
    """The share of needs whose worker is the nearest, and of queries whose workers are all among the nearest HINTS."""
    import torch

    nearest = [0, 0]
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for cards, needs, queries in examples:
            vectors = encode(tokenizer, model, [*cards, *(text for text, _ in (*needs, *queries))])
            orders = (vectors[len(cards) :] @ vectors[: len(cards)].T).argsort(dim=1, descending=True).tolist()
            nearest[0] += sum(order[0] in places for order, (_, places) in zip(orders, needs, strict=False))
            nearest[1] += sum(
                set(places) <= set(order[:HINTS])
                for order, (_, places) in zip(orders[len(needs) :], queries, strict=True)
            )
    counts = [sum(len(example[part]) for example in examples) for part in (1, 2)]
    return f"{nearest[0] / counts[0]:.3f} of {counts[0]} needs, {nearest[1] / counts[1]:.3f} of {counts[1]} queries"


if __name__ == "__main__":
    main()

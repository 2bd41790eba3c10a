"""Train the adapter with which needs are bound to workers: assets/need-encoder.

    python scripts/train_need_encoder.py [--source ...] [--tasks 12000] [--start ADAPTER] [--seed 1] [--out FOLDER]

all-MiniLM-L6-v2 with LoRA; for every need of a reference plan the worker that serves it is to be nearer than every
other one of the task's pool (softmax over the pool, InfoNCE of arXiv 1807.03748 with hard negatives only). Reports
the share of needs whose nearest worker is right, before and after, on validation tasks and on held-out worlds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from orchestrator.reader.cards import describe_whole
from orchestrator.retrieval.sentence_vectors import encode, load_encoder
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task

TEMPERATURE = 0.05
POOLS_PER_STEP = 4

Example = tuple[list[str], list[tuple[str, int]]]  # the workers' cards; needs, each with the place of its worker


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
    held_out = list(make_examples(open_source(options.held_out).tasks("test", 240)))
    validation = list(make_examples(open_source(options.source).tasks("validation", 240)))
    print("before", measure(tokenizer, model, validation), measure(tokenizer, model, held_out), flush=True)
    if options.start is not None:
        model = PeftModel.from_pretrained(model, options.start, is_trainable=True, autocast_adapter_dtype=True)
    else:
        config = LoraConfig(r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear")
        model = get_peft_model(model, config)
    examples = list(make_examples(open_source(options.source).tasks("train", options.tasks, options.seed)))
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
    print("after", measure(tokenizer, model, validation), measure(tokenizer, model, held_out), flush=True)
    model.peft_config["default"].base_model_name_or_path = "sentence-transformers/all-MiniLM-L6-v2"  # no local path
    model.half().save_pretrained(options.out)
    (options.out / "README.md").unlink(missing_ok=True)


def make_examples(tasks: Sequence[Task]) -> Iterator[Example]:
    """One example for each pool: its cards and the needs of all tasks on it."""
    for pool, group in groupby(tasks, key=lambda task: task.pool or starter_pool()):
        live = open_live_pool(pool)
        places = {name: place for place, name in enumerate(live.workers)}
        cards = [describe_whole(worker) for worker in live.workers.values()]
        steps = [step for task in group if task.oracle_turn for step in task.oracle_turn.steps]
        needs = dict.fromkeys((step.need, places[step.worker]) for step in steps if step.worker in places)
        if needs:
            yield cards, list(needs)


def score(tokenizer: Any, model: Any, example: Example) -> Any:
    """The cosines of every need and every card [needs, cards]."""
    cards, needs = example
    vectors = encode(tokenizer, model, [*(text for text, _ in needs), *cards])
    return vectors[: len(needs)] @ vectors[len(needs) :].T


def compute_loss(tokenizer: Any, model: Any, batch: Sequence[Example]) -> Any:
    import torch
    from torch.nn.functional import cross_entropy

    texts = list(dict.fromkeys(text for cards, needs in batch for text in (*cards, *(need for need, _ in needs))))
    vectors = encode(tokenizer, model, texts).float()
    rows = {text: row for row, text in enumerate(texts)}
    losses = []
    for cards, needs in batch:
        scores = vectors[[rows[need] for need, _ in needs]] @ vectors[[rows[card] for card in cards]].T
        places = torch.tensor([place for _, place in needs])
        losses.append(cross_entropy(scores / TEMPERATURE, places, reduction="sum"))
    return torch.stack(losses).sum() / sum(len(needs) for _, needs in batch)


def measure(tokenizer: Any, model: Any, examples: Sequence[Example]) -> str:
    """The share of needs whose worker is the nearest, and among the nearest three."""
    import torch

    first = third = count = 0
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for example in examples:
            order = score(tokenizer, model, example).argsort(dim=1, descending=True)
            for row, (_, place) in zip(order.tolist(), example[1], strict=True):
                first, third, count = first + (row[0] == place), third + (place in row[:3]), count + 1
    return f"{first / count:.3f} nearest, {third / count:.3f} among three, of {count}"


if __name__ == "__main__":
    main()

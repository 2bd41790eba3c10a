"""Train the adapter with which needs are bound to workers: assets/need-encoder.

    python -m podium_lessons.scripts.train_need_encoder [--source ...] [--tasks 12000]
                                                          [--start ADAPTER] [--seed 1] [--out FOLDER]

all-MiniLM-L6-v2 with LoRA; for every need of a reference plan the worker that serves it, and for every query all that
its plan calls, are to be nearer than every other worker of the task's pool (softmax over the pool, InfoNCE of arXiv
1807.03748 with hard negatives only). "No worker" takes part as one more choice whose likeness is always NO_WORKER: it
is the right one of needs and queries that a pool cannot serve.

Reports before and after, on validation tasks, on held-out worlds and on the four families with every worker renamed or
described in words that no training uses: the share of needs whose nearest worker is right, of queries whose workers are
all among the nearest HINTS, and of needs that are less like every worker than `THRESHOLDS.serves`, of queries than
`is_sure`: few of those that a worker serves, most of those that none serves. `--tasks 0` reports alone.

Pools are drawn anew for every few tasks. An encoder that had met the families on the unchanged starter pool alone took
"find a passage about a country" for the work of a reader of passages as soon as both were described in other words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from orchestrator.reader.cards import describe_whole
from orchestrator.reader.refusal import is_refusal, read_refused_need
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.retrieval.sentence_vectors import encode, load_encoder
from podium_lessons.sources import TRAIN_FAMILIES
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.registry import open_source
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks

TEMPERATURE = 0.05
NO_WORKER = 0.32  # above THRESHOLDS.serves: to refuse what a worker serves is the worse mistake
HINTS = 5
POOLS_PER_STEP = 4
CONDITIONS = ("renamed", "redescribed")
POOLS = PoolSettings(
    rename=0.6, rename_parameters=0.4, redescribe=0.9, subset=12, distractors=3, substitute=0.1, tasks_per_pool=4
)

# a need or a query, and the places of the workers that serve it: none for what the pool cannot do
Text = tuple[str, tuple[int, ...]]
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
        "refusals": list(make_examples(list_refusals(240))),
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
    if not options.tasks:
        return
    tasks = open_source(options.source).tasks("train", options.tasks, options.seed)
    examples = list(make_examples(vary_tasks(tasks, options.seed)))
    Random(0).shuffle(examples)
    steps = len(examples) // POOLS_PER_STEP
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), options.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.learning_rate, total_steps=max(steps, 1))
    fast = torch.cpu._is_amx_tile_supported()  # noqa: SLF001  without those units float32 is the faster one
    started, losses = time.perf_counter(), []
    for step in range(steps):
        batch = examples[step * POOLS_PER_STEP : (step + 1) * POOLS_PER_STEP]
        with torch.autocast("cpu", torch.bfloat16, enabled=fast):
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


def list_refusals(count: int) -> list[Task]:
    """Validation tasks that cannot be done, of so many everyday ones and so many worlds."""
    tasks = open_source("everyday + worlds").tasks("validation", 2 * count)
    return [task for task in tasks if task.oracle_turn and is_refusal(task.oracle_turn.answer)]


def change_families(condition: str, count: int) -> Iterator[Task]:
    """Change the test tasks of the families to a condition of the starter pool, a pool for every twenty."""
    tasks = open_source(",".join(TRAIN_FAMILIES)).tasks("test", count)
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
        turns = [(task.query, task.oracle_turn) for task in group if task.oracle_turn]
        steps = [step for _, turn in turns for step in turn.steps if step.worker in places]
        unserved = [(need, ()) for _, turn in turns if (need := read_refused_need(turn.answer))]
        needs = dict.fromkeys([*((step.need, (places[step.worker],)) for step in steps if step.need), *unserved])
        called = [
            (query, tuple(sorted({places[step.worker] for step in turn.steps if step.worker in places})))
            for query, turn in turns
            if turn.steps or is_refusal(turn.answer)
        ]
        if needs:
            yield cards, list(needs), called


def compute_loss(tokenizer: Any, model: Any, batch: Sequence[Example]) -> Any:
    """The mean over needs and queries, where a query counts as much as a need. Of a query with several workers each is
    compared with those that do not serve it, and with "no worker"."""
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
            likeness = torch.cat([nearness @ vectors[rows[text]], vectors.new_tensor([NO_WORKER])])
            right = torch.zeros(len(likeness), dtype=torch.bool)
            right[list(places) or [-1]] = True
            scores = likeness / TEMPERATURE
            losses.append((torch.logaddexp(scores[right], scores[~right].logsumexp(0)) - scores[right]).mean())
    return torch.stack(losses).mean()


@dataclass(frozen=True, slots=True)
class Nearest:
    """How a need or a query stands to the workers of its pool: whether some of them serve it, whether those are the
    nearest, and how like it the nearest of all is."""

    served: bool
    right: bool
    likeness: float


def measure(tokenizer: Any, model: Any, examples: Sequence[Example]) -> str:
    """The shares that the report names, in words."""
    parts = []
    for kind, part, least in (("needs", 1, THRESHOLDS.serves), ("queries", 2, THRESHOLDS.is_sure)):
        rows = [row for example in examples for row in compare_with_workers(tokenizer, model, example, part)]
        parts.append(f"{share([row.right for row in rows if row.served])} served {kind} are right")
        for served, word in ((True, "served"), (False, "unserved")):
            below = [row.likeness < least for row in rows if row.served is served]
            parts.append(f"{share(below)} {word} {kind} are below {least}")
    return "; ".join(parts)


def compare_with_workers(tokenizer: Any, model: Any, example: Example, part: int) -> Iterator[Nearest]:
    """Compare the needs (part 1) or the queries (part 2) of an example with its cards."""
    import torch

    cards, texts = example[0], example[1] if part == 1 else example[2]
    allowed = 1 if part == 1 else HINTS
    with torch.inference_mode():
        vectors = encode(tokenizer, model, [*cards, *(text for text, _ in texts)])
    for vector, (_, places) in zip(vectors[len(cards) :], texts, strict=True):
        likeness = vectors[: len(cards)] @ vector
        nearest = likeness.argsort(descending=True)[:allowed].tolist()
        right = nearest[0] in places if part == 1 else set(places) <= set(nearest)
        yield Nearest(bool(places), right, float(likeness.max()))


def share(flags: Sequence[bool]) -> str:
    """The share of flags that are set, and their number."""
    return f"{sum(flags) / max(1, len(flags)):.3f} of {len(flags)}"


if __name__ == "__main__":
    main()

"""Builds `tiny`: a Llama of 2.4 million parameters with a tokenizer of its own, which can only copy.

    python -m scripts.build_tiny_base [--out FOLDER] [--steps N]

It is the base that `cpu-first-steps` trains: small enough to learn the starter pool on two CPU cores in minutes. A
model of this size does not discover copying in that time, and a plan must quote the query's names and numbers. So
three attention heads start as what training would make of them: one attends to the previous token; one finds where
the present token stood before and brings what followed it (an induction head, Olsson et al., arXiv 2209.11895); one
brings what stood before it, as in "9A" or "15%". The base then learns to repeat texts with invented names and numbers,
some of them backwards, which trains the third head. It has not seen a plan: everything about workers comes from SFT
and GRPO.

The tokenizer has one token for every number up to three digits, and one for each piece of JSON that a plan for the
starter pool is built of; the rest is byte-level BPE on the queries and plans of the train split with invented names.
So no name of the train split is a token of its own, just as no name of the test split is.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from assets import asset
from bench.support.tiny_base import ASSISTANT, USER, build_model, build_tokenizer, invent_name
from orchestrator.checkpoints import Checkpoint, seal
from pool_registry.atomic_write import draft_folder
from trainer.tasks.registry import open_source

FAMILIES = "ledger,atlas,forge,itinerary"
BACKWARDS = 0.2  # of the texts that the base repeats: from the last token to the first
TURN_TOKENS = 288  # the longest plan of a level from 1 to 3 has 170


def main() -> None:
    """Build, pre-train and save. The same arguments give the same files on the same machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=asset("starters/tiny-base"))
    parser.add_argument("--steps", type=int, default=1400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tasks = open_source(FAMILIES).tasks("train", 6000, levels=(1, 2, 3, 4))
    tokenizer = build_tokenizer(tasks)
    model = build_model(tokenizer, arguments.seed)
    teach_to_copy(model, tokenizer, [task.query for task in tasks], arguments.steps, arguments.seed)
    save_model(model, tokenizer, arguments.out, "base", arguments.steps)


def teach_to_copy(model: Any, tokenizer: Any, queries: Sequence[str], steps: int, seed: int) -> None:
    """Train the model to repeat texts: random tokens, and queries with invented names and numbers."""
    import torch

    random = Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.01)
    stock: list[Any] = []
    model.train()
    for step in range(steps):
        # Warm-up of 50 steps, then a cosine down to 5 % of the peak
        rate = 1e-3 * min(1.0, (step + 1) / 50) * (0.05 + 0.95 * (1 + math.cos(math.pi * step / steps)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if not stock:
            stock = _draw_batches(tokenizer, queries, random)
        loss = model(**stock.pop()).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 49:
            print(f"step {step + 1} of {steps}: loss {loss.item():.4f}", flush=True)


def _draw_batches(tokenizer: Any, queries: Sequence[str], random: Random, size: int = 32, count: int = 16) -> list[Any]:
    """Draw `count` batches of `size` rows of similar length, in random order."""
    import torch

    rows = sorted((_draw_row(tokenizer, queries, random) for _ in range(size * count)), key=lambda row: len(row[0]))
    batches = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        width = max(len(ids) for ids, _ in part)
        ids = torch.tensor([ids + [tokenizer.pad_token_id] * (width - len(ids)) for ids, _ in part])
        labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in part])
        batches.append({"input_ids": ids, "labels": labels, "attention_mask": (ids != tokenizer.pad_token_id).long()})
    random.shuffle(batches)
    return batches


def _draw_row(tokenizer: Any, queries: Sequence[str], random: Random) -> tuple[list[int], list[int]]:
    if random.random() < 0.25:
        text = random.sample(range(4, len(tokenizer)), random.randint(3, 40))
    else:
        text = tokenizer(scramble(random.choice(queries), random), add_special_tokens=False)["input_ids"]
    user, assistant = tokenizer.convert_tokens_to_ids([USER, ASSISTANT])
    backwards = random.random() < BACKWARDS
    before = [user, *text, user if backwards else assistant]
    answer = [*(text[::-1] if backwards else text), tokenizer.eos_token_id]
    return [*before, *answer], [-100] * len(before) + answer


def scramble(query: str, random: Random) -> str:
    """Replace the numbers and names of a query; sometimes add words or change their order."""
    text = re.sub(r"\d+", lambda match: str(random.randrange(10 ** len(match[0]))).zfill(len(match[0])), query)
    if random.random() < 0.7:
        text = re.sub(r"(?<![.?:] )(?<!^)\b[A-Z][\w'-]{2,}\b", lambda _: invent_name(random), text)
    if random.random() < 0.5:
        words = text.split(" ")
        for _ in range(random.randint(1, 6)):
            words.insert(
                random.randrange(len(words)), random.choice((invent_name(random), str(random.randrange(100_000))))
            )
        if random.random() < 0.4:
            random.shuffle(words)
        text = " ".join(words)
    return text


def save_model(model: Any, tokenizer: Any, folder: Path, stage: str, step: int) -> None:
    """Write a checkpoint folder with half-precision weights (4.8 MB); config.json loads them in single precision."""
    with draft_folder(folder, replace=True) as draft:
        tokenizer.save_pretrained(draft)
        model.half().save_pretrained(draft)
        config = draft / "config.json"
        settings = json.loads(config.read_text(encoding="utf-8"))
        settings["dtype"] = "float32"
        config.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        manifest = Checkpoint.model_validate(
            {
                "name": folder.name,
                "kind": "full",
                "base": "starter:tiny",
                "stage": stage,
                "step": step,
                "prompt": "query",
                "turn_tokens": TURN_TOKENS,
            }
        )
        seal(draft, manifest)


if __name__ == "__main__":
    main()

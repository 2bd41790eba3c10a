"""The texts of a training as tensors on its device: tokens, sentence vectors, topics, pools of tools."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orchestrator.choice.network import SPECIAL, TEXT_TOKENS, TokenTable

WORKERS = 4  # that are compared for one need; smaller pools of tools are left out
ENCODED_TOKENS = 128  # of a text whose sentence vector is computed
ENCODED_AT_ONCE = 128


def is_fast_in_bfloat16(device: torch.device) -> bool:
    """Whether 16 bits pay: on a GPU, and on a CPU with tiles for them."""
    return device.type == "cuda" or bool(torch.cpu._is_amx_tile_supported())  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class TopicSet:
    """The topics of one split. Texts and labels of a topic are ranges of `texts` and `labels`, which hold rows of the
    table."""

    names: list[str]
    texts: Tensor
    starts: Tensor
    counts: Tensor
    labels: Tensor
    label_starts: Tensor
    label_counts: Tensor


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The pools of tools of one split: cards by place (NOTHING beyond the last), and needs in the order of the tool
    that serves them, so that those of a tool, and those of a pool, are ranges."""

    cards: Tensor  # [pools, places]
    needs: Tensor  # [needs]: rows of the table
    pool: Tensor  # [needs]
    serves: Tensor  # [needs, places]: whether the tool at a place serves it
    pool_starts: Tensor
    pool_counts: Tensor
    tool_starts: Tensor  # [pools, places]
    tool_counts: Tensor


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything that pools are drawn from. `vectors` are all-MiniLM's, by which a log is searched; `bound` are those
    of the need encoder, by which tools are bound."""

    table: TokenTable
    vectors: Tensor
    bound: Tensor
    topics: dict[str, TopicSet]
    tools: dict[str, ToolSet]
    general: Tensor
    openings: Tensor
    names: Tensor

    @property
    def device(self) -> torch.device:
        return self.vectors.device


def read_document(path: Path, texts_per_topic: int | None = None, pools: int | None = None) -> dict[str, Any]:
    """The file of texts; for a short trial only the first texts of each topic and the first pools of tools."""
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    for topic in document["topics"]:
        topic["texts"] = topic["texts"][:texts_per_topic]
    document["pools"] = {
        split: [pool for pool in rows if len(pool["cards"]) >= WORKERS][:pools]
        for split, rows in document["pools"].items()
    }
    return document


def build_corpus(document: dict[str, Any], tokenizer: Any, encoder: Any, binder: Any, device: torch.device) -> Corpus:
    """Tokenize and embed all texts that the document uses. `binder` is the need encoder."""
    texts, rows = _keep_used(document)
    table = tokenize_texts(tokenizer, [*SPECIAL, *texts], device)
    pools = [pool for split in document["pools"].values() for pool in split]
    needs = {rows[text] for pool in pools for text, _ in pool["needs"]}
    embedded = needs | {rows[text] for topic in document["topics"] for text in topic["texts"]}
    bound = needs | {rows[card] for pool in pools for card in pool["cards"]}

    def encode(model: Any, chosen: set[int]) -> Tensor:
        places = sorted(chosen)
        vectors = torch.zeros(len(texts) + len(SPECIAL), 384, device=device)
        vectors[places] = encode_texts(tokenizer, model, [texts[place - len(SPECIAL)] for place in places], device)
        return vectors.half() if device.type == "cuda" else vectors

    general, openings, names = (
        torch.tensor([rows[text] for text in document[part]], device=device)
        for part in ("general", "openings", "names")
    )
    return Corpus(
        table,
        encode(encoder, embedded),
        encode(binder, bound),
        {split: _make_topics(document, rows, split, device) for split in ("train", "held_out")},
        {split: _make_tools(document["pools"][split], rows, device) for split in ("train", "test")},
        general,
        openings,
        names,
    )


def _keep_used(document: dict[str, Any]) -> tuple[list[str], dict[int, int]]:
    """The texts in use, and the row of each by its old number."""
    numbers = {number for part in ("general", "openings", "names") for number in document[part]}
    numbers |= {number for topic in document["topics"] for number in (*topic["texts"], *topic["labels"])}
    pools = [pool for split in document["pools"].values() for pool in split]
    numbers |= {number for pool in pools for number in (*pool["cards"], *(text for text, _ in pool["needs"]))}
    ordered = sorted(numbers)
    return [document["texts"][number] for number in ordered], {
        number: place + len(SPECIAL) for place, number in enumerate(ordered)
    }


def tokenize_texts(tokenizer: Any, texts: Sequence[str], device: torch.device) -> TokenTable:
    """The tokens of texts, without the marks around a sequence. SPECIAL ones become the tokens of that name."""
    ids = tokenizer(list(texts), add_special_tokens=False, truncation=True, max_length=TEXT_TOKENS)["input_ids"]
    lengths = torch.tensor([len(row) for row in ids], device=device)
    padded = torch.tensor([row + [0] * (TEXT_TOKENS - len(row)) for row in ids], dtype=torch.int32, device=device)
    return TokenTable(padded, lengths)


def encode_texts(tokenizer: Any, encoder: Any, texts: Sequence[str], device: torch.device) -> Tensor:
    """The unit vectors of texts [texts, 384], computed in the order of their length."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    vectors = torch.zeros(len(texts), 384, device=device)
    for start in range(0, len(order), ENCODED_AT_ONCE):
        places = order[start : start + ENCODED_AT_ONCE]
        inputs = tokenizer(
            [texts[place] for place in places],
            padding=True,
            truncation=True,
            max_length=ENCODED_TOKENS,
            return_tensors="pt",
        ).to(device)
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=is_fast_in_bfloat16(device)):
            hidden = encoder(**inputs).last_hidden_state.float()
        mask = inputs["attention_mask"].unsqueeze(-1)
        vectors[places] = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
    return vectors


def _make_topics(document: dict[str, Any], rows: dict[int, int], split: str, device: torch.device) -> TopicSet:
    topics = [topic for topic in document["topics"] if topic["split"] == split]
    texts, starts, counts = _pack([[rows[text] for text in topic["texts"]] for topic in topics], device)
    labels, label_starts, label_counts = _pack([[rows[text] for text in topic["labels"]] for topic in topics], device)
    return TopicSet([topic["name"] for topic in topics], texts, starts, counts, labels, label_starts, label_counts)


def _pack(lists: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Lists end to end: all items, where each list starts, how many it has."""
    counts = torch.tensor([len(items) for items in lists], device=device)
    return torch.tensor([item for items in lists for item in items], device=device), counts.cumsum(0) - counts, counts


def _make_tools(pools: Sequence[dict[str, Any]], rows: dict[int, int], device: torch.device) -> ToolSet:
    widest = max(len(pool["cards"]) for pool in pools)
    shape = (len(pools), widest)
    cards = torch.tensor(
        [[rows[card] for card in pool["cards"]] + [-1] * (widest - len(pool["cards"])) for pool in pools]
    )
    tool_starts, tool_counts = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    pool_starts, pool_counts = torch.zeros(len(pools), dtype=torch.long), torch.zeros(len(pools), dtype=torch.long)
    needs: list[int] = []
    pool_of: list[int] = []
    serves: list[list[bool]] = []
    for number, pool in enumerate(pools):
        pool_starts[number], pool_counts[number] = len(needs), len(pool["needs"])
        for text, places in sorted(pool["needs"], key=lambda need: need[1][0]):
            if not tool_counts[number, places[0]]:
                tool_starts[number, places[0]] = len(needs)
            tool_counts[number, places[0]] += 1
            needs.append(rows[text])
            pool_of.append(number)
            serves.append([place in places for place in range(widest)])
    tensors = [cards, torch.tensor(needs), torch.tensor(pool_of), torch.tensor(serves)]
    return ToolSet(*(tensor.to(device) for tensor in (*tensors, pool_starts, pool_counts, tool_starts, tool_counts)))

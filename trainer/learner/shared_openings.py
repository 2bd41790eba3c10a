"""Rows with the same opening in one sequence: a pool's listing is read once for all queries that stand below it.

The rows of a batch become branches of trees. A branch sees its opening and itself, and its positions go on where the
opening ends, so every token gets the same hidden state as in a row of its own, without padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

import torch
from torch.utils.data import Sampler

NO_LABEL = -100  # no loss, as in transformers
FAMILY_TOKENS = 64  # a shorter common opening is the chat template's own, and no reason to draw rows together


def collate_trees(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Pack rows of `input_ids` and `labels` (of equal length) into one sequence that holds each shared opening once.

    Returns `input_ids`, `labels` and `position_ids`, each [1, tokens], and `spans` [parts, 4]: the opening and the
    tokens of each part, as positions in the sequence.
    """
    ordered = sorted(rows, key=lambda row: list(row["input_ids"]))
    ids: list[int] = []
    labels: list[int] = []
    positions: list[int] = []
    spans: list[tuple[int, int, int, int]] = []

    def append(row: Mapping[str, Any], begin: int, end: int, root: int) -> None:
        start = len(ids)
        ids.extend(row["input_ids"][begin:end])
        # The first token of a part follows another part's last one in the sequence, which does not predict it.
        labels.extend([NO_LABEL, *row["labels"][begin + 1 : end]])
        positions.extend(range(begin, end))
        spans.append((root, root + begin, start, len(ids)))

    for first, last, shared in plan_trees([(list(row["input_ids"]), list(row["labels"])) for row in ordered]):
        root = len(ids)
        if shared:
            append(ordered[first], 0, shared, root)
        for row in ordered[first:last]:
            append(row, shared, len(row["input_ids"]), root)
    return {
        "input_ids": torch.tensor([ids]),
        "labels": torch.tensor([labels]),
        "position_ids": torch.tensor([positions]),
        "spans": torch.tensor(spans),
    }


def plan_trees(rows: Sequence[tuple[list[int], list[int]]]) -> list[tuple[int, int, int]]:
    """Part sorted rows (ids, labels) into trees, so that the fewest tokens remain.

    Returns each tree's first row, the row after its last, and the tokens of its opening (0 for a row alone).
    """
    longest = [measure_opening(labels) for _, labels in rows]
    common = [count_common(one, other) for (one, _), (other, _) in pairwise(rows)]
    # best[n]: the tokens saved in the first n rows, where the last tree begins, and the length of its opening
    best = [(0, 0, 0)]
    for end in range(1, len(rows) + 1):
        options = [(best[end - 1][0], end - 1, 0)]
        shared = longest[end - 1]
        for first in range(end - 2, -1, -1):
            shared = min(shared, longest[first], common[first])
            options.append((best[first][0] + shared * (end - first - 1), first, shared))
        best.append(max(options))
    trees = []
    end = len(rows)
    while end:
        _, first, shared = best[end]
        trees.append((first, end, shared))
        end = first
    return trees[::-1]


def measure_opening(labels: Sequence[int]) -> int:
    """Count the tokens that a row can share: the token before the first label stays its own, as it predicts it."""
    return max(0, sum(1 for _ in takewhile(lambda label: label == NO_LABEL, labels)) - 1)


def count_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens that both rows begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class FamilySampler(Sampler[int]):  # type: ignore[misc]  # torch is not typed
    """The row numbers in random order, with rows of one opening side by side, up to `batch` of them."""

    def __init__(self, rows: Sequence[tuple[list[int], list[int]]], batch: int, seed: int) -> None:
        self.families = find_families(rows)
        self.batch, self.seed, self.epoch = batch, seed, 0
        self.count = len(rows)

    def __len__(self) -> int:
        return self.count

    def set_epoch(self, epoch: int) -> None:
        """Draw another order, the same one for the same epoch: a resumed training goes on in it."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)

        def shuffle(items: list[Any]) -> list[Any]:
            return [items[index] for index in torch.randperm(len(items), generator=generator).tolist()]

        pieces = []
        for family in self.families:
            members = shuffle(family)
            pieces += [members[first : first + self.batch] for first in range(0, len(members), self.batch)]
        for piece in shuffle(pieces):
            yield from piece


def find_families(rows: Sequence[tuple[list[int], list[int]]]) -> list[list[int]]:
    """Group the numbers of rows whose openings are mostly the same."""
    order = sorted(range(len(rows)), key=lambda number: rows[number][0])
    families: list[list[int]] = []
    for number, before in zip(order, [None, *order], strict=False):
        ids, labels = rows[number]
        common = 0 if before is None else count_common(rows[before][0], ids)
        if families and common >= max(FAMILY_TOKENS, measure_opening(labels) / 2):
            families[-1].append(number)
        else:
            families.append([number])
    return families

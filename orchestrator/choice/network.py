"""The success predictor's network: p(this worker serves this need), from texts and from figures of its log.

A cross-encoder (all-MiniLM-L6-v2 with an adapter) reads the need, the worker's card and its most similar past needs,
each with right or wrong. Beside it stand figures over the *whole* log: how often the worker was right in all, and on
needs like this one, by three fixed kernels of the cosine and by two learnt ones. Only torch is needed here, so that a
training runs wherever torch does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

WIDTHS = (0.05, 0.1, 0.2)  # of the fixed kernels: a past need weighs exp((cosine - 1) / width)
LEARNT_KERNELS = 2
KERNELS = len(WIDTHS) + LEARNT_KERNELS
FIGURES = 7 + 3 * KERNELS
VECTOR = 384  # the width of a sentence vector, and of the encoder
SHOWN = 8  # past needs that are read
MAX_TOKENS = 256  # of one sequence
TEXT_TOKENS = 48  # of one text in it
HIDDEN = 128
# The rows of every table of tokens that are no texts.
SPECIAL = ("[CLS]", "[SEP]", "right", "wrong", ",")
CLS, SEP, RIGHT, WRONG, COMMA = range(len(SPECIAL))
NOTHING = -1


class Logs(NamedTuple):
    """What is known of some workers for one need each: vectors of the need [rows, 384] and of what each worker was
    asked [rows, entries, 384], the verdicts (1 right, 0 wrong), and which entries there are [rows, entries]. Rows with
    one `group` are workers of one pool. `likeness` is the cosine of need and card, of a tool alone."""

    need: Tensor
    past: Tensor
    verdicts: Tensor
    present: Tensor
    group: Tensor
    is_tool: Tensor
    likeness: Tensor


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The tokens of texts [texts, TEXT_TOKENS], padded with 0, and how many each has. The first rows are SPECIAL."""

    tokens: Tensor
    lengths: Tensor


def measure_cosines(logs: Logs) -> Tensor:
    """The cosine of each need with each entry of its worker's log [rows, entries]; -1 where there is none."""
    cosines = torch.einsum("rv,rev->re", logs.need.float(), logs.past.float())
    return torch.where(logs.present, cosines, torch.full_like(cosines, -1.0))


def join_segments(table: TokenTable, segments: Tensor) -> tuple[Tensor, Tensor]:
    """Join texts of the table, by number [rows, segments], to sequences of tokens without gaps; NOTHING is left out.
    Returns tokens and mask [rows, longest]."""
    there = segments != NOTHING
    tokens = table.tokens[segments.clamp(min=0)]
    places = torch.arange(tokens.shape[2], device=tokens.device)
    filled = (places < table.lengths[segments.clamp(min=0)].unsqueeze(2)) & there.unsqueeze(2)
    tokens, filled = tokens.flatten(1), filled.flatten(1)
    # A token moves left by the number of gaps before it: its place is the number of tokens up to it.
    targets = filled.long().cumsum(1) - 1
    longest = min(MAX_TOKENS, int(filled.sum(1).max()))
    targets = torch.where(filled & (targets < longest), targets, longest)  # the last column is thrown away
    joined = torch.zeros(len(tokens), longest + 1, dtype=torch.long, device=tokens.device)
    joined.scatter_(1, targets, tokens.long())
    lengths = filled.sum(1, keepdim=True).clamp(max=longest)
    return joined[:, :longest], torch.arange(longest, device=tokens.device) < lengths


def show_log(cosines: Tensor, past: Tensor, verdicts: Tensor) -> Tensor:
    """The segments of the entries that are most like the need, the most similar first: verdict, text, separator."""
    count = min(SHOWN, cosines.shape[1])
    if not count:
        return past.new_zeros((len(past), 0))
    best = cosines.topk(count, dim=1)
    shown = best.values > -1.0
    verdict = torch.where(verdicts.gather(1, best.indices) > 0.5, RIGHT, WRONG)
    entries = torch.stack([verdict, past.gather(1, best.indices), torch.full_like(best.indices, SEP)], dim=2)
    return torch.where(shown.unsqueeze(2), entries, NOTHING).flatten(1)


def _logit(rate: Tensor) -> Tensor:
    return torch.logit(rate, eps=1e-3)


class LogFigures(nn.Module):  # type: ignore[misc]  # torch has no types here
    """The figures of a log: rates and amounts, of the worker and of its whole pool."""

    def __init__(self) -> None:
        super().__init__()
        self.directions = nn.Parameter(torch.eye(VECTOR).repeat(LEARNT_KERNELS, 1, 1))
        self.sharpness = nn.Parameter(torch.tensor([8.0, 16.0]))
        self.threshold = nn.Parameter(torch.tensor([0.4, 0.4]))

    def forward(self, logs: Logs, cosines: Tensor) -> Tensor:
        """The figures [rows, FIGURES]."""
        turned = [
            torch.einsum("rv,rev->re", need, past)
            for need, past in zip(self.turn(logs.need), self.turn(logs.past), strict=True)
        ]
        return self.count(logs, cosines, turned)

    def turn(self, vectors: Tensor) -> list[Tensor]:
        """Vectors after each learnt turn, of length 1."""
        return [nn.functional.normalize(vectors.float() @ direction, dim=-1) for direction in self.directions]

    def count(self, logs: Logs, cosines: Tensor, turned: Sequence[Tensor]) -> Tensor:
        """The figures, by the cosines of needs and entries [rows, entries], and by those after each learnt turn, which
        go through a soft step."""
        fixed = [torch.exp((cosines - 1) / width) for width in WIDTHS]
        learnt = zip(turned, self.sharpness, self.threshold, strict=True)
        weights = fixed + [torch.sigmoid(sharpness * (cosine - threshold)) for cosine, sharpness, threshold in learnt]
        kernels = torch.stack(weights, dim=1) * logs.present.unsqueeze(1)  # [rows, kernels, entries]
        amounts, rights = kernels.sum(2), (kernels * logs.verdicts.unsqueeze(1)).sum(2)
        count = logs.present.sum(1, keepdim=True).float()
        right = (logs.verdicts * logs.present).sum(1, keepdim=True)
        pool_count, pool_right = _sum_groups(count, logs.group), _sum_groups(right, logs.group)
        # Each rate leans on the wider one where there is little: kernel on worker, worker on pool, pool on a half.
        pool_rate = (pool_right + 1) / (pool_count + 2)
        rate = (right + 2 * pool_rate) / (count + 2)
        near = (rights + rate) / (amounts + 1)
        pool_near = (_sum_groups(rights, logs.group) + pool_rate) / (_sum_groups(amounts, logs.group) + 1)
        closest = cosines.amax(1, keepdim=True).clamp(min=0) if cosines.shape[1] else torch.zeros_like(count)
        tool = logs.is_tool.float().unsqueeze(1)
        single = [tool, tool * logs.likeness.unsqueeze(1), _logit(pool_rate), pool_count.log1p(), _logit(rate)]
        return torch.cat([*single, count.log1p(), closest, _logit(near), amounts.log1p(), _logit(pool_near)], dim=1)


def _sum_groups(values: Tensor, group: Tensor) -> Tensor:
    """The sum over the rows of the same group, in each row."""
    sums = values.new_zeros((int(group.max()) + 1, values.shape[1])).index_add(0, group, values)
    return sums[group]


class SuccessPredictor(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A logit of p(this worker serves this need) for each row. `encoder` is a BERT of width 384."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.figures = LogFigures()
        self.hidden = nn.Linear(VECTOR + FIGURES, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        self.direct = nn.Linear(FIGURES, 1)
        for layer in (self.out, self.direct):  # one half for everybody, until something is learnt
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, tokens: Tensor, mask: Tensor, logs: Logs, cosines: Tensor) -> Tensor:
        """The logits [rows]."""
        reading = self.read(tokens, mask)
        with torch.autocast(tokens.device.type, enabled=False):  # few numbers, and a probability: keep them exact
            return self.judge(reading, self.figures(logs, cosines))

    def read(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """What the encoder makes of each row [rows, 384]."""
        states: Tensor = self.encoder(input_ids=tokens, attention_mask=mask.long()).last_hidden_state.float()
        kept = mask.unsqueeze(2).float()
        return (states * kept).sum(1) / kept.sum(1).clamp(min=1)

    def judge(self, reading: Tensor, figures: Tensor) -> Tensor:
        """The logits [rows], by what was read and by the figures of each row's log."""
        hidden = nn.functional.gelu(self.hidden(torch.cat([reading, figures], dim=1)))
        logits: Tensor = (self.out(hidden) + self.direct(figures)).squeeze(1)
        return logits

    def head_state(self) -> dict[str, Tensor]:
        """All weights beside the encoder's."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("encoder.")}

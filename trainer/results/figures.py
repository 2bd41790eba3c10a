"""Computes the figures of orchestrators from result rows, with intervals, and which ones are worth their cost.

Pure functions over result rows (rows.py). The unit is the task: a task's score is the share of its samples that were
right, every task counts the same, and intervals are resampled over tasks, because samples of one task are not
independent. No figure depends on the order of the rows. Differences: paired.py.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from trainer.results.by_task import SamplesByTask, estimate_mean, group_by_task
from trainer.results.rows import ResultRow
from trainer.results.statistics import Estimate, bootstrap_mean, entropy, mean, pass_all, pass_at, quantile

GroupKey = Literal["orchestrator", "family", "level", "condition", "split", "source"]
MeanPrice = Literal["cost", "tokens"]  # of an episode
Price = Literal["cost", "tokens", "p50_s"]
DIRECT = "direct:"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Figures(_Frozen):
    """The figures of one set of episodes.

    `k` is the number of samples that every task has at least; `mean` is mean@k, `pass_at_k` the chance that one of
    k samples is right, `pass_all_k` (pass^k) that all are. `valid_turns` is the share of turns that could be parsed;
    `recovery` the share of right answers among the `failed_episodes`, those with a failed call. `cost` (US dollars)
    and `tokens` are sums over all episodes, `*_per_episode` means. `busy_s` is the time in which at least one episode
    ran; `speedup` the mean of serial time (all steps and turns one after another) over the episode's time. `turns`,
    `steps`, `depth`, `width` are means over episodes.
    `access_precision`, `access_recall`, `matched`, `extra_steps`, `extra_depth` and `overshared_chars` compare with
    the reference plan (evaluation/access_score.py); None where no task has one. `entropy` of worker use is in bits,
    `shares` are those of all calls.
    """

    tasks: int
    episodes: int
    k: int
    mean: Estimate
    pass_at_k: Estimate
    pass_all_k: Estimate
    valid_turns: float | None
    statuses: dict[str, int]
    recovery: float | None
    failed_episodes: int
    outcomes: dict[str, int]
    cost: float
    cost_per_episode: float
    tokens: int
    tokens_per_episode: float
    p50_s: float
    p95_s: float
    busy_s: float
    speedup: float | None
    turns: float
    steps: float
    depth: float
    width: float
    access_precision: float | None
    access_recall: float | None
    matched: float | None
    extra_steps: float | None
    extra_depth: float | None
    overshared_chars: float | None
    entropy: float
    shares: dict[str, float]


class ParetoPoint(_Frozen):
    """An orchestrator's price and score; `efficient`: no other one is as cheap and better, or as good and cheaper."""

    name: str
    price: float
    mean: Estimate
    efficient: bool


def compute_figures(rows: Collection[ResultRow]) -> Figures:
    """Compute the figures of these rows. Where they are of several conditions a task counts once in each."""
    return compute_grouped_figures(group_by_task(rows))


def compute_grouped_figures(tasks: SamplesByTask) -> Figures:
    """Compute the figures of rows that are grouped by task already."""
    rows = [row for samples in tasks.values() for row in samples.rows]
    scores = [(samples.right, len(samples.rows)) for samples in tasks.values()]
    k = min((count for _, count in scores), default=0)
    calls = _sum_counts(row.workers for row in rows)
    failed = [row for row in rows if row.failed_calls]
    turns = sum(row.turns for row in rows)
    speedups = [row.serial_s / row.wall_s for row in rows if row.wall_s > 0]
    cost, tokens = [row.cost for row in rows], [row.tokens_in + row.tokens_out for row in rows]
    walls = [row.wall_s for row in rows]
    planned = [row for row in rows if row.oracle_steps is not None]
    return Figures(
        tasks=len(scores),
        episodes=len(rows),
        k=k,
        mean=estimate_mean(tasks),
        pass_at_k=bootstrap_mean([pass_at(k, *score) for score in scores]),
        pass_all_k=bootstrap_mean([pass_all(k, *score) for score in scores]),
        valid_turns=1 - sum(row.turn_errors for row in rows) / turns if turns else None,
        statuses=_sum_counts(row.statuses for row in rows),
        recovery=_mean_of_present([float(row.correct) for row in failed]),
        failed_episodes=len(failed),
        outcomes=_sum_counts({row.outcome: 1} for row in rows),
        cost=math.fsum(cost),
        cost_per_episode=mean(cost),
        tokens=sum(tokens),
        tokens_per_episode=mean(tokens),
        p50_s=quantile(walls, 0.50),
        p95_s=quantile(walls, 0.95),
        busy_s=compute_busy_s(rows),
        speedup=_mean_of_present(speedups),
        turns=mean([row.turns for row in rows]),
        steps=mean([row.steps for row in rows]),
        depth=mean([row.depth for row in rows]),
        width=mean([row.width for row in rows]),
        access_precision=_mean_of_present([row.access_precision for row in planned]),
        access_recall=_mean_of_present([row.access_recall for row in planned]),
        matched=_mean_of_present([_divide(row.matched_steps, row.oracle_steps) for row in planned]),
        extra_steps=_mean_of_present([row.steps - (row.oracle_steps or 0) for row in planned]),
        extra_depth=_mean_of_present([row.depth - (row.oracle_depth or 0) for row in planned]),
        overshared_chars=_mean_of_present([row.overshared_chars for row in planned]),
        entropy=entropy(list(calls.values())),
        shares={name: count / sum(calls.values()) for name, count in calls.items()},
    )


def group_rows(rows: Iterable[ResultRow], key: GroupKey | str) -> dict[str, list[ResultRow]]:
    """Group rows by a key, in the order of first appearance."""
    parts: dict[str, list[ResultRow]] = {}
    for row in rows:
        parts.setdefault(str(getattr(row, key)), []).append(row)
    return parts


def compute_figures_by(rows: Iterable[ResultRow], key: GroupKey) -> dict[str, Figures]:
    """Compute the figures of each group of rows."""
    return {value: compute_figures(part) for value, part in group_rows(rows, key).items()}


def find_pareto_points(figures: Mapping[str, Figures], price: Price = "cost") -> list[ParetoPoint]:
    """Rank orchestrators by price (US dollars or tokens per episode, or median seconds), the cheapest first, and mark
    the Pareto front."""
    prices = {name: get_price(row, price) for name, row in figures.items()}

    def is_dominated(name: str) -> bool:
        mine = (prices[name], -figures[name].mean.mean)
        others = ((prices[other], -figures[other].mean.mean) for other in figures)
        return any(other != mine and other[0] <= mine[0] and other[1] <= mine[1] for other in others)

    points = [
        ParetoPoint(name=name, price=prices[name], mean=figures[name].mean, efficient=not is_dominated(name))
        for name in figures
    ]
    return sorted(points, key=lambda point: (point.price, -point.mean.mean, point.name))


def find_best_single(figures: Mapping[str, Figures]) -> str | None:
    """Find the `direct:AGENT` with the highest mean (of equal ones the cheapest); None when none solved a task."""
    single = [name for name in figures if name.startswith(DIRECT) and figures[name].mean.mean > 0]
    return min(single, key=lambda name: (-figures[name].mean.mean, figures[name].cost_per_episode, name), default=None)


def compute_busy_s(rows: Iterable[ResultRow]) -> float:
    """Compute the seconds in which at least one episode ran: pauses between a kill and a resume do not count."""
    total, until = 0.0, float("-inf")
    for start, end in sorted((row.at - row.wall_s, row.at) for row in rows):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def get_price(figures: Figures, price: Price) -> float:
    """What an episode takes: US dollars, tokens, or median seconds."""
    return {"cost": figures.cost_per_episode, "tokens": figures.tokens_per_episode, "p50_s": figures.p50_s}[price]


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up counts by name, the largest first; names with a count of 0 are left out."""
    total: dict[str, int] = {}
    for row in counts:
        for name, count in row.items():
            total[name] = total.get(name, 0) + count
    positive = [(name, count) for name, count in total.items() if count > 0]
    return dict(sorted(positive, key=lambda item: (-item[1], item[0])))


def _divide(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _mean_of_present(values: Iterable[float | None]) -> float | None:
    """Compute the mean of the values that are not None; None when there is none."""
    present = [value for value in values if value is not None]
    return mean(present) if present else None

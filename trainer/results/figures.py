"""What evaluations say about orchestrators: figures with intervals, and who is worth their cost.

Pure functions over result rows (rows.py). The unit is the task: a task's score is the share of its samples
that were right, every task counts the same, and intervals are resampled over tasks, because samples of one
task are no independent evidence. No figure depends on the order of the rows. Differences: paired.py.
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
Price = Literal["cost", "tokens", "p50_s"]
DIRECT = "direct:"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Figures(_Frozen):
    """Everything about one set of episodes.

    `k` is the number of samples that every task has at least; `mean` is mean@k, `pass_at_k` the chance that one
    of k samples is right, `pass_all_k` (pass^k) that all are. `valid_turns` is the share of turns that were
    turns; `recovery` the share of episodes with a failed call that were right all the same, `failed_episodes`
    how many had one. `cost` in US dollars, `cost` and `tokens` for all episodes together, `*_per_episode` means.
    `busy_s` is the time in which at least one episode ran; `speedup` what steps and turns would take one after
    another over what the episode took. `turns`, `steps`, `depth`, `width` are means over episodes.
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
    """An orchestrator's price and score; `efficient` when none is as cheap and better, or as good and cheaper."""

    name: str
    price: float
    mean: Estimate
    efficient: bool


def compute_figures(rows: Collection[ResultRow]) -> Figures:
    """The figures of these rows; they may be of several conditions, a task then counts once in each."""
    return compute_grouped_figures(group_by_task(rows))


def compute_grouped_figures(tasks: SamplesByTask) -> Figures:
    """The figures of rows that were grouped by task already."""
    rows = [row for each in tasks.values() for row in each.rows]
    scores = [(each.right, len(each.rows)) for each in tasks.values()]
    k = min((samples for _, samples in scores), default=0)
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
    """The rows apart by a key, in the order of first appearance."""
    parts: dict[str, list[ResultRow]] = {}
    for row in rows:
        parts.setdefault(str(getattr(row, key)), []).append(row)
    return parts


def compute_figures_by(rows: Iterable[ResultRow], key: GroupKey) -> dict[str, Figures]:
    """The figures by orchestrator, family, level, condition, split or source."""
    return {value: compute_figures(part) for value, part in group_rows(rows, key).items()}


def find_pareto_points(found: Mapping[str, Figures], price: Price = "cost") -> list[ParetoPoint]:
    """Who is worth their price: US dollars an episode, tokens an episode, or median seconds. Cheapest first."""
    prices = {name: _get_price(each, price) for name, each in found.items()}

    def beaten(name: str) -> bool:
        mine = (prices[name], -found[name].mean.mean)
        others = ((prices[other], -found[other].mean.mean) for other in found)
        return any(other != mine and other[0] <= mine[0] and other[1] <= mine[1] for other in others)

    points = [
        ParetoPoint(name=name, price=prices[name], mean=found[name].mean, efficient=not beaten(name)) for name in found
    ]
    return sorted(points, key=lambda point: (point.price, -point.mean.mean, point.name))


def find_best_single(found: Mapping[str, Figures]) -> str | None:
    """Which `direct:AGENT` row has the highest mean (the cheaper one of two); None when none got a task right."""
    single = [name for name in found if name.startswith(DIRECT) and found[name].mean.mean > 0]
    return min(single, key=lambda name: (-found[name].mean.mean, found[name].cost_per_episode, name), default=None)


def compute_busy_s(rows: Iterable[ResultRow]) -> float:
    """How long at least one episode ran, in seconds: pauses between a kill and a resume do not count."""
    total, until = 0.0, float("-inf")
    for start, end in sorted((row.at - row.wall_s, row.at) for row in rows):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _get_price(found: Figures, price: Price) -> float:
    return {"cost": found.cost_per_episode, "tokens": found.tokens_per_episode, "p50_s": found.p50_s}[price]


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """All counts together, the largest first, without those of nothing."""
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    there = [(name, count) for name, count in total.items() if count > 0]
    return dict(sorted(there, key=lambda item: (-item[1], item[0])))


def _divide(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _mean_of_present(values: Iterable[float | None]) -> float | None:
    """The mean of what is there; None without anything."""
    there = [value for value in values if value is not None]
    return mean(there) if there else None

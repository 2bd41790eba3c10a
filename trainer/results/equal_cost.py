"""Compares an orchestrator with the baselines at equal cost.

Two baselines can be mixed: asked for a share of the tasks each, drawn by lot, they cost and score what lies between
them (means do; medians of seconds do not). The best mixtures at every price are the upper convex hull of the baselines
over price, from nothing for nothing
(RouterBench, arXiv 2403.12031, section 3). An orchestrator is worth its price where it lies above the hull. The hull
is chosen on the tasks that it is judged on, which favours the baselines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from trainer.results.by_task import SamplesByTask
from trainer.results.figures import Figures, MeanPrice, get_price
from trainer.results.statistics import Estimate, bootstrap_difference


class CostComparison(BaseModel):
    """An orchestrator against the best mixture of baselines that costs as much: `shares` says of how many tasks each
    baseline gets; the rest are not answered. `difference`: its score minus the mixture's over `tasks` that all of them
    have done, with a 95 % interval over tasks."""

    model_config = ConfigDict(frozen=True)

    shares: dict[str, float]
    difference: Estimate
    tasks: int


class HullPoint(BaseModel):
    """A baseline that no mixture of others beats at its price."""

    model_config = ConfigDict(frozen=True)

    name: str
    price: float
    mean: float


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one orchestrator by task, with the figures of all of them."""

    tasks: SamplesByTask
    figures: Figures


def compare_at_equal_cost(
    results: Mapping[str, Results], price: MeanPrice, baselines: Collection[str]
) -> dict[str, CostComparison]:
    """Compare each orchestrator with the mixtures of baselines other than itself, where there is one to compare with
    and they have done a task in common."""
    compared: dict[str, CostComparison] = {}
    for name in results:
        hull = find_hull({other: results[other].figures for other in baselines if other != name}, price)
        comparison = _compare(name, results, price, hull) if hull else None
        if comparison is not None:
            compared[name] = comparison
    return compared


def find_hull(baselines: Mapping[str, Figures], price: MeanPrice) -> list[HullPoint]:
    """Find the baselines on the upper convex hull of mean score over price, the cheapest first."""
    points = [HullPoint(name=name, price=get_price(row, price), mean=row.mean.mean) for name, row in baselines.items()]
    hull: list[HullPoint] = []
    for point in sorted(points, key=lambda point: (point.price, -point.mean, point.name)):
        if hull and point.mean <= hull[-1].mean:
            continue
        while hull and _rise(hull, len(hull) - 1) <= _slope(hull[-1].price, hull[-1].mean, point):
            hull.pop()
        if point.mean > 0:
            hull.append(point)
    return hull


def _rise(hull: Sequence[HullPoint], place: int) -> float:
    """The slope that leads to a point of the hull from the one before it, or from nothing for nothing."""
    before = hull[place - 1] if place else None
    return _slope(before.price if before else 0.0, before.mean if before else 0.0, hull[place])


def _slope(price: float, score: float, point: HullPoint) -> float:
    return (point.mean - score) / (point.price - price) if point.price > price else float("inf")


def _compare(
    name: str, results: Mapping[str, Results], price: MeanPrice, hull: Sequence[HullPoint]
) -> CostComparison | None:
    shares = _mix(hull, get_price(results[name].figures, price))
    mine = results[name].tasks
    parts = {other: results[other].tasks for other in shares}
    common = [key for key in mine if all(key in tasks for tasks in parts.values())]
    if not common:
        return None
    differences = [
        mine[key].score - sum(share * parts[other][key].score for other, share in shares.items()) for key in common
    ]
    return CostComparison(shares=shares, difference=bootstrap_difference(differences), tasks=len(common))


def _mix(hull: Sequence[HullPoint], price: float) -> dict[str, float]:
    """The shares of the two points of the hull between which a price lies; beyond its end the last one alone."""
    after = next((place for place, point in enumerate(hull) if point.price > price), None)
    if after is None:
        return {hull[-1].name: 1.0}
    before = hull[after - 1] if after else None
    least = before.price if before else 0.0
    share = (price - least) / (hull[after].price - least)
    shares = {hull[after].name: share} | ({before.name: 1 - share} if before else {})
    return {name: part for name, part in shares.items() if part > 0}

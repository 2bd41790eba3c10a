"""The rows of bench/results/agents.json: what they say of a policy, and how new rows take the place of old ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

from bench.agents.ground import Judged

DRAWS = 1000  # of the bootstrap
Row: TypeAlias = dict[str, object]
Gap: TypeAlias = tuple[Judged, Judged, Judged]  # of a policy, of the best single expert, of the best choice


def describe_gaps(gaps: Sequence[Gap], measure: Callable[[Judged], float]) -> Row:
    """What a policy gets over all pools, and the share of the gap that it closes in this measure, with a 95 % interval
    bootstrapped over pools."""
    figures = [(measure(policy), measure(single), measure(best)) for policy, single, best in gaps]
    random = Random(0)
    draws = sorted(_share(random.choices(figures, k=len(figures))) for _ in range(DRAWS))
    return {
        "right": round(sum(policy.right for policy, _, _ in gaps) / len(gaps), 4),
        "cost": round(sum(policy.cost for policy, _, _ in gaps) / len(gaps), 4),
        "closed": round(_share(figures), 4),
        "low": round(draws[DRAWS // 40], 4),
        "high": round(draws[-DRAWS // 40], 4),
    }


def _share(figures: Sequence[tuple[float, float, float]]) -> float:
    """The share of the gap between the best single expert and the best choice."""
    gap = sum(best - single for _, single, best in figures)
    return sum(policy - single for policy, single, _ in figures) / gap if gap else 0.0


def replace_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows of a part, a way of drawing pools and a policy in the place of those that the file has of it."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    new = {_name_measurement(row) for row in rows}
    kept = [row for row in old if _name_measurement(row) not in new]
    path.write_text(json.dumps([*kept, *rows], indent=1) + "\n", encoding="utf-8")


def _name_measurement(row: Row) -> tuple[object, ...]:
    return row["part"], row["pools"], row["policy"]

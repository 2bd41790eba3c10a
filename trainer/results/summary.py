"""Summarizes one orchestrator in one condition, from result rows: a line of `evaluations.jsonl`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from trainer.results.figures import compute_figures
from trainer.results.judge_agreement import list_judges
from trainer.results.rows import JudgeKey, ResultRow


class Evaluation(BaseModel):
    """The results of an evaluation. Times in seconds, cost in US dollars, 95 % intervals over tasks.

    `mean` is mean@samples; `pass_at_k` and `pass_all_k` (pass^k) are the chances that one of the samples, or all of
    them, are right. `family` and `split` are "all" and `level` is 0 where the tasks differ in them; `cells` then
    holds the figures by family, level and split. `turns` counts turns, `turn_errors` those that could not be parsed.
    `steps` and `width` (the most steps that could run at once) are means over episodes. `wall_s` is the time in which
    at least one episode ran. `judges` are the workers that graded answers.
    """

    orchestrator: str
    condition: str = "seen"
    family: str
    level: int
    split: str
    tasks: int
    samples: int = 1
    mean: float
    interval: tuple[float, float]
    pass_at_k: float | None = None
    pass_all_k: float | None = None
    statuses: dict[str, int]
    turns: int
    turn_errors: int
    steps: float
    width: float
    outcomes: dict[str, int]
    wall_s: float
    p50_s: float
    p95_s: float
    speedup: float | None
    tokens: int
    cost: float
    episodes: list[str]
    judges: list[JudgeKey] = []
    cells: list[Evaluation] = []


def summarize(orchestrator: str, rows: Sequence[ResultRow], condition: str = "seen") -> Evaluation:
    """Summarize all rows, and each family, level and split when there are several."""
    cells: dict[tuple[str, int, str], list[ResultRow]] = {}
    for row in rows:
        cells.setdefault((row.family, row.level, row.split), []).append(row)
    whole = _summarize_rows(orchestrator, condition, rows)
    if len(cells) < 2:
        return whole
    parts = [_summarize_rows(orchestrator, condition, cell) for cell in cells.values()]
    return whole.model_copy(update={"cells": parts})


def _summarize_rows(orchestrator: str, condition: str, rows: Sequence[ResultRow]) -> Evaluation:
    figures = compute_figures(rows)
    return Evaluation(
        orchestrator=orchestrator,
        condition=condition,
        family=_common_value([row.family for row in rows]),
        level=int(_common_value([str(row.level) for row in rows], "0")),
        split=_common_value([row.split for row in rows]),
        tasks=figures.tasks,
        samples=figures.k,
        mean=figures.mean.mean,
        interval=(figures.mean.low, figures.mean.high),
        pass_at_k=figures.pass_at_k.mean,
        pass_all_k=figures.pass_all_k.mean,
        statuses=figures.statuses,
        turns=sum(row.turns for row in rows),
        turn_errors=sum(row.turn_errors for row in rows),
        steps=figures.steps,
        width=figures.width,
        outcomes=figures.outcomes,
        wall_s=figures.busy_s,
        p50_s=figures.p50_s,
        p95_s=figures.p95_s,
        speedup=figures.speedup,
        tokens=figures.tokens,
        cost=figures.cost,
        episodes=[row.episode for row in rows],
        judges=list_judges(rows),
    )


def _common_value(values: Sequence[str], otherwise: str = "all") -> str:
    return values[0] if len(set(values)) == 1 else otherwise

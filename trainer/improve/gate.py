"""The gate: whether a candidate may take the place of the serving orchestrator, in sentences.

It must be better on held-out tasks of new traffic, with an interval above 0, and worse in nothing that is guarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trainer.results.improvement import GuardedFigure, SuiteChange

WORSE_BY = 0.03  # right answers that old and general tasks may lose in the mean, or one task where that is more
COST, LEAST_COST = 1.25, 0.0005  # times what a query costs now; US dollars that it may always cost on top
SECONDS = 2.0  # that a query may take on top
UNANSWERED = 0.02  # the share of queries that may be left without a worker's answer on top

Verdict = Literal["better", "open", "worse"]
NAMES = {"own": "new tasks", "old": "old tasks", "general": "tasks of other pools"}


def judge(suites: Sequence[SuiteChange], guarded: Sequence[GuardedFigure]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict and a sentence for each reason. `worse`: it answers worse. `open`: it does not, and is not shown to
    be better, or beyond a bound of what is guarded."""
    losses = tuple(sentence for suite in suites if (sentence := _find_loss(suite)))
    dear = tuple(
        f"{figure.name} is {figure.after:.4g} {figure.unit} and may be {figure.bound:.4g} at most "
        f"({figure.before:.4g} now)."
        for figure in guarded
        if not figure.holds
    )
    if losses:
        return "worse", (*losses, *dear, "Its tasks are set aside: one that is corrected is taken again.")
    own = next((suite for suite in suites if suite.suite == "own"), None)
    if own is None or own.low <= 0:
        measured = "no new task was held out" if own is None else _describe(own)
        dear = (f"It is not shown to be better: {measured}.", *dear)
    if dear or own is None:
        then = ", and set aside if that candidate is no better either" if brings_nothing(suites) else ""
        return "open", (*dear, f"Its tasks are taken again with the next ones{then}.")
    return "better", (f"It is better: {_describe(own)}.", *(f"No worse: {_describe(x)}." for x in suites if x != own))


def brings_nothing(suites: Sequence[SuiteChange]) -> bool:
    """Whether a candidate gained nothing in the mean on new tasks, or lost some of the others."""
    return any(suite.better_by < 0 or (suite.suite == "own" and suite.better_by == 0) for suite in suites)


def guard(name: str, unit: str, figures: tuple[float, float], bound: float) -> GuardedFigure:
    """A guarded figure before and after, rounded so that a report reads well."""
    before, after = figures
    return GuardedFigure(
        name=name, unit=unit, before=round(before, 6), after=round(after, 6), bound=round(max(bound, before), 6)
    )


def _find_loss(suite: SuiteChange) -> str:
    """Why a suite keeps the candidate out; "" where it does not."""
    allowed = 0.0 if suite.suite == "own" else max(WORSE_BY, 1 / max(1, suite.tasks))
    if suite.high < 0 or (suite.suite != "own" and suite.better_by < -allowed - 1e-9):
        return f"It is worse: {_describe(suite)}; {allowed:.0%} may be lost."
    return ""


def _describe(suite: SuiteChange) -> str:
    return (
        f"{suite.before:.0%} before, {suite.after:.0%} after on {suite.tasks} {NAMES[suite.suite]} "
        f"({suite.better_by:+.3f}, 95 % interval {suite.low:+.3f} to {suite.high:+.3f})"
    )

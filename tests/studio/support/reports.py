"""Reports of improvements, as `trainer.results.improvement` writes them, for tests of promotions."""

from __future__ import annotations

from typing import Any

from trainer.results.improvement import GuardedFigure, ImprovementReport, SuiteChange

OWN = SuiteChange(suite="own", tasks=80, before=0.6, after=0.75, better_by=0.15, low=0.05, high=0.25)
COST = GuardedFigure(name="the cost of a query", unit="US dollars", before=0.01, after=0.011, bound=0.012)


def make_report(**changes: Any) -> ImprovementReport:
    """A report that allows the promotion of direct:other on the pool `two`, with some of it changed."""
    report = ImprovementReport(
        pool="two",
        pool_version=1,
        serving="direct:agent",
        candidate="direct:other",
        suites=(OWN,),
        guarded=(COST,),
        hours=1.5,
        promotable=True,
        reasons=("own tasks are better by 0.15 [0.05, 0.25]",),
    )
    return report.model_copy(update=changes)

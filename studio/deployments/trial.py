"""How the sides of a deployment do on its requests: answers, verdicts, cost and time, and how often a shadow agrees
with the answer that was given. The figures come from the stored runs since the candidate is tried."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, or_
from sqlmodel import Session, col, select

from orchestrator.answers import write_answer_key
from orchestrator.traces.store import EpisodeRow, EventRow, Store
from pool_registry.calls.effect_free_pool import MAY_HAVE_EFFECTS
from pool_registry.calls.spending import CAP_CODES
from pool_registry.text import count_of
from studio.deployments.states import DeploymentChange

WITHHELD = CAP_CODES | {MAY_HAVE_EFFECTS}
MANY_IDS = 500  # in one statement
MOST = 2000  # of the newest runs of a side
SIDES = ("serving", "candidate", "shadow")
UNFINISHED = ("running", "waiting", "stopped", "interrupted")  # a shadow is stopped when a request comes


class SideFigures(BaseModel):
    """How one side did. `right` and `wrong` are verdicts of clients and people; costs are US dollars of a request."""

    model_config = ConfigDict(frozen=True)

    side: str
    orchestrator: str
    runs: int
    answered: int
    right: int
    wrong: int
    mean_cost: float
    median_s: float


class Trial(BaseModel):
    """A candidate beside what serves. `pairs` are requests that a shadow ran on, too; `agreed` of them came to the same
    answer. In `withheld` more a call was not made, because it may have effects or might cost more than is left."""

    model_config = ConfigDict(frozen=True)

    sides: tuple[SideFigures, ...]
    pairs: int
    agreed: int
    withheld: int
    shadow_cost: float

    def describe(self) -> list[str]:
        """A sentence for each side, and those about its shadows."""
        return [*map(_describe_side, self.sides), *self.describe_shadows()]

    def describe_shadows(self) -> list[str]:
        """How often a shadow came to the answer that was given, what they cost, and how many are not compared."""
        lines = []
        if self.pairs:
            lines.append(f"The shadow came to the answer that was given in {self.agreed} of {self.pairs} requests.")
        if self.shadow_cost:
            lines.append(f"Its shadows have cost ${self.shadow_cost:.4f}.")
        if self.withheld:
            why = "a call that may have effects, or that the money left does not cover, was not made"
            lines.append(f"Not compared, because {why}: {count_of(self.withheld, 'shadow')}.")
        return lines


def _describe_side(side: SideFigures) -> str:
    verdicts = f", {side.right} right and {side.wrong} wrong by verdict" if side.right or side.wrong else ""
    return (
        f"{side.side}: {side.orchestrator} answered {side.answered} of {count_of(side.runs, 'request')}{verdicts}, "
        f"${side.mean_cost:.4f} and {side.median_s:.1f} s a request."
    )


def measure_trial(store: Store, history: Sequence[DeploymentChange]) -> Trial | None:
    """The figures since the candidate of a deployment is tried; None without a candidate. `history` is newest first."""
    now = history[0]
    if now.state.candidate is None:
        return None
    with Session(store.engine) as session:
        rows = {side: _read_rows(session, now, side) for side in SIDES}
        withheld = _find_withheld(session, rows["shadow"])
    pairs = [row for row in rows["shadow"] if row.id not in withheld]
    answers = store.traces.read_answers([row.shadow_of for row in pairs])
    agreed = sum(_agrees(row.answer, answers.get(row.shadow_of)) for row in pairs)
    tried = now.state.candidate.orchestrator
    names = {"serving": now.state.serving.orchestrator, "candidate": tried, "shadow": tried}
    figures = tuple(_measure_side(side, names[side], kept) for side, kept in rows.items() if kept)
    cost = sum_shadow_cost(store, now.deployment, now.at)
    return Trial(sides=figures, pairs=len(pairs), agreed=agreed, withheld=len(withheld), shadow_cost=cost)


def sum_shadow_cost(store: Store, deployment: str, since: str) -> float:
    """What the shadows of a deployment have cost since a time, US dollars, those that were stopped too."""
    query = select(func.sum(col(EpisodeRow.cost))).where(
        EpisodeRow.deployment == deployment,
        EpisodeRow.side == "shadow",
        EpisodeRow.started_at >= since,
    )
    with Session(store.engine) as session:
        return float(session.exec(query).one() or 0.0)


def _read_rows(session: Session, now: DeploymentChange, side: str) -> list[EpisodeRow]:
    query = select(EpisodeRow).where(
        EpisodeRow.deployment == now.deployment,
        EpisodeRow.side == side,
        EpisodeRow.started_at >= now.at,
        col(EpisodeRow.state).not_in(UNFINISHED),
    )
    return list(session.exec(query.order_by(col(EpisodeRow.started_at).desc()).limit(MOST)))


def _find_withheld(session: Session, rows: Sequence[EpisodeRow]) -> set[str]:
    """The shadows in which a call was not made, because it may have effects or might cost more than is left."""
    withheld = {row.id for row in rows if row.state == "max_cost"}
    ids = [row.id for row in rows]
    names_code = or_(*(col(EventRow.body).contains(f'"{code}"') for code in sorted(WITHHELD)))
    for start in range(0, len(ids), MANY_IDS):
        ended = (EventRow.type == "step_ended", col(EventRow.episode).in_(ids[start : start + MANY_IDS]))
        withheld |= set(session.exec(select(EventRow.episode).where(*ended, names_code)))
    return withheld


def _agrees(answer: str | None, other: str | None) -> bool:
    return answer is not None and other is not None and write_answer_key(answer) == write_answer_key(other)


def _measure_side(side: str, orchestrator: str, rows: Sequence[EpisodeRow]) -> SideFigures:
    return SideFigures(
        side=side,
        orchestrator=orchestrator,
        runs=len(rows),
        answered=sum(row.state == "answered" for row in rows),
        right=sum(row.correct is True for row in rows),
        wrong=sum(row.correct is False for row in rows),
        mean_cost=sum(row.cost for row in rows) / len(rows),
        median_s=median(row.wall_s for row in rows),
    )

"""The stored deployments: an append-only table of changes, each with the whole state after it.

A deployment is what its newest change says. A change is one row in one transaction, so a process that is killed leaves
the state before or the state after.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import cast

from sqlalchemy import Engine
from sqlmodel import Field, Session, SQLModel, col, select

from pool_registry.storage.database import writing
from studio.deployments.gate import list_refusals
from studio.deployments.states import (
    NAME,
    Action,
    Candidate,
    DeploymentChange,
    DeploymentNotFound,
    DeploymentRefused,
    DeploymentState,
    ServingSide,
)
from trainer.results.improvement import ImprovementReport

MAX_REASON_CHARS = 500


class DeploymentChangeRow(SQLModel, table=True):
    """One change. `state` and `report` are JSON."""

    __tablename__ = "deployment_change"

    deployment: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    action: str
    state: str
    back_to: int | None = None
    made_by: str
    made_at: str
    reason: str = ""
    report: str = ""


class Deployments:
    """The deployments of a data folder. `by` is who makes a change."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def names(self) -> list[str]:
        """Every deployment's name, in alphabetical order."""
        query = select(DeploymentChangeRow.deployment).distinct().order_by(col(DeploymentChangeRow.deployment))
        with Session(self._engine) as session:
            return list(session.exec(query))

    def latest(self, name: str) -> DeploymentChange:
        """The newest change, which is the deployment as it is. Raises DeploymentNotFound."""
        with Session(self._engine) as session:
            return _read_latest(session, name)

    def history(self, name: str) -> list[DeploymentChange]:
        """Every change, newest first. Raises DeploymentNotFound."""
        query = select(DeploymentChangeRow).where(DeploymentChangeRow.deployment == name)
        with Session(self._engine) as session:
            rows = session.exec(query.order_by(col(DeploymentChangeRow.number).desc())).all()
        if not rows:
            raise _explain_missing(name)
        return [_read_change(row) for row in rows]

    def find_previous(self, name: str) -> DeploymentChange:
        """The change whose serving side a rollback brings back. Raises DeploymentRefused and DeploymentNotFound."""
        now = self.latest(name)
        return self._get(name, _require_previous(now))

    def list_uses(self) -> list[tuple[str, ServingSide]]:
        """What every deployment may need: what serves, what is tried, and what a rollback brings back."""
        uses = []
        for name in self.names():
            now = self.latest(name)
            serving, candidate = now.state.serving, now.state.candidate
            sides = [serving] if now.back_to is None else [serving, self._get(name, now.back_to).state.serving]
            if candidate is not None:
                sides.append(serving.model_copy(update={"orchestrator": candidate.orchestrator}))
            uses += [(name, side) for side in sides]
        return uses

    def deploy(self, name: str, serving: ServingSide, by: str) -> DeploymentChange:
        """Make a deployment, or give one another pool version and other options. Raises DeploymentRefused for another
        pool or orchestrator: that one is tried as a candidate first."""
        if NAME.fullmatch(name) is None:
            raise DeploymentRefused(
                f"{name[:80]!r} cannot be a deployment's name; use up to 64 letters, digits, dots, _ and -"
            )

        def change(now: DeploymentChange | None) -> DeploymentChange:
            if now is None:
                return _draft(name, None, "deployed", DeploymentState(serving=serving), by)
            _check_same(now, serving)
            return _draft(name, now, "changed", DeploymentState(serving=serving), by, back_to=now.number)

        return self._append(name, change)

    def set_candidate(self, name: str, candidate: Candidate | None, by: str) -> DeploymentChange:
        """Try an orchestrator on the deployment's requests, or none any longer. Raises DeploymentRefused and
        DeploymentNotFound."""

        def change(now: DeploymentChange | None) -> DeploymentChange:
            now = _require(name, now)
            serving = now.state.serving
            if candidate is None and now.state.candidate is None:
                raise DeploymentRefused(f"{name} has no candidate that could be withdrawn")
            if candidate is not None and candidate.orchestrator == serving.orchestrator:
                raise DeploymentRefused(f"{candidate.orchestrator} serves {name} already; name another orchestrator")
            action: Action = "withdrawn" if candidate is None else "candidate"
            return _draft(name, now, action, DeploymentState(serving=serving, candidate=candidate), by)

        return self._append(name, change)

    def promote(
        self, name: str, report: ImprovementReport | None, by: str, although_worse: str = ""
    ) -> DeploymentChange:
        """Let the candidate serve. Raises DeploymentRefused with the report's sentences where it is not shown to be
        better, unless `although_worse` gives a reason, which is kept."""

        def change(now: DeploymentChange | None) -> DeploymentChange:
            now = _require(name, now)
            candidate = now.state.candidate
            if candidate is None:
                raise DeploymentRefused(f"{name} has no candidate; name one with `podium candidate {name}`")
            refusals = list_refusals(report, now.state)
            if refusals and not although_worse.strip():
                raise DeploymentRefused(f"{candidate.orchestrator} is not promoted: {'; '.join(refusals)}")
            serving = now.state.serving.model_copy(update={"orchestrator": candidate.orchestrator})
            return _draft(
                name, now, "promoted", DeploymentState(serving=serving), by, back_to=now.number,
                reason=although_worse if refusals else "", report=report.model_dump_json() if report else "",
            )  # fmt: skip

        return self._append(name, change)

    def roll_back(self, name: str, by: str, reason: str = "") -> DeploymentChange:
        """Let what served before serve again; a candidate is withdrawn. Raises DeploymentRefused where nothing did."""

        def change(now: DeploymentChange | None) -> DeploymentChange:
            now = _require(name, now)
            before = self._get(name, _require_previous(now))
            state = DeploymentState(serving=before.state.serving)
            return _draft(name, now, "rolled back", state, by, back_to=before.back_to, reason=reason)

        return self._append(name, change)

    def _get(self, name: str, number: int) -> DeploymentChange:
        with Session(self._engine) as session:
            row = session.get(DeploymentChangeRow, (name, number))
        assert row is not None, "changes are never deleted one by one"
        return _read_change(row)

    def _append(self, name: str, change: Callable[[DeploymentChange | None], DeploymentChange]) -> DeploymentChange:
        """Add the change that `change` makes of the deployment as it is; nobody else changes it meanwhile."""
        with writing(self._engine, "deployment_change") as session:
            row = session.exec(_select_latest(name)).first()
            made = change(None if row is None else _read_change(row))
            session.add(_write_row(made))
        return made


_KEEP = -1


def _draft(
    name: str,
    now: DeploymentChange | None,
    action: Action,
    state: DeploymentState,
    by: str,
    *,
    back_to: int | None = _KEEP,
    reason: str = "",
    report: str = "",
) -> DeploymentChange:
    """The change after `now`; a rollback leads where it led before, unless `back_to` says otherwise."""
    kept = now.back_to if now is not None else None
    number = 1 if now is None else now.number + 1
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    target = kept if back_to == _KEEP else back_to
    return DeploymentChange(name, number, action, state, target, by, at, reason.strip()[:MAX_REASON_CHARS], report)


def _check_same(now: DeploymentChange, serving: ServingSide) -> None:
    """Refuse what a candidate has to show first, and what changes nothing."""
    before = now.state.serving
    if serving == before:
        raise DeploymentRefused(f"{now.deployment} is served just so already")
    if serving.pool != before.pool:
        raise DeploymentRefused(
            f"{now.deployment} serves the pool {before.pool}, not {serving.pool}; deploy that under another name"
        )
    if serving.orchestrator != before.orchestrator:
        raise DeploymentRefused(
            f"{now.deployment} is served by {before.orchestrator}. Try {serving.orchestrator} on its requests first: "
            f"podium candidate {now.deployment} --orchestrator {serving.orchestrator} --shadow"
        )


def _require(name: str, now: DeploymentChange | None) -> DeploymentChange:
    if now is None:
        raise _explain_missing(name)
    return now


def _require_previous(now: DeploymentChange) -> int:
    if now.back_to is None:
        raise DeploymentRefused(f"nothing served {now.deployment} before {now.state.serving.orchestrator}")
    return now.back_to


def _explain_missing(name: str) -> DeploymentNotFound:
    return DeploymentNotFound(
        f"there is no deployment {name[:80]!r}; `podium deployments` lists them, and "
        "`podium deploy NAME --pool P --orchestrator O` makes one"
    )


def _select_latest(name: str):  # type: ignore[no-untyped-def]
    query = select(DeploymentChangeRow).where(DeploymentChangeRow.deployment == name)
    return query.order_by(col(DeploymentChangeRow.number).desc()).limit(1)


def _read_latest(session: Session, name: str) -> DeploymentChange:
    row = session.exec(_select_latest(name)).first()
    if row is None:
        raise _explain_missing(name)
    return _read_change(row)


def _read_change(row: DeploymentChangeRow) -> DeploymentChange:
    return DeploymentChange(
        row.deployment,
        row.number,
        cast(Action, row.action),
        DeploymentState.model_validate_json(row.state),
        row.back_to,
        row.made_by,
        row.made_at,
        row.reason,
        row.report,
    )


def _write_row(change: DeploymentChange) -> DeploymentChangeRow:
    return DeploymentChangeRow(
        deployment=change.deployment,
        number=change.number,
        action=change.action,
        state=change.state.model_dump_json(),
        back_to=change.back_to,
        made_by=change.by,
        made_at=change.at,
        reason=change.reason,
        report=change.report,
    )

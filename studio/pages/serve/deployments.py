"""The deployments of the Serve page: what it shows of them, and its commands."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.policies.labels import label_orchestrator
from pool_registry.errors import InvalidPool
from studio.access.accounts import current_user
from studio.deployments.check import check_candidate, check_serving
from studio.deployments.gate import find_report, list_refusals
from studio.deployments.states import (
    SHADOW_COST,
    Candidate,
    DeploymentChange,
    DeploymentRefused,
    ServingSide,
)
from studio.deployments.store import Deployments
from studio.deployments.trial import SideFigures, measure_trial
from studio.deployments.words import describe_candidate, describe_evidence, describe_kept_evidence
from studio.frame.commands import Fields, PageCommands, PageReply, command, dollars, text, words
from studio.model_server.server_record import ServerRecord
from studio.pages.serve.deployment_schema import ChangeLine, DeploymentCard, TrialSide, TrialView
from studio.runtime import UNNAMED, Runtime

MOST_CHANGES = 20  # on a card


class DeploymentCommands(PageCommands):
    """The commands about deployments, a part of those of the Serve page."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._deployments = Deployments(runtime.store.engine)

    def list_cards(self, servers: Sequence[ServerRecord]) -> list[DeploymentCard]:
        """Every deployment as the page draws it."""
        return [self._build_card(name, servers) for name in self._deployments.names()]

    @command("owner")
    def deploy(self, fields: Fields) -> PageReply:
        """Make a deployment of a pool's newest version. Raises PoolError; InvalidPool for fields."""
        pool, name = text(fields, "pool"), words(fields, "name")
        if not name:
            raise InvalidPool([("name", "a deployment needs a name, which clients use as the model's")])
        version = self._store.pools.latest(pool).version
        serving = ServingSide(pool=pool, pool_version=version, orchestrator=text(fields, "orchestrator"))
        check_serving(self._store, serving)
        try:
            self._deployments.deploy(name, serving, _name_person())
        except DeploymentRefused as refusal:
            raise InvalidPool([("name", str(refusal))]) from refusal
        return PageReply(f"{name} is deployed. Serve it, and clients ask the model {name}.")

    @command("editor")
    def candidate(self, fields: Fields) -> PageReply:
        """Try an orchestrator in the shadow, or on a `share` in percent. Raises PoolError; InvalidPool for fields."""
        name, share = text(fields, "deployment"), _read_share(fields)
        cap = dollars(fields, "max_cost") or SHADOW_COST
        tried = Candidate(orchestrator=text(fields, "orchestrator"), share=share, max_cost=cap)
        check_candidate(self._store, self._deployments.latest(name).state.serving, tried)
        self._deployments.set_candidate(name, tried, _name_person())
        return PageReply(f"{_describe_tried(tried)}, from the next request on.")

    @command("editor")
    def withdraw(self, fields: Fields) -> PageReply:
        """Try no candidate any longer. Raises DeploymentRefused."""
        change = self._deployments.set_candidate(text(fields, "deployment"), None, _name_person())
        return PageReply(f"{label_orchestrator(change.state.serving.orchestrator)} alone answers {change.deployment}.")

    @command("editor")
    def promote(self, fields: Fields) -> PageReply:
        """Let the candidate serve, on the newest report about it or for a `reason`. Raises DeploymentRefused."""
        name, reason = text(fields, "deployment"), words(fields, "reason")
        state = self._deployments.latest(name).state
        if state.candidate is not None:
            check_serving(self._store, state.serving.model_copy(update={"orchestrator": state.candidate.orchestrator}))
        report = find_report(self._store.home, state)
        change = self._deployments.promote(name, report, _name_person(), reason)
        return PageReply(f"{label_orchestrator(change.state.serving.orchestrator)} answers {name} now.")

    @command("editor")
    def roll_back(self, fields: Fields) -> PageReply:
        """Let what served before serve again. Raises DeploymentRefused."""
        name = text(fields, "deployment")
        check_serving(self._store, self._deployments.find_previous(name).state.serving)
        change = self._deployments.roll_back(name, _name_person(), words(fields, "reason"))
        return PageReply(f"{label_orchestrator(change.state.serving.orchestrator)} answers {change.deployment} again.")

    def _build_card(self, name: str, servers: Sequence[ServerRecord]) -> DeploymentCard:
        history = self._deployments.history(name)
        now, serving = history[0], history[0].state.serving
        before = next((change for change in history if change.number == now.back_to), None)
        return DeploymentCard(
            name=name,
            pool=serving.pool,
            pool_version=serving.pool_version,
            orchestrator=serving.orchestrator,
            label=label_orchestrator(serving.orchestrator),
            ports=[server.port for server in servers if server.deployment == name],
            back_to="" if before is None else _describe_serving(before),
            trial=self._build_trial(history),
            changes=[_build_line(change) for change in history[:MOST_CHANGES]],
        )

    def _build_trial(self, history: Sequence[DeploymentChange]) -> TrialView | None:
        state, trial = history[0].state, measure_trial(self._store, history)
        if trial is None or state.candidate is None:
            return None
        report = find_report(self._store.home, state)
        return TrialView(
            label=label_orchestrator(state.candidate.orchestrator),
            sentence=_describe_tried(state.candidate),
            sides=[_build_side(side) for side in trial.sides],
            notes=trial.describe_shadows(),
            evidence="" if report is None else describe_evidence(report),
            refusals=list_refusals(report, state),
        )


def _name_person() -> str:
    return current_user.get() or UNNAMED


def _read_share(fields: Fields) -> float | None:
    """The share in (0, 1) of a field in percent; None for the shadow. Raises InvalidPool."""
    value = fields.get("share")
    if value in (None, ""):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 100:
        raise InvalidPool([("share", "a share is above 0 and below 100 %")])
    return value / 100


def _describe_tried(candidate: Candidate) -> str:
    return describe_candidate(candidate, label_orchestrator(candidate.orchestrator))


def _describe_serving(change: DeploymentChange) -> str:
    serving = change.state.serving
    return f"{label_orchestrator(serving.orchestrator)} on {serving.pool} v{serving.pool_version}"


def _build_line(change: DeploymentChange) -> ChangeLine:
    return ChangeLine(
        number=change.number,
        action=change.action,
        serves=_describe_change(change),
        by=change.by,
        at=change.at,
        reason=change.reason,
        evidence=describe_kept_evidence(change),
    )


def _describe_change(change: DeploymentChange) -> str:
    if change.action == "candidate" and change.state.candidate is not None:
        return _describe_tried(change.state.candidate)
    return _describe_serving(change)


def _build_side(side: SideFigures) -> TrialSide:
    return TrialSide(
        side=side.side,
        label=label_orchestrator(side.orchestrator),
        runs=side.runs,
        answered=side.answered,
        right=side.right,
        wrong=side.wrong,
        cost=side.mean_cost,
        median_s=side.median_s,
    )

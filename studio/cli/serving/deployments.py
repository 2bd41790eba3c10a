"""`podium deploy | deployments | candidate | promote | rollback`: names that requests go to, and what answers them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.orchestrator_name import TurnOptions, add_options
from pool_registry.errors import PoolError
from studio.cli.options import MAX_VERSION, FinalizerOption, HomeOption, JsonOption, name_self, open_prepared_store
from studio.cli.serving.options import DeadlineOption, FollowUpsOption, ModeOption, RecordOption, RequestCostOption
from trainer.cli.options import WithoutOption
from trainer.cli.table_help import POLICY_NAMES

if TYPE_CHECKING:
    from studio.deployments.states import DeploymentChange, DeploymentOptions

Name = Annotated[str, typer.Argument(help="The deployment's name, which is the model's name for clients.")]


def deploy(
    name: Name,
    pool: Annotated[str, typer.Option(help="The pool, or one version of it: NAME@VERSION. Default: its newest.")],
    orchestrator: Annotated[
        str, typer.Option(help=f"A checkpoint, {POLICY_NAMES}. Default: what the Run page chooses for the pool.")
    ] = "",
    max_total_tokens: Annotated[int | None, typer.Option(help="Most tokens for a request.", min=1)] = None,
    max_cost: RequestCostOption = None,
    deadline: DeadlineOption = None,
    mode: ModeOption = None,
    without: WithoutOption = None,
    finalizer: FinalizerOption = True,
    record: RecordOption = True,
    follow_ups: FollowUpsOption = True,
    home: HomeOption = None,
) -> None:
    """Give a pool version and an orchestrator a name that requests go to (podium serve --deployment NAME). A name that
    is there gets another pool version or other options; another orchestrator is tried as a candidate first."""
    from studio.deployments.check import check_serving
    from studio.deployments.states import ServingSide
    from studio.deployments.store import Deployments
    from studio.orchestrators.default import choose_default

    options = _read_options(max_total_tokens, max_cost, deadline, mode, record, follow_ups)
    turns = TurnOptions(without=tuple(without or ()), finalizer=None if finalizer else False)
    with open_prepared_store(home) as store:
        pool_name, version = _parse_pool(pool)
        stored = store.pools.latest(pool_name) if version is None else store.pools.get(pool_name, version)
        chosen = add_options(orchestrator or choose_default(stored.pool), turns)
        serving = ServingSide(pool=pool_name, pool_version=stored.version, orchestrator=chosen, options=options)
        check_serving(store, serving)
        change = Deployments(store.engine).deploy(name, serving, name_self())
    typer.echo(_describe(change))


def list_deployments(
    name: Annotated[str, typer.Argument(help="One deployment, with every change of it. Default: all.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the deployments, or show one with its history and how its candidate does."""
    from studio.deployments.store import Deployments
    from studio.deployments.trial import measure_trial

    with open_prepared_store(home) as store:
        deployments = Deployments(store.engine)
        changes = deployments.history(name) if name else [deployments.latest(one) for one in deployments.names()]
        trial = measure_trial(store, deployments.history(name)) if name else None
    if as_json:
        trial_document = None if trial is None else trial.model_dump()
        typer.echo(json.dumps({"changes": [_to_json(change) for change in changes], "trial": trial_document}, indent=1))
        return
    for change in changes:
        typer.echo(_describe(change))
    for line in trial.describe() if trial is not None else ():
        typer.echo(line)
    if not changes:
        typer.echo("There is no deployment. Make one: podium deploy NAME --pool P --orchestrator O")


def candidate(
    name: Name,
    orchestrator: Annotated[str, typer.Option(help=f"A checkpoint, {POLICY_NAMES}.")] = "",
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow", help="Run it on requests that were answered, while nothing else runs. Nobody sees it."
        ),
    ] = False,
    share: Annotated[
        float | None, typer.Option(help="Let it answer this share of the conversations, such as 0.1.", min=0, max=1)
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most US dollars of all its shadows together. Default: 1.", min=0)
    ] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Try no candidate any longer.")] = False,
    home: HomeOption = None,
) -> None:
    """Try another orchestrator on the requests of a deployment: in the shadow, or on a share of them."""
    from studio.deployments.check import check_candidate
    from studio.deployments.states import SHADOW_COST, Candidate
    from studio.deployments.store import Deployments

    if [bool(orchestrator and shadow), bool(orchestrator and share), withdraw].count(True) != 1:
        raise PoolError("say --orchestrator C with --shadow or with --share 0.1, or --withdraw alone")
    if share is not None and share >= 1:
        raise PoolError("a share is below 1; `podium promote` lets the candidate answer everything")
    if max_cost is not None and max_cost <= 0:
        raise PoolError("--max-cost must be above 0")
    with open_prepared_store(home) as store:
        deployments = Deployments(store.engine)
        tried = None
        if not withdraw:
            cap = SHADOW_COST if max_cost is None else max_cost
            tried = Candidate(orchestrator=orchestrator, share=share, max_cost=cap)
            check_candidate(store, deployments.latest(name).state.serving, tried)
        change = deployments.set_candidate(name, tried, name_self())
    typer.echo(_describe(change))


def promote(
    name: Name,
    report: Annotated[
        Path | None,
        typer.Option(help="Folder of the improvement's report. Default: the newest about this candidate."),
    ] = None,
    although_worse: Annotated[
        str, typer.Option(metavar="REASON", help="Promote it without that evidence; the reason is kept.")
    ] = "",
    home: HomeOption = None,
) -> None:
    """Let the candidate serve. Refused unless its report shows a gain on own tasks whose interval lies above 0, no
    loss on old and general ones, and no guarded figure beyond its bound."""
    from studio.deployments.check import check_serving
    from studio.deployments.gate import find_report, read_named_report
    from studio.deployments.store import Deployments

    with open_prepared_store(home) as store:
        deployments = Deployments(store.engine)
        state = deployments.latest(name).state
        evidence = find_report(store.home, state) if report is None else read_named_report(report)
        if state.candidate is not None:
            check_serving(store, state.serving.model_copy(update={"orchestrator": state.candidate.orchestrator}))
        change = deployments.promote(name, evidence, name_self(), although_worse)
    typer.echo(_describe(change))


def rollback(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
    home: HomeOption = None,
) -> None:
    """Let what served before serve again, from the next request on. A candidate is withdrawn."""
    from studio.deployments.check import check_serving
    from studio.deployments.store import Deployments

    with open_prepared_store(home) as store:
        deployments = Deployments(store.engine)
        check_serving(store, deployments.find_previous(name).state.serving)
        change = deployments.roll_back(name, name_self(), reason)
    typer.echo(_describe(change))


def _read_options(
    max_total_tokens: int | None,
    max_cost: float | None,
    deadline: float | None,
    mode: Literal["escalate", "review"] | None,
    record: bool,
    follow_ups: bool,
) -> DeploymentOptions:
    from pydantic import ValidationError

    from studio.deployments.states import DeploymentOptions

    try:
        return DeploymentOptions(
            max_total_tokens=max_total_tokens, max_cost=max_cost, deadline_s=deadline, mode=mode, record=record,
            follow_ups=follow_ups,
        )  # fmt: skip
    except ValidationError as error:
        raise PoolError("--max-cost and --deadline must be above 0") from error


def _parse_pool(text: str) -> tuple[str, int | None]:
    """A pool's name, and its version where one is named. Raises PoolError."""
    name, separator, version = text.rpartition("@")
    if not separator:
        return text, None
    if not (version.isascii() and version.isdigit() and 1 <= int(version[:20]) <= MAX_VERSION):
        raise PoolError(f"{text!r} names no version; write NAME@VERSION, such as starter@3")
    return name, int(version)


def _describe(change: DeploymentChange) -> str:
    from studio.deployments.words import describe_change

    return describe_change(change)


def _to_json(change: DeploymentChange) -> dict[str, object]:
    return {
        "deployment": change.deployment,
        "number": change.number,
        "action": change.action,
        "by": change.by,
        "at": change.at,
        "reason": change.reason,
        "report": json.loads(change.report) if change.report else None,
        **change.state.model_dump(),
    }

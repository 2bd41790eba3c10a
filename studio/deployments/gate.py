"""Whether a candidate may be promoted: what the report of an improvement has to show."""

from __future__ import annotations

from pathlib import Path

from pool_registry.storage.data_folder import Home
from studio.deployments.states import DeploymentRefused, DeploymentState
from trainer.improve.gate import judge
from trainer.results.improvement import FILE, DamagedReport, ImprovementReport, read_report

NO_REPORT = "no report compares it with what serves on this pool version; measure the improvement first"


def list_refusals(report: ImprovementReport | None, state: DeploymentState) -> list[str]:
    """Why the candidate of a deployment may not be promoted, a sentence each; nothing where it may."""
    if report is None:
        return [NO_REPORT]
    if mismatches := _list_mismatches(report, state):
        return mismatches
    verdict, reasons = judge(report.suites, report.guarded)  # whatever the report concludes
    if verdict != "better":
        return [*reasons]
    return [] if report.promotable else [*report.reasons] or ["its report says that it may not be promoted"]


def _list_mismatches(report: ImprovementReport, state: DeploymentState) -> list[str]:
    """How the report speaks of something else than this deployment and its candidate."""
    serving, candidate = state.serving, state.candidate
    assert candidate is not None, "only a candidate is promoted"
    rows = (
        ("pool", report.pool, serving.pool),
        ("pool version", report.pool_version, serving.pool_version),
        ("serving orchestrator", report.serving, serving.orchestrator),
        ("candidate", report.candidate, candidate.orchestrator),
    )
    return [
        f"the report's {what} is {theirs}, this deployment's is {ours}" for what, theirs, ours in rows if theirs != ours
    ]


def read_named_report(folder: Path) -> ImprovementReport:
    """The report of a folder that a person names. Raises DeploymentRefused where there is none to read."""
    try:
        return read_report(folder)
    except OSError as error:
        raise DeploymentRefused(f"{folder} holds no {FILE}; name the folder that an improvement wrote") from error
    except DamagedReport as error:
        raise DeploymentRefused(str(error)) from error


def find_report(home: Home, state: DeploymentState) -> ImprovementReport | None:
    """The newest report of the data folder about this candidate, pool version and serving orchestrator; None without
    one."""
    if state.candidate is None:
        return None
    for file in sorted(home.root.glob(f"*/*/{FILE}"), key=_find_time, reverse=True):
        try:
            report = read_report(file.parent)
        except (OSError, DamagedReport):  # of another candidate, for all that can be read of it
            continue
        if not _list_mismatches(report, state):
            return report
    return None


def _find_time(file: Path) -> float:
    """When a file was written, in seconds since 1970; 0 where somebody has deleted it meanwhile."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0

"""CI of a few repositories: pipelines, runners, test reports, quotas."""

from typing import Literal, TypedDict


class Pipeline(TypedDict):
    status: str
    runner: str
    minutes: int
    triggered_by: str


class Runner(TypedDict):
    cores: int
    memory_gb: int
    system: str
    cents_per_minute: float


class Estimate(TypedDict):
    minutes: float
    cost_cents: float


class SlowTest(TypedDict):
    name: str
    seconds: float


class SuiteReport(TypedDict):
    passed: int
    failed: int
    skipped: int
    slowest: SlowTest


class Quota(TypedDict):
    used_minutes: int
    limit_minutes: int
    approver: str


PIPELINES: dict[str, dict[str, tuple[str, str, int, str]]] = {
    "atlas-web": {"main": ("passed", "basalt", 14, "Kemal"), "darkmode": ("failed", "quartz", 9, "Yvette")},
    "orbit-api": {"main": ("failed", "granite", 22, "Rosalind"), "grpc": ("running", "basalt", 17, "Kemal")},
    "pocket-ios": {"main": ("passed", "opal", 31, "Ignacio"), "widgets": ("cancelled", "opal", 6, "Thandi")},
    "tariff-db": {"main": ("passed", "quartz", 11, "Thandi"), "sharding": ("queued", "granite", 40, "Rosalind")},
}
RUNNERS: dict[str, tuple[int, int, str, float]] = {
    "basalt": (8, 16, "debian", 1.5),
    "granite": (32, 128, "fedora", 6.0),
    "quartz": (4, 8, "alpine", 0.8),
    "opal": (10, 24, "macos", 9.5),
}
CORE_MINUTES = {"atlas-web": 96, "orbit-api": 240, "pocket-ios": 310, "tariff-db": 64}
SUITES: dict[str, dict[str, tuple[int, int, int, str, float]]] = {
    "atlas-web": {
        "unit": (812, 3, 10, "test_router", 4.2),
        "browser": (96, 7, 4, "test_checkout", 61.5),
        "a11y": (41, 0, 2, "test_contrast", 8.0),
    },
    "orbit-api": {"unit": (1530, 12, 0, "test_cursor", 9.8), "contract": (220, 5, 15, "test_webhook", 33.1)},
    "pocket-ios": {"unit": (640, 0, 21, "test_keychain", 6.4), "snapshot": (180, 14, 6, "test_onboarding", 27.9)},
    "tariff-db": {"unit": (305, 1, 0, "test_rounding", 2.7), "migration": (58, 2, 1, "test_backfill", 148.0)},
}
MONTHLY_USE = {"growth": 5200, "platform": 9100, "mobile": 7400}
LIMITS = {"growth": 8000, "platform": 14000, "mobile": 10000}
APPROVERS = {"growth": "Celeste", "platform": "Dmitri", "mobile": "Anneke"}


def _known(value: str, table: dict, what: str) -> str:
    key = value.strip().lower()
    if key not in table:
        raise ValueError(f"{value!r} is not a {what} of this build farm. There are {', '.join(table)}.")
    return key


def latest_pipeline(repo: str, branch: str = "main") -> Pipeline:
    """Return the most recent pipeline of a branch.

    Args:
        repo: Name of the repository.
        branch: Name of the branch.
    """
    branches = PIPELINES[_known(repo, PIPELINES, "repository")]
    status, runner, minutes, triggered_by = branches[_known(branch, branches, "branch")]
    return {"status": status, "runner": runner, "minutes": minutes, "triggered_by": triggered_by}


def runner_specs(runner: str) -> Runner:
    """Hardware, operating system and price per minute of a build machine."""
    cores, memory, system, price = RUNNERS[_known(runner, RUNNERS, "runner")]
    return {"cores": cores, "memory_gb": memory, "system": system, "cents_per_minute": price}


def estimate_build(repo: str, runner: str, cache: Literal["warm", "cold"] = "warm", machines: int = 1) -> Estimate:
    """Estimates how long a build of a repository takes on a runner, and what it costs in cents.

    Args:
        repo: Repository to build.
        runner: Machine type to build on.
        cache: A cold cache makes the build half as long again.
        machines: How many machines share the work.
    """
    cores, _, _, price = RUNNERS[_known(runner, RUNNERS, "runner")]
    slower = {"warm": 1.0, "cold": 1.5}
    work = CORE_MINUTES[_known(repo, CORE_MINUTES, "repository")] * slower[_known(cache, slower, "cache state")]
    minutes = work / cores / machines
    return {"minutes": round(minutes, 2), "cost_cents": round(minutes * machines * price, 2)}


def suite_report(repo: str, suites: list[str]) -> SuiteReport:
    """Test results of a repo, summed over the given suites, with the slowest test among them."""
    known = SUITES[_known(repo, SUITES, "repository")]
    rows = [known[_known(suite, known, "test suite")] for suite in suites]
    if not rows:
        raise ValueError(f"Name at least one suite out of {', '.join(known)}.")
    slowest = max(rows, key=lambda row: row[4])
    return {
        "passed": sum(row[0] for row in rows),
        "failed": sum(row[1] for row in rows),
        "skipped": sum(row[2] for row in rows),
        "slowest": {"name": slowest[3], "seconds": slowest[4]},
    }


def team_quota(team: str, month: int) -> Quota:
    """How many build minutes a team used in a month, how many it may use, and who can raise the limit.

    Args:
        team: Name of the team.
        month: Month of this year, 1 to 12.
    """
    key = _known(team, MONTHLY_USE, "team")
    if not 1 <= month <= 12:
        raise ValueError(f"There is no month {month}; months are 1 to 12.")
    used = MONTHLY_USE[key] + month * 7 % 5 * 300
    return {"used_minutes": used, "limit_minutes": LIMITS[key], "approver": APPROVERS[key]}


def subtract(minuend: float, subtrahend: float) -> float:
    """minuend - subtrahend"""
    return round(minuend - subtrahend, 6)


def percent_of(part: float, whole: float) -> float:
    """What percentage of the whole a part is."""
    if whole == 0:
        raise ValueError("The whole must not be zero.")
    return round(part / whole * 100, 2)

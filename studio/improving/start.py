"""What serves a pool, and an improvement of it in a process of its own, which outlives the studio."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.traces.store import Store
from pool_registry.storage.data_folder import Home
from studio.deployments.states import DeploymentRefused, DeploymentState
from studio.deployments.store import Deployments
from studio.improving.schedule import take_due
from studio.orchestrators.default import choose_default

LOOK_S = 30.0  # between two looks at the timers


def find_serving(store: Store, pool: str) -> str:
    """The orchestrator that serves a pool where nobody names one: that of its deployments, or the pool's default.

    Raises PoolNotFound, and DeploymentRefused where deployments are served by different ones.
    """
    deployed = {name: state.serving.orchestrator for name, state in list_deployed(store, pool).items()}
    if len(set(deployed.values())) > 1:
        named = "; ".join(f"{name} by {orchestrator}" for name, orchestrator in deployed.items())
        raise DeploymentRefused(f"the deployments of {pool} are served by different orchestrators ({named}); name one")
    return next(iter(deployed.values())) if deployed else choose_default(store.pools.latest(pool).pool)


def list_deployed(store: Store, pool: str) -> dict[str, DeploymentState]:
    """The deployments of a pool, by their names."""
    deployments = Deployments(store.engine)
    states = {name: deployments.latest(name).state for name in deployments.names()}
    return {name: state for name, state in states.items() if state.serving.pool == pool}


def find_log(home: Home, pool: str) -> Path:
    """Where improvements of a pool that nobody watches write what they do."""
    return home.root / "improvements" / f"{pool}.log"


def start_improvement(home: Home, pool: str, serving: str = "", anew: bool = False) -> subprocess.Popen[bytes]:
    """Begin `podium improve` in a process of its own; its output is added to PODIUM_HOME/improvements/POOL.log. With
    `anew` one that was interrupted is given up."""
    file = find_log(home, pool)
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "studio", "improve", "--pool", pool, "--home", str(home.root)]
    command += ["--serving", serving] if serving else []
    command += ["--anew"] if anew else []
    with file.open("ab") as log:
        return subprocess.Popen(  # noqa: S603  our own interpreter and module, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home.root,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )


def watch_timers(store: Store, tell: Callable[[str], object]) -> None:
    """Begin what is due, one after another, until this process is ended. Raises StorageError."""
    while True:
        for pool, timer in take_due(store.home).items():
            tell(f"improving {pool}")
            code = start_improvement(store.home, pool, timer.serving).wait()
            tell(f"improving {pool} ended with {code}; see {find_log(store.home, pool)}")
        time.sleep(LOOK_S)


def start_due(store: Store) -> list[subprocess.Popen[bytes]]:
    """Begin what is due by its timer. Raises StorageError."""
    return [start_improvement(store.home, pool, timer.serving) for pool, timer in take_due(store.home).items()]

"""A process that is killed while it promotes or rolls back leaves one of the two whole, and the server goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from orchestrator.traces.store import open_store
from pool_registry.pool import rename_pool
from pool_registry.storage.data_folder import find_home
from studio.deployments.states import Candidate, ServingSide
from studio.deployments.store import Deployments
from tests.studio.support.edge_home import home, model
from tests.studio.support.served import serving
from tests.trust.trials import choose_trials, count_trials

__all__ = ["home", "model"]

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
SIDES = {"direct:agent", "direct:other"}


@pytest.fixture(scope="module")
def store(home):
    store = open_store(find_home(str(home)))
    pool = rename_pool(store.pools.latest("edge").pool, "two")
    store.pools.save(pool.with_worker(pool.workers[0].model_copy(update={"name": "other"})))
    yield store
    store.close()


def deploy(store, name: str) -> Deployments:
    deployments = Deployments(store.engine)
    deployments.deploy(name, ServingSide(pool="two", pool_version=1, orchestrator="direct:agent"), "ada")
    return deployments


def ask(url: str, name: str) -> httpx.Response:
    body = {"model": name, "messages": [{"role": "user", "content": "say hello"}]}
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)


def list_faults(deployments: Deployments, name: str, acknowledged: int) -> list[str]:
    """What is wrong with the record after a kill: a change lost, half of one, or a side that is neither."""
    changes = deployments.history(name)[::-1]
    faults = [] if acknowledged <= len(changes) else [f"change {acknowledged} is lost"]
    faults += [] if [change.number for change in changes] == list(range(1, len(changes) + 1)) else ["a gap"]
    faults += [] if changes[-1].state.serving.orchestrator in SIDES else ["served by neither"]
    return faults


def test_a_killed_promotion_or_rollback_leaves_one_of_the_two_whole(store, home):
    deployments, chance = deploy(store, "killed"), random.Random(49)
    command = [sys.executable, "-m", "tests.studio.support.change_and_die", str(home), "killed"]
    with (
        serving(home, "--deployment", "killed") as url,
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program,
    ):
        for trial in range(choose_trials(40)):
            program.stdin.write(f"{chance.uniform(0, 0.1)}\n")
            program.stdin.flush()
            acknowledged = int(program.stdout.readline())
            faults = list_faults(deployments, "killed", acknowledged)
            reply = ask(url, "killed")
            served = deployments.latest("killed").state.serving.orchestrator
            if reply.status_code != 200 or reply.headers["x-podium-orchestrator"] != served:
                faults.append(f"{reply.status_code}: {reply.text} by {reply.headers.get('x-podium-orchestrator')}")
            count_trials(1, len(faults))
            assert not faults, (trial, faults)
        program.stdin.close()
    assert len(deployments.history("killed")) > trial


def test_a_killed_server_comes_back_with_what_serves_now(store, home):
    deployments = deploy(store, "restarted")
    with serving(home, "--deployment", "restarted") as url:
        assert ask(url, "restarted").headers["x-podium-orchestrator"] == "direct:agent"
        (record,) = [path for path in (home / "serve").glob("*.json") if path.stem in url]
        owner = record.read_text().split('"owner":"')[1].split('"')[0]
        deployments.set_candidate("restarted", Candidate(orchestrator="direct:other"), "ada")
        deployments.promote("restarted", None, "ada", "a trial")
        signal_owner(owner)
        with pytest.raises(httpx.HTTPError):
            ask(url, "restarted")
    with serving(home, "--deployment", "restarted") as url:
        assert ask(url, "restarted").headers["x-podium-orchestrator"] == "direct:other"


def signal_owner(owner: str) -> None:
    from orchestrator.engine.process_identity import signal_process

    assert signal_process(owner, signal.SIGKILL)

"""What serves a pool: its deployments' orchestrator, or the pool's default."""

from __future__ import annotations

import pytest

from studio.cli.improve import list_next_steps
from studio.deployments.states import DeploymentRefused, ServingSide
from studio.deployments.store import Deployments
from studio.improving.start import find_serving, list_deployed
from studio.orchestrators.default import choose_default
from studio.prepare import prepare_store
from tests.studio.support.reports import make_report

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    prepared = prepare_store(str(tmp_path_factory.mktemp("home")))
    yield prepared
    prepared.close()


def test_deployments_say_what_serves_a_pool(store):
    default = choose_default(store.pools.latest("starter").pool)
    assert find_serving(store, "starter") == default
    deployments = Deployments(store.engine)
    deployments.deploy("desk", ServingSide(pool="starter", pool_version=1, orchestrator="react"), "ada")
    assert find_serving(store, "starter") == "react" and list(list_deployed(store, "starter")) == ["desk"]
    deployments.deploy("shop", ServingSide(pool="starter", pool_version=1, orchestrator="router"), "ada")
    with pytest.raises(DeploymentRefused, match="desk by react; shop by router"):
        find_serving(store, "starter")


def test_a_candidate_that_may_serve_says_by_which_commands():
    report = make_report()
    (line,) = list_next_steps(report, ["desk"])
    assert f"podium candidate desk --orchestrator {report.candidate} --shadow" in line and "podium promote desk" in line
    assert not list_next_steps(report.model_copy(update={"promotable": False}), ["desk"])

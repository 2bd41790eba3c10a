"""`deploy`, `deployments`, `candidate`, `promote` and `rollback` from a shell, with their errors in words."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from orchestrator.errors import OrchestratorError
from pool_registry.errors import PoolError
from studio.__main__ import app
from tests.studio.support.reports import make_report
from trainer.results.improvement import write_report

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def podium(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--home", str(home)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    run("deploy", "help", "--pool", "starter@1", "--orchestrator", "direct", "--max-cost", "0.5")
    return run


def test_a_deployment_is_made_of_a_version_with_its_options(podium):
    (change,) = json.loads(podium("deployments", "help", "--json"))["changes"]
    assert (change["deployment"], change["number"], change["action"]) == ("help", 1, "deployed") and change["by"]
    assert (change["serving"]["pool"], change["serving"]["pool_version"]) == ("starter", 1)
    assert change["serving"]["options"]["max_cost"] == 0.5
    assert change["serving"]["orchestrator"].startswith("direct")


def test_a_candidate_is_promoted_with_the_report_of_a_folder_and_rolled_back(podium, tmp_path):
    serving = json.loads(podium("deployments", "--json"))["changes"][0]["serving"]["orchestrator"]
    assert "react answers 10% of the conversations" in podium(
        "candidate", "help", "--orchestrator", "react", "--share", "0.1"
    )
    with pytest.raises(PoolError, match="react is not promoted: no report"):
        podium("promote", "help")
    write_report(tmp_path, make_report(pool="starter", serving=serving, candidate="react"))
    assert "react serves starter@1" in podium("promote", "help", "--report", str(tmp_path))
    assert "own tasks +0.150 [+0.050, +0.250], n = 80" in podium("deployments", "help")
    assert "complaints" in podium("rollback", "help", "--reason", "complaints")
    assert json.loads(podium("deployments", "help", "--json"))["changes"][1]["report"]["candidate"] == "react"
    assert "react runs in the shadow" in podium("candidate", "help", "--orchestrator", "react", "--shadow")
    podium("candidate", "help", "--withdraw")


def test_what_a_deployment_needs_is_not_deleted(podium):
    podium("deploy", "spare", "--pool", "starter", "--orchestrator", "react")
    with pytest.raises(PoolError, match="deployment help serves it"):
        podium("delete", "pool", "starter", "--yes")
    podium("delete", "deployment", "spare", "--yes")
    assert "spare" not in podium("deployments")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["deploy", "help", "--pool", "starter@x"], "NAME@VERSION"),
        (["deploy", "help", "--pool", "starter@99999999999999999999"], "NAME@VERSION"),
        (["deploy", "new", "--pool", "starter@99", "--orchestrator", "direct"], "no version 99"),
        (["deploy", "new", "--pool", "starter", "--orchestrator", "nobody"], "no orchestrator 'nobody'"),
        (["deploy", "new", "--pool", "starter", "--orchestrator", "direct", "--deadline", "-1"], "above 0"),
        (["candidate", "help", "--orchestrator", "react"], "--shadow or with --share"),
        (["candidate", "help", "--withdraw"], "no candidate"),
        (["promote", "help"], "no candidate"),
        (["rollback", "nobody"], "no deployment 'nobody'"),
        (["serve", "--deployment", "help", "--max-cost", "1"], "set by `podium deploy help`"),
        (["serve", "--deployment", "nobody"], "no deployment 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(podium, words, sentence):
    with pytest.raises((PoolError, OrchestratorError)) as refused:
        podium(*words)
    assert sentence in str(refused.value)

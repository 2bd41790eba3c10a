"""Deployments: what may be promoted, who changed what, and what a rollback brings back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pool_registry.storage.data_folder import find_home
from pool_registry.storage.upgrade import open_engine
from studio.deployments.gate import find_report, read_named_report
from studio.deployments.states import Candidate, DeploymentNotFound, DeploymentRefused, ServingSide
from studio.deployments.store import Deployments
from tests.studio.support.reports import COST, OWN, make_report
from trainer.results.improvement import FILE, SuiteChange, write_report

SERVING = ServingSide(pool="two", pool_version=1, orchestrator="direct:agent")
OTHER = Candidate(orchestrator="direct:other", share=0.5)


@pytest.fixture
def deployments(tmp_path):
    engine = open_engine(find_home(str(tmp_path)))
    made = Deployments(engine)
    made.deploy("help", SERVING, "ada")
    yield made
    engine.dispose()


def lose(suite: str, by: float) -> SuiteChange:
    """A suite on which the candidate is worse by this share of the tasks."""
    figures = {"after": OWN.before - by, "better_by": -by, "low": -by - 0.1, "high": -by + 0.1}
    return OWN.model_copy(update={"suite": suite, **figures})


def serving(deployments: Deployments) -> str:
    return deployments.latest("help").state.serving.orchestrator


def test_a_promotion_needs_a_report_of_a_gain(deployments):
    with pytest.raises(DeploymentRefused, match="no candidate"):
        deployments.promote("help", make_report(), "ada")
    deployments.set_candidate("help", OTHER, "ada")
    with pytest.raises(DeploymentRefused, match="no report"):
        deployments.promote("help", None, "ada")
    change = deployments.promote("help", make_report(), "grace")
    assert (change.action, change.by, change.state.candidate) == ("promoted", "grace", None)
    assert serving(deployments) == "direct:other" and "0.15" in change.report


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pool": "one"}, "the report's pool is one, this deployment's is two"),
        ({"pool_version": 2}, "pool version is 2"),
        ({"serving": "react"}, "serving orchestrator is react"),
        ({"candidate": "react"}, "candidate is react"),
        ({"promotable": False, "reasons": ("old tasks are worse by 0.2",)}, "old tasks are worse by 0.2"),
        ({"suites": (OWN.model_copy(update={"low": 0.0}),)}, "It is not shown to be better: 60% before, 75% after"),
        ({"suites": (OWN.model_copy(update={"suite": "general"}),)}, "no new task was held out"),
        ({"suites": (OWN, lose("old", 0.4))}, "It is worse: 60% before, 20% after on 80 old tasks"),
        ({"suites": (OWN, lose("general", 0.4))}, "It is worse: 60% before, 20% after on 80 tasks of other pools"),
        ({"guarded": (COST.model_copy(update={"after": 0.02}),)}, "is 0.02 US dollars and may be 0.012 at most"),
    ],
)
def test_a_promotion_without_that_evidence_is_refused_in_the_reports_words(deployments, changes, sentence):
    deployments.set_candidate("help", OTHER, "ada")
    with pytest.raises(DeploymentRefused, match="direct:other is not promoted") as refused:
        deployments.promote("help", make_report(**changes), "ada")
    assert sentence in str(refused.value) and serving(deployments) == "direct:agent"


def test_a_person_may_promote_a_worse_one_with_a_reason_that_is_kept(deployments):
    deployments.set_candidate("help", OTHER, "ada")
    with pytest.raises(DeploymentRefused):
        deployments.promote("help", None, "ada", "   ")
    deployments.promote("help", None, "ada", "half the cost, agreed with sales")
    assert deployments.history("help")[0].reason == "half the cost, agreed with sales"


def test_a_rollback_goes_back_step_by_step_and_withdraws_the_candidate(deployments):
    for name in ("direct:other", "react"):
        deployments.set_candidate("help", Candidate(orchestrator=name), "ada")
        deployments.promote("help", None, "ada", "a trial")
    deployments.set_candidate("help", Candidate(orchestrator="fan_out"), "ada")
    back = deployments.roll_back("help", "grace", "complaints")
    assert (back.state.serving.orchestrator, back.state.candidate) == ("direct:other", None)
    deployments.roll_back("help", "grace")
    assert serving(deployments) == "direct:agent"
    with pytest.raises(DeploymentRefused, match="nothing served help before direct:agent"):
        deployments.roll_back("help", "grace")
    changes = deployments.history("help")
    assert [change.number for change in changes] == list(range(8, 0, -1))
    assert [change.by for change in changes[:2]] == ["grace", "grace"] and changes[1].reason == "complaints"


def test_a_name_takes_another_pool_version_but_no_unmeasured_orchestrator(deployments):
    with pytest.raises(DeploymentRefused, match="podium candidate help --orchestrator react --shadow"):
        deployments.deploy("help", SERVING.model_copy(update={"orchestrator": "react"}), "ada")
    with pytest.raises(DeploymentRefused, match="another name"):
        deployments.deploy("help", SERVING.model_copy(update={"pool": "one"}), "ada")
    with pytest.raises(DeploymentRefused, match="just so"):
        deployments.deploy("help", SERVING, "ada")
    deployments.deploy("help", SERVING.model_copy(update={"pool_version": 2}), "ada")
    assert deployments.roll_back("help", "ada").state.serving == SERVING


def test_names_and_candidates_that_make_no_sense_are_refused(deployments):
    with pytest.raises(DeploymentRefused, match="letters, digits"):
        deployments.deploy("a name", SERVING, "ada")
    with pytest.raises(DeploymentRefused, match="serves help already"):
        deployments.set_candidate("help", Candidate(orchestrator="direct:agent"), "ada")
    with pytest.raises(DeploymentRefused, match="no candidate"):
        deployments.set_candidate("help", None, "ada")
    with pytest.raises(DeploymentNotFound, match="podium deployments"):
        deployments.roll_back("helpp", "ada")
    assert deployments.names() == ["help"]


def test_the_newest_report_about_the_candidate_is_taken_by_itself(deployments, tmp_path):
    home = find_home(str(tmp_path))
    state = deployments.set_candidate("help", OTHER, "ada").state
    assert find_report(home, state) is None
    for name, report in (("a", make_report(hours=2)), ("b", make_report(candidate="react"))):
        folder = tmp_path / "improvements" / name
        folder.mkdir(parents=True)
        write_report(folder, report)
    (tmp_path / "improvements" / "c").mkdir()
    (tmp_path / "improvements" / "c" / "improvement.json").write_text("{")
    assert find_report(home, state) == make_report(hours=2)
    with pytest.raises(DeploymentRefused, match="damaged"):
        read_named_report(tmp_path / "improvements" / "c")
    with pytest.raises(DeploymentRefused, match=r"holds no improvement\.json"):
        read_named_report(tmp_path)


def test_a_report_that_goes_while_reports_are_looked_through_is_passed_over(deployments, tmp_path, monkeypatch):
    state = deployments.set_candidate("help", OTHER, "ada").state
    folder = tmp_path / "improvements" / "a"
    folder.mkdir(parents=True)
    write_report(folder, make_report())
    listed = [folder.with_name("deleted") / FILE, folder / FILE]
    monkeypatch.setattr(Path, "glob", lambda *_: iter(listed))
    assert find_report(find_home(str(tmp_path)), state) == make_report()

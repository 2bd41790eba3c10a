"""Which two orchestrators an improvement measures, and where."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.trainer.support.results import row
from trainer.improve import measure, stages
from trainer.improve.measure import Measurements, write_general_recipe, write_recipe
from trainer.improve.record import Improvement, ImprovementPlan
from trainer.improve.stages import STAGES
from trainer.jobs.job_folder import JobFolder
from trainer.results.rows import append_result
from trainer.tasks.practice.traffic_record import digest_query

SERVING = "smollm2-reader+whole_query+who=predictor"
KEPT = "+who=predictor@abcdefa+whole_query"


@pytest.fixture
def improvement(tmp_path: Path) -> Improvement:
    plan = ImprovementPlan(
        id="crew-abcdef", key="abcdef", pool="crew", pool_version=1, serving=SERVING, measured=f"smollm2-reader{KEPT}",
        stage="plans", taken=(), own=(digest_query("A new task?"),), learnt=24, replayed=0, held_out=2, started=0.0,
        jobs={"learn": "crew-1"},
    )  # fmt: skip
    folder = tmp_path / "improvements" / plan.id
    folder.mkdir(parents=True)
    return Improvement(folder, plan)


@pytest.mark.parametrize("stage", ["plans", "right_runs"])
def test_a_trained_reader_chooses_workers_as_the_one_that_it_is_measured_against(improvement, stage, monkeypatch):
    monkeypatch.setattr(stages, "complete_steps", lambda folder: [(24, folder)])
    jobs = SimpleNamespace(folder=lambda _: JobFolder(improvement.folder))
    assert STAGES[stage].name_candidate(improvement, SimpleNamespace(jobs=jobs)) == f"crew-1@24{KEPT}"


def test_on_other_pools_both_choose_by_the_traces_of_now_because_nothing_was_kept_for_these(
    improvement, tmp_path, monkeypatch
):
    monkeypatch.setattr(measure, "PROVIDERS", {})
    monkeypatch.setattr(measure, "find_practice_file", lambda _: improvement.folder / "plan.json")
    store = SimpleNamespace(pools=SimpleNamespace(names=lambda: ["crew", "other"]))
    improvement.update(candidate=f"crew-1@24{KEPT}")
    own, general = write_recipe(improvement), write_general_recipe(improvement, store)
    assert own.evaluate.orchestrators == (f"smollm2-reader{KEPT}", f"crew-1@24{KEPT}")
    names = tuple(name.replace("@abcdefa", "") for name in own.evaluate.orchestrators)
    assert general.evaluate.orchestrators == names and general.evaluate.reference == names[0]
    rows = [row(orchestrator=name, source="file:held_out", query="A new task?") for name in own.evaluate.orchestrators]
    rows += [row(orchestrator=name, source="practice:other", query="Elsewhere?") for name in names]
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    for result in rows:
        append_result(job.results, result)
    measured = Measurements(improvement, SimpleNamespace(jobs=SimpleNamespace(folder=lambda _: job)), ["crew-2"])
    assert [(suite.suite, suite.tasks) for suite in measured.compare(general=True)] == [("own", 1), ("general", 1)]

"""One label for each orchestrator's name."""

from __future__ import annotations

import pytest

from orchestrator.checkpoints import JOB_NAME
from orchestrator.policies.labels import label_orchestrator
from pool_registry.storage.data_folder import find_home


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("starter-grpo", "Tiny after SFT and GRPO"),
        ("starter-grpo+samples=4", "Tiny after SFT and GRPO, 4 plans a turn"),
        ("direct", "Direct"),
        ("direct:solver", "Direct, solver"),
        ("model:solver", "solver as planner"),
        ("model:solver:plan+constrained", "solver as planner, constrained"),
        ("model:solver:calls", "solver as planner, in calls"),
        ("try-a1b2c3@40", "try-a1b2c3 at step 40"),
        ("/somewhere/checkpoints/mine", "mine"),
    ],
)
def test_an_orchestrator_has_one_label(name, label):
    assert label_orchestrator(name) == label


def test_a_checkpoint_goes_by_the_name_that_a_person_gave_its_job(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    folder = find_home().jobs / "try-a1b2c3"
    folder.mkdir(parents=True)
    (folder / JOB_NAME).write_text("Second try")
    assert label_orchestrator("try-a1b2c3@40") == "Second try at step 40"
    assert label_orchestrator("try-a1b2c3") == "Second try"

"""A job's figures go to trackers while it runs; those of before a resume do not come twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from orchestrator.errors import TrackerRefused
from orchestrator.tracking import live
from orchestrator.tracking.spans import Span
from orchestrator.tracking.table import TrackerRow
from trainer.errors import InvalidRecipe
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.tracked import track_job
from trainer.recipe import dump_recipe, parse_recipe


class Notebook:
    """A tracker that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, dict[str, float]]] = []
        self.spans: list[Span] = []
        self.closed = False

    def push(self, spans: Sequence[Span]) -> None:
        self.spans += spans

    def log(self, run: str, step: int, figures: Mapping[str, float]) -> None:
        self.rows.append((run, step, dict(figures)))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def notebook(monkeypatch) -> Notebook:
    notebook = Notebook()
    row = TrackerRow("notebook", "Keeps all.", "NAME", lambda _: notebook, "json", "none")
    monkeypatch.setattr(live, "find_tracker", lambda place: (row, place))
    monkeypatch.delenv(live.VARIABLE, raising=False)
    return notebook


def test_new_lines_are_sent_with_their_stage_and_step(notebook, store, tmp_path):
    folder = JobFolder(tmp_path).create()
    folder.append_metrics("sft", 1, {"loss": 2.0})
    with track_job(["notebook:x"], "job-1", store, folder):
        folder.append_metrics("grpo", 2, {"reward": 0.5, "cost/total": 0.1})
    assert notebook.rows == [("job-1", 2, {"grpo/reward": 0.5, "grpo/cost/total": 0.1})] and notebook.closed


def test_without_a_place_nothing_is_started(store, tmp_path, monkeypatch):
    monkeypatch.delenv(live.VARIABLE, raising=False)
    monkeypatch.setattr("trainer.jobs.tracked._Curves", None)
    with track_job((), "job-1", store, JobFolder(tmp_path).create()):
        pass


def test_a_place_that_cannot_be_used_ends_the_job_before_it_begins(store, tmp_path):
    with (
        pytest.raises(TrackerRefused, match="there is no tracker"),
        track_job(["x:y"], "j", store, JobFolder(tmp_path)),
    ):
        raise AssertionError("it must not begin")


def test_a_recipe_names_places_that_are_looked_up():
    recipe = parse_recipe("{sft: {}, track: ['trackio:sums']}")
    assert recipe.track == ("trackio:sums",) and parse_recipe(dump_recipe(recipe)) == recipe
    with pytest.raises(InvalidRecipe, match="there is no tracker 'wandb:x'"):
        parse_recipe("{sft: {}, track: ['wandb:x']}")

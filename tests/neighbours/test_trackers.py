"""Traces and curves in Trackio and MLflow, read back through these packages themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.tracking.live import Tracking
from studio.__main__ import app
from tests.neighbours.conftest import require

require("mlflow")
require("trackio")
pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.delenv("PODIUM_TRACK", raising=False)
    monkeypatch.chdir(tmp_path)  # MLflow makes a folder for files here
    return tmp_path / "home"


def podium(*words: str) -> str:
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code in (0, 1), result.output + str(result.exception)
    return result.stdout


def run(home: Path) -> str:
    """Ask the calculator by a fixed plan; the episode's id."""
    return json.loads(podium("run", "2+2", "--orchestrator", "random_plan:3", "--json", "--home", str(home)))["id"]


def read_mlflow(place: str) -> list:
    import mlflow

    uri, _, experiment = place.removeprefix("mlflow:").partition("#")
    client = mlflow.MlflowClient(uri)
    there = client.get_experiment_by_name(experiment or "podium")
    return client.search_traces(experiment_ids=[there.experiment_id])


def test_mlflow_shows_the_trace_with_its_tree_cost_and_tokens(home, tmp_path):
    place = f"mlflow:sqlite:///{tmp_path}/mlflow.db#sums"
    episode = run(home)
    podium("export", "traces", "--episode", episode, "--to", place, "--home", str(home))
    (trace,) = read_mlflow(place)
    spans = {span.name: span for span in trace.data.spans}
    root = spans["invoke_workflow starter"]
    assert root.parent_id is None and root.attributes["gen_ai.conversation.id"] == episode
    assert root.attributes["podium.cost_usd"] == 0 and "2+2" in str(root.inputs)
    assert spans["plan random_plan:3"].parent_id == root.span_id


def test_a_run_goes_to_trackio_while_it_happens(home, monkeypatch):
    from trackio.sqlite_storage import SQLiteStorage

    monkeypatch.setenv("PODIUM_TRACK", "trackio:sums")
    episode = run(home)
    (trace,) = SQLiteStorage.get_traces("sums", run="traces")
    assert trace["metadata"]["session_id"] == episode and trace["metadata"]["pool"] == "starter"
    assert trace["messages"][0] == {"role": "user", "content": "2+2"}
    by_name = {span["name"]: span for span in trace["spans"]}
    root = by_name["invoke_workflow starter"]
    assert root["parent_id"] is None and root["cost_usd"] == 0 and root["usage"]["input_tokens"] == 0
    assert by_name["plan random_plan:3"]["kind"] == "generation"
    assert all(span["parent_id"] == root["id"] for span in trace["spans"] if span is not root)


def test_curves_are_runs_with_steps(home, tmp_path, monkeypatch):
    import mlflow
    from trackio import Api

    place = f"mlflow:sqlite:///{tmp_path}/mlflow.db"
    tracking = Tracking([place, "trackio:curves"], lambda _name, _pool_hash: None)
    for step, reward in ((1, 0.25), (2, 0.5)):
        tracking.log("job-1", step, {"grpo/reward": reward})
    monkeypatch.setattr("orchestrator.tracking.live.CLOSE_S", 200)  # MLflow makes its database first
    tracking.close()
    client = mlflow.MlflowClient(place.removeprefix("mlflow:"))
    (job,) = client.search_runs([client.get_experiment_by_name("podium").experiment_id])
    assert job.info.run_name == "job-1"
    assert [(row.step, row.value) for row in client.get_metric_history(job.info.run_id, "grpo/reward")] == [
        (1, 0.25),
        (2, 0.5),
    ]
    (curve,) = Api().runs("curves")
    assert curve.name == "job-1"

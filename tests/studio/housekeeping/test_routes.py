"""Housekeeping as the pages ask for it: jobs, checkpoints, evaluations and publications."""

from __future__ import annotations

import pytest

from studio.publish.publication_record import claim_record, find_record
from studio.publish.request import parse_publication
from tests.browser.support.jobs import write_job


@pytest.fixture
def send(client):
    def post(action: str, **fields):
        return client.post(f"/api/pages/housekeeping/{action}", json=fields).json()

    return post


@pytest.fixture
def job(runtime, monkeypatch) -> str:
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    return write_job(runtime.store)


def test_a_job_is_renamed_everywhere_its_checkpoints_are_shown(client, send, job):
    renamed = send("rename", kind="job", name=job, new=" Second try ")
    assert renamed["ok"] and job in renamed["message"]
    document = client.get(f"/api/jobs/{job}").json()
    assert document["label"] == "Second try"
    assert all(line["label"].startswith("Second try at step ") for line in document["checkpoints"])
    assert not send("rename", kind="checkpoint", name=f"{job}@1", new="x")["ok"]


def test_a_checkpoint_is_deleted_alone_and_put_back(client, send, job):
    names = [line["name"] for line in client.get(f"/api/jobs/{job}").json()["checkpoints"]]
    deleted = send("delete", kind="checkpoint", name=names[0])
    left = client.get(f"/api/jobs/{job}").json()["checkpoints"]
    assert [line["name"] for line in left] == names[1:]
    assert [entry["key"] for entry in send("trash", kinds=["checkpoint"])["entries"]] == [deleted["trash"]]
    assert send("trash", kinds=["pool"])["entries"] == []
    assert send("put_back", trash=deleted["trash"])["name"] == names[0]
    assert [line["name"] for line in client.get(f"/api/jobs/{job}").json()["checkpoints"]] == names


def test_what_a_training_measured_is_deleted_without_the_training(client, runtime, send, job):
    folder = runtime.jobs.folder(job)
    before = folder.evaluations.read_bytes()
    assert "stay" in send("dependents", kind="evaluation", name=job)["affected"][0]
    deleted = send("delete", kind="evaluation", name=job)
    document = client.get(f"/api/jobs/{job}").json()
    assert document["evaluations"] == [] and document["checkpoints"]
    assert not send("delete", kind="evaluation", name=job)["ok"]
    send("put_back", trash=deleted["trash"])
    assert folder.evaluations.read_bytes() == before


def test_the_record_of_a_publication_is_deleted_and_put_back(client, runtime, send):
    request = parse_publication({"pool": "starter", "orchestrator": "starter-grpo", "repo": "tiny"})
    record = claim_record(runtime.store.home, request)
    key = record.key
    assert not send("delete", kind="publication", name=key)["ok"], "it is being published"
    record.update(state="failed", message="stopped by a test")
    deleted = send("delete", kind="publication", name=key)
    assert client.get("/api/publications").json()["publications"] == []
    send("put_back", trash=deleted["trash"])
    assert find_record(runtime.store.home, key).request == request

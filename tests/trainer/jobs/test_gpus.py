"""A job gets GPUs of its own: which ones, how many jobs run at a time, and what stays as it is without any."""

from __future__ import annotations

import os
import sys

import pytest

from tests.trainer.support.nvidia import install_driver
from tests.trainer.support.waiting import until
from trainer.job_process import run_job
from trainer.jobs.gpus import VISIBLE, list_gpus, see_only
from trainer.recipe import parse_recipe

QUICK = parse_recipe("{name: quick, evaluate: {orchestrators: [oracle], source: forge, levels: [1], count: 1}}")
TWO_GPUS = "0, 100\n1, 70000\n"


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """What nvidia-smi says on a machine with two GPUs, the second one with more free memory."""
    monkeypatch.delenv(VISIBLE, raising=False)
    install_driver(tmp_path, monkeypatch, TWO_GPUS)


@pytest.mark.parametrize(
    ("allowed", "gpus"),
    [(None, ["1", "2", "0"]), ("", []), ("-1", []), ("0", ["0"]), ("0,2", ["2", "0"]), ("0, 1", ["1", "0"])],
    ids=["all", "none", "hidden", "one", "two", "spaced"],
)
def test_the_gpus_that_may_be_used_come_by_free_memory(allowed, gpus, tmp_path, monkeypatch):
    install_driver(tmp_path, monkeypatch, "0, 100\n1, 70000\n2, 500\n")
    monkeypatch.delenv(VISIBLE, raising=False)
    if allowed is not None:
        monkeypatch.setenv(VISIBLE, allowed)
    assert list_gpus() == gpus


def test_a_driver_that_does_not_answer_is_a_machine_without_gpus(tmp_path, monkeypatch):
    monkeypatch.delenv(VISIBLE, raising=False)
    install_driver(tmp_path, monkeypatch, "NVIDIA-SMI has failed", status=9)
    assert list_gpus() == []


def test_gpus_are_hidden_from_a_job_alone(monkeypatch):
    monkeypatch.setenv(VISIBLE, "0,1,2")
    with see_only(["2", "0"]):
        assert os.environ[VISIBLE] == "2,0"
    assert os.environ[VISIBLE] == "0,1,2"
    with see_only([]):
        assert os.environ[VISIBLE] == "0,1,2"


@pytest.mark.usefixtures("two_gpus")
def test_two_jobs_have_a_gpu_each_and_the_third_waits_for_one(jobs):
    first, second, third = (jobs.submit(QUICK).id for _ in range(3))
    assert jobs.claim(first) and jobs.claim(second) and not jobs.claim(third)
    assert (jobs.get(first).gpus, jobs.get(second).gpus) == ("1", "0")
    assert jobs.find_blocking(jobs.get(third)).id == first
    jobs.finish(second, "done")
    assert jobs.find_blocking(jobs.get(third)) is None
    assert jobs.claim(third) and jobs.get(third).gpus == "0"


@pytest.mark.usefixtures("two_gpus")
def test_a_job_that_began_without_gpus_keeps_the_others_waiting(jobs, monkeypatch):
    first, second = (jobs.submit(QUICK).id for _ in range(2))
    with monkeypatch.context() as hidden:
        hidden.setenv(VISIBLE, "")
        assert jobs.claim(first) and jobs.get(first).gpus == ""
    assert not jobs.claim(second)


def test_without_gpus_jobs_run_one_at_a_time(jobs, monkeypatch):
    monkeypatch.setenv(VISIBLE, "")
    first, second = (jobs.submit(QUICK).id for _ in range(2))
    assert jobs.claim(first) and not jobs.claim(second)
    assert jobs.start_next() is None and jobs.find_blocking(jobs.get(second)).id == first


@pytest.mark.medium
@pytest.mark.usefixtures("two_gpus")
def test_a_job_that_begins_starts_the_next_one_where_there_is_a_gpu_for_it(store, jobs, monkeypatch):
    """The second process is started with every GPU in sight, the stages of the first see their own alone."""
    started, seen = [], []
    spawn = "trainer.jobs.queue._spawn"
    monkeypatch.setattr(spawn, lambda command, _: started.append((command, os.environ.get(VISIBLE))))
    monkeypatch.setattr("trainer.run_recipe.run_recipe", lambda *_: seen.append(os.environ[VISIBLE]) or True)
    first, second = (jobs.submit(QUICK).id for _ in range(2))
    assert run_job(first, store, jobs)
    assert seen == ["1"]
    assert [(command[:5], visible) for command, visible in started] == [
        ([sys.executable, "-m", "trainer", "run", second], None)
    ] * 2  # as the first begins, and as it ends: the second process has not claimed it


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.usefixtures("two_gpus")
def test_two_jobs_run_at_once_on_two_gpus(jobs):
    evaluate = "{orchestrators: [oracle], source: forge, levels: [1], count: 20000}"
    long = parse_recipe(f"{{name: long, evaluate: {evaluate}}}")
    keys = [jobs.submit(long).id for _ in range(3)]
    jobs.start_next()
    until(lambda: [jobs.get(key).state for key in keys[:2]] == ["running", "running"])
    assert {jobs.get(key).gpus for key in keys[:2]} == {"0", "1"}
    assert jobs.start_next() is None and jobs.get(keys[2]).state == "queued"
    for key in reversed(keys):  # the third first, which would start otherwise
        jobs.stop(key)
    until(lambda: all(jobs.get(key).state == "stopped" for key in keys))
    assert "uses GPU 1" in jobs.folder(keys[0]).log.read_text() + jobs.folder(keys[1]).log.read_text()

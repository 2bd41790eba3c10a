"""Ctrl-C where a job waits for its turn, and options beside a recipe."""

from __future__ import annotations

import pytest

from trainer.cli import jobs as commands
from trainer.cli.options import open_jobs
from trainer.recipe import load_recipe


def test_a_job_that_is_interrupted_while_it_waits_does_not_start_later(tmp_path, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    monkeypatch.setattr(commands, "_wait_for_turn", interrupt)
    with pytest.raises(KeyboardInterrupt):
        commands.start_job(load_recipe("cpu-first-steps"), detach=False, home=str(tmp_path))
    with open_jobs(str(tmp_path)) as (_, jobs):
        (job,) = jobs.all()
        assert job.state == "stopped"
        jobs.start_next()
        assert jobs.get(job.id).state == "stopped"

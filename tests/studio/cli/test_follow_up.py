"""`podium follow-up`: goes on with a run from a shell, or says which question it may mean."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from studio.__main__ import app
from studio.prepare import prepare_store
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.studio.pages.test_follow_up_routes import plan_sums

__all__ = ["endpoint"]

pytestmark = pytest.mark.medium


@pytest.fixture
def studio(tmp_path, monkeypatch, endpoint):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    Endpoint.reply = staticmethod(plan_sums)
    store = prepare_store(str(tmp_path))
    store.pools.save(pool_of(endpoint, "ada"))
    store.close()

    def call(*arguments: str):
        result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


def ask(studio, query: str) -> str:
    result = studio("run", query, "--pool", "p", "--orchestrator", "model:ada:plan", "--json")
    return json.loads(result.stdout)["id"]


def test_a_follow_up_is_understood_and_answered(studio):
    first = ask(studio, "What is 6 * 7?")
    result = studio("follow-up", first, "and 8 * 9?")
    assert (result.exit_code, result.stdout.strip()) == (0, "72")
    assert "understood as: What is 8 * 9?" in result.stderr
    document = json.loads(studio("follow-up", first, "and 8 * 9?", "--json").stdout)
    assert document["query"] == "What is 8 * 9?" and document["follow_up"]["before"][0]["episode"] == first


def test_of_several_questions_one_is_chosen(studio):
    first = ask(studio, "How much is 2 * 3 and 4 * 5?")
    with pytest.raises(Exception, match="say which one") as refusal:
        studio("follow-up", first, "and 6 * 7?")
    assert "--question 'How much is 2 * 3 and 6 * 7?'" in str(refusal.value)
    result = studio("follow-up", first, "and 6 * 7?", "--question", "How much is 2 * 3 and 6 * 7?")
    assert (result.exit_code, result.stdout.strip()) == (0, "42")


def test_a_run_that_is_not_there_is_refused(studio):
    with pytest.raises(Exception, match="no episode"):
        studio("follow-up", "nowhere", "and 8 * 9?")

"""`train own-agents --teacher AGENT`: which recipe is queued, and what is refused before."""

from __future__ import annotations

import pytest

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.orchestrator.support.endpoint import agent
from tests.trainer.jobs.test_own_agents import build_crew
from trainer.cli import jobs
from trainer.errors import InvalidRecipe
from trainer.recipe import Recipe
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.sources.jsonl import TaskLine

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """`train` on a pool of agents with questions; returns the recipe that it would start."""
    home = str(tmp_path / "home")
    monkeypatch.setenv("PODIUM_HOME", home)
    store = open_store(find_home(home))
    pool = build_crew(NOWHERE)
    store.pools.save(pool.with_worker(agent("referee", NOWHERE, judge_only=True)))
    store.close()
    open_task_book("crew").add([TaskLine(query=f"Question {k}?", answer=k, split="train") for k in range(20)])
    started: list[Recipe] = []
    monkeypatch.setattr(jobs, "start_job", lambda recipe, *_: started.append(recipe))

    def run(preset: str, **options) -> Recipe:
        jobs.train(preset, pool="crew", max_cost=2.0, home=home, **options)
        return started.pop()

    return run


def test_the_plans_of_a_teacher_are_imitated_before_grpo(start):
    assert start("own-agents").stages == ("who", "grpo", "evaluate")
    recipe = start("own-agents", teacher="ada")
    assert recipe.stages == ("who", "sft", "grpo", "evaluate") and recipe.max_cost == 2.0
    assert recipe.sft.demonstrations.teacher == "model:ada" and recipe.sft.steps * recipe.sft.batch >= 3 * 20


@pytest.mark.parametrize(
    ("preset", "teacher", "sentence"),
    [
        ("own-agents", "zoe", "has no agent 'zoe'; it has: ada, bea, cy"),
        ("own-agents", "referee", "referee only judges and plans nothing: choose another teacher"),
        ("reader-cpu", "ada", "--teacher goes with own-agents; a recipe of your own names its teacher itself"),
    ],
)
def test_a_teacher_that_cannot_show_plans_is_refused_before_anything_runs(start, preset, teacher, sentence):
    with pytest.raises(InvalidRecipe, match=sentence):
        start(preset, teacher=teacher)

"""A verifier that runs a program is asked off the event loop, and its failure is no verdict."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from pool_registry.calls.live_pool import LivePool
from pool_registry.pool import Pool
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.orchestrator.support.engine import Scripted
from trainer.errors import NotGraded
from trainer.evaluation.grading import grade_answer
from trainer.evaluation.trials import grade_episode
from trainer.job_process import run_job
from trainer.jobs.job_folder import read_lines
from trainer.recipe import parse_recipe
from trainer.tasks.sources.verifiers.process import PYTHON, RewardProcess
from trainer.tasks.sources.verifiers.source import RewardVerifier
from trainer.tasks.task import Task
from trainer.tasks.verifier_examples import list_example_answers

__all__ = ["endpoint"]
LOOP_STEP_S = 0.02
# A task set in a Python of its own, which answers late, and ends at "die".
PROGRAM = """#!{python}
import json, sys, time
for k in range(40):
    print(json.dumps({{"query": f"What is {{k}} * 7?", "answer": str(7 * k), "problem": ""}}))
print(json.dumps({{"end": True}}), flush=True)
for line in sys.stdin:
    answer = json.loads(line)["answer"]
    if answer == "die" or "damaged" in sys.argv:
        sys.exit("the data is damaged")
    time.sleep(0.5)
    print(json.dumps({{"reward": float(answer == "42")}}), flush=True)
"""


@pytest.fixture
def task(tmp_path, monkeypatch) -> Task:
    program = tmp_path / "python"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv(PYTHON, str(program))
    process = RewardProcess("sums", {})
    yield Task(TaskRef("verifiers:sums", 0, "test", 0), "What is 6 * 7?", RewardVerifier(process, 0, 1.0))
    process.close()


def test_other_episodes_go_on_while_a_program_rewards(task):
    async def grade() -> tuple[bool, float]:
        longest, last, grading = 0.0, time.monotonic(), asyncio.create_task(grade_answer(task, "42", make_pool()))
        while not grading.done():
            await asyncio.sleep(LOOP_STEP_S)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        return (await grading).correct, longest

    is_right, longest = asyncio.run(grade())
    assert is_right and longest < 0.4


def test_a_program_that_ends_gives_no_verdict_and_the_next_answer_has_one(task):
    episode = asyncio.run(judge(task, "die"))
    assert episode.graded is None and "the data is damaged" in episode.not_judged.reason
    assert episode.not_judged.place == "verifier"
    assert asyncio.run(judge(task, "41")).graded.correct is False


def test_no_program_is_run_to_show_examples_of_answers(task):
    assert list_example_answers(task.verifier) == []


def test_a_machine_without_the_package_gives_no_verdict_but_what_to_install(monkeypatch):
    monkeypatch.setenv(PYTHON, sys.executable)
    verifier = RewardVerifier(RewardProcess("no_such_set", {}), 0, 1.0)
    task = Task(TaskRef("verifiers:no_such_set", 0, "test", 0), "q", verifier)
    with pytest.raises(NotGraded, match="Install it: "):
        asyncio.run(grade_answer(task, "42", make_pool()))
    assert not verifier.accepts("42"), "others ask for a yes or no"


@pytest.mark.medium
def test_an_evaluation_whose_verifier_fails_ends_with_what_to_do_and_no_mean(task, store, jobs, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "42")
    store.pools.save(pool_of(endpoint, "ann").model_copy(update={"name": "sums"}))
    section = {"orchestrators": ["direct:ann"], "source": "verifiers:damaged", "count": 20, "samples": 3}
    key = jobs.submit(parse_recipe(json.dumps({"name": "m", "pool": "sums", "evaluate": section})), here=True).id
    run_job(key, store, jobs)
    ended = jobs.get(key)
    assert ended.state == "failed" and "have no verdict" in ended.message and "resume" in ended.message
    assert read_lines(jobs.folder(key).evaluations) == []


def make_pool() -> LivePool:
    return LivePool(Pool(name="p"), {})


async def judge(task: Task, answer: str):
    pool = make_pool()
    episode = await run_episode(EpisodeSpec(task.query), Scripted(Turn((), answer)), pool)
    await grade_episode(episode, task, NoSink(), pool)
    return episode

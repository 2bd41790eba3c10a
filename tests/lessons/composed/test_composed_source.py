"""The source `composed`: its plans are right, every step counts, and what it tests on it never teaches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from orchestrator.quotes import references
from podium_lessons.composed.domain import IT, list_domains, load_domain
from podium_lessons.composed.drawer import NoQuestion, QuestionDrawer
from podium_lessons.composed.functions import FunctionCutter
from podium_lessons.composed.questions import KINDS
from podium_lessons.composed.source import WEIGHTS, draw_works, list_split, open_composed
from podium_lessons.composed.texts import load_texts
from podium_lessons.composed.values import draw_records, list_group
from pool_registry.errors import BadCall, WorkerFault
from tests.lessons.plans import answer_by
from trainer.errors import UnknownTask
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import RefusalVerifier


def draw(split: str, count: int, level: int | None = None) -> list[Task]:
    return open_composed().tasks(split, count, levels=(level,) if level else None)


def plan_of(task: Task):
    assert task.oracle_turn is not None
    return task.oracle_turn


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_reference_plan_is_right(split: str):
    for task in draw(split, 120):
        assert answer_by(task, plan_of(task)), task.query


@pytest.mark.parametrize(("level", "steps"), [(1, {0, 1}), (2, {2}), (3, {3, 4, 5, 6})])
def test_a_level_is_a_number_of_steps(level: int, steps: set[int]):
    assert {len(plan_of(task).steps) for task in draw("train", 60, level)} <= steps


def test_fields_lists_and_objects_are_quoted():
    texts = [str((plan_of(task).answer, *(s.arguments for s in plan_of(task).steps))) for task in draw("train", 400)]
    for quote, least in (("[*].", 8), ("$1.", 80), ("$2.", 20)):
        assert sum(quote in text for text in texts) > least, quote


def test_nothing_is_called_twice_and_no_step_is_idle():
    for task in draw("train", 300):
        turn = plan_of(task)
        calls = [(step.worker, str(sorted(step.arguments.items()))) for step in turn.steps]
        assert len(set(calls)) == len(calls), task.query
        used = references(turn.answer).union(*(step.references for step in turn.steps))
        assert used == {step.id for step in turn.steps}, task.query


def test_a_plan_without_one_of_its_steps_is_wrong():
    tasks = [task for task in draw("train", 100, 2) if "[*]" not in str(plan_of(task).steps[-1].arguments)]
    assert len(tasks) > 50
    for task in tasks:
        turn = plan_of(task)
        assert not answer_by(task, replace(turn, steps=turn.steps[:1], answer="$1")), task.query


def test_the_same_thing_has_one_value_wherever_it_is_looked_up():
    name = list_domains()[0]
    records = draw_records(name, 5)
    for kind, thing in load_domain(name).things.items():
        for field, data in thing.fields.items():
            for owner in {str(record[field]) for record in records[kind].values()} if data.group else ():
                rows = list_group(name, 5, kind, field, owner)
                assert {row["name"] for row in rows} == {n for n, r in records[kind].items() if r[field] == owner}


def test_no_domain_text_or_query_of_the_test_split_is_learnt():
    assert not set(list_split("train")) & set(list_split("test"))
    assert len(list_split("train")) > 2 * len(list_split("test")) > 0
    queries = [{task.query.casefold() for task in draw(split, 240)} for split in ("train", "validation", "test")]
    assert not queries[0] & queries[1] and not queries[0] & queries[2] and not queries[1] & queries[2]


def test_what_cannot_be_done_is_refused_and_names_no_worker_of_the_pool():
    refused = [task for task in draw("train", 200, 1) if isinstance(task.verifier, RefusalVerifier)]
    assert 8 < len(refused) < 40
    for task in refused:
        assert not plan_of(task).steps and task.pool is not None


def test_every_kind_of_question_can_be_drawn_in_every_domain_that_has_what_it_takes():
    drawn: Counter[str] = Counter()
    for name in list_domains():
        random = make_random(name)
        domain = load_domain(name)
        cut = FunctionCutter(domain, 3, "train", random).cut()
        works, _ = draw_works([function.spec.name for function in cut], "train", random)
        drawer = QuestionDrawer(domain, cut, works, "train", random)
        for kind in KINDS:
            for _ in range(60):
                try:
                    draft = drawer.draw(KINDS[kind])
                except (NoQuestion, BadCall, WorkerFault):
                    continue
                drawn[kind] += 1
                assert IT not in draft.text and not set("{}") & set(draft.text.format(**draft.gaps)), draft.text
                break
    rare = {"convert", "calculation_chain"}  # not every domain has a unit to convert, or a calculation to reach
    assert min(drawn[kind] for kind in KINDS if kind not in rare) > 0.7 * len(list_domains()), drawn
    assert min(drawn[kind] for kind in rare) > 0.3 * len(list_domains()), drawn
    assert {kind for weights in WEIGHTS.values() for kind in weights} == set(KINDS)


def test_texts_have_the_gaps_of_their_row():
    for row, texts in load_texts().items():
        if row in ("records", "groups"):  # descriptions, which may leave something out
            continue
        gaps = [{word.split("}")[0] for word in text.split("{")[1:]} for text in texts]
        allowed = set().union(*gaps)
        small = {gap.removesuffix("_small") for gap in allowed}
        for text, there in zip(texts, gaps, strict=True):
            assert {gap.removesuffix("_small") for gap in there} == small, (row, text)


def test_an_unknown_argument_is_refused():
    with pytest.raises(UnknownTask, match="use composed"):
        open_composed("kitchen")

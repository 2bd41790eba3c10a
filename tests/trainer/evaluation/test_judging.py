"""A judge is measured against a person's verdicts, and what rests on it says how far it agrees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import WorkerFault
from pool_registry.kinds import KINDS, add_kind
from pool_registry.language_models.completion import DEFAULT_OPTIONS, Completion, CompletionOptions, Message
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec
from tests.trainer.support.results import row
from trainer.cli.terminal_tables import evaluation_text
from trainer.errors import UnusableTasks
from trainer.evaluation.judging import PersonVerdict, make_judge_key, measure_judge, read_verdicts
from trainer.evaluation.trials import LocalTrials, plan_trials, run_trials
from trainer.results.judge_agreement import (
    Agreement,
    compute_kappa,
    count_agreement,
    describe_judges,
    list_judges,
    load_agreement,
    save_agreement,
)
from trainer.results.rows import JudgeKey, ResultRow
from trainer.results.summary import summarize
from trainer.tasks.sources.jsonl import TaskLine, make_task

KEY = JudgeKey(name="referee", work="0" * 16)


class Referee(Worker[NoConfig]):
    """Says YES where the answer holds the word good, fails at bad luck, and cannot decide what is odd."""

    role = "agent"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {"type": "object"}

    async def call(self, call: Call) -> Reply:
        raise AssertionError("a judge is asked for a completion")

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        answer = messages[-1].content.rpartition("Given answer: ")[2]
        if "bad luck" in answer:
            raise WorkerFault("http_500", "the referee is ill")
        return Completion("both" if "odd" in answer else "YES" if "good" in answer else "NO")


@pytest.fixture
def referee(monkeypatch) -> WorkerSpec:
    monkeypatch.setattr(KINDS, "built_in", dict(KINDS.built_in))
    add_kind("referee", Referee)
    return WorkerSpec(name="referee", kind="referee", description="Grades.", judge_only=True, retries=0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    return find_home()


def measure(spec: WorkerSpec, *verdicts: tuple[str, bool]) -> Agreement:
    async def once() -> Agreement:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            given = [PersonVerdict(query="?", answer=answer, right=right) for answer, right in verdicts]
            return await measure_judge("referee", given, pool)

    return asyncio.run(once())


def test_a_judge_is_counted_against_a_person(referee):
    agreement = measure(referee, ("good", True), ("good", False), ("plain", True), ("odd", False), ("odd", True))
    assert (agreement.verdicts, agreement.agreeing) == (5, 2)
    assert (agreement.false_yes, agreement.false_no, agreement.unclear) == (1, 2, 2)
    assert agreement.low < agreement.share == 0.4 < agreement.high and agreement.judge == make_judge_key(referee)


def test_a_judge_that_cannot_be_asked_is_not_measured(referee):
    with pytest.raises(WorkerFault, match="ill"):
        measure(referee, ("good", True), ("bad luck", True))
    with pytest.raises(UnusableTasks, match="there is no worker 'referee'"):
        measure(referee.model_copy(update={"enabled": False}), ("good", True))


def test_full_agreement_on_few_answers_is_no_certainty():
    agreement = count_agreement(KEY, [(True, True)] * 10 + [(False, False)] * 10)
    assert (agreement.share, agreement.kappa) == (1, 1) and 0.8 < agreement.low < 0.9


@pytest.mark.parametrize(
    ("pairs", "kappa"),
    [
        # Cohen's own scheme: 20 both yes, 5 and 10 apart, 15 both no: (0.7 - 0.5) / (1 - 0.5).
        ([(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15, 0.4),
        ([(True, False), (False, True)], -1.0),
        ([(True, True)] * 3, None),
        ([], None),
    ],
)
def test_kappa_takes_chance_away(pairs, kappa):
    assert compute_kappa(pairs) == (None if kappa is None else pytest.approx(kappa))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_every_verdict_is_counted_once(pairs):
    agreement = count_agreement(KEY, pairs)
    assert agreement.agreeing + agreement.false_yes + agreement.false_no == agreement.verdicts == len(pairs)
    assert 0 <= agreement.low <= agreement.share <= agreement.high <= 1
    assert agreement.kappa is None or -1 <= agreement.kappa <= 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no verdict"),
        ("nonsense", "line 1"),
        ('\n{"query": "q", "answer": 1}', "line 2: right"),
        ('{"query": "q", "answer": null, "right": true}', "null is no answer"),
        ('{"query": "q", "answer": 1, "right": true, "thumb": 1}', "line 1: thumb"),
    ],
)
def test_a_line_that_is_no_verdict_is_named(tmp_path, text, sentence):
    (tmp_path / "verdicts.jsonl").write_text(text)
    with pytest.raises(UnusableTasks, match=sentence) as caught:
        read_verdicts(tmp_path / "verdicts.jsonl")
    assert "verdicts.jsonl" in str(caught.value)
    with pytest.raises(UnusableTasks, match="cannot be read"):
        read_verdicts(tmp_path / "none.jsonl")


@given(st.text())
def test_any_file_of_verdicts_is_read_or_refused_in_a_sentence(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(UnusableTasks):
        read_verdicts(file)


def test_a_measurement_stays_with_what_the_judge_does(home, referee):
    key = make_judge_key(referee)
    assert load_agreement(key) is None
    save_agreement(count_agreement(key, [(True, True)] * 18 + [(False, True), (True, False)]))
    renamed = make_judge_key(referee.model_copy(update={"name": "umpire", "price_call": 1.0}))
    [sentence] = describe_judges([renamed])
    assert sentence.startswith("Judge umpire agrees with 18 of 20 of your verdicts (95 %: ")
    assert "false yes 1, false no 1" in sentence
    other = make_judge_key(referee.model_copy(update={"config": {"model": "another"}}))
    assert describe_judges([other]) == ["Judge referee: not measured against your verdicts yet."]


def test_an_evaluation_says_how_far_its_judge_agrees_with_the_person(home, referee):
    task = make_task(TaskLine(query="q", answer="x", verifier={"kind": "judge", "worker": "referee"}), "own", 0)
    rows: list[ResultRow] = []

    async def once() -> None:
        async with live_pool(Pool(name="p", workers=(referee,))) as pool:
            await run_trials(plan_trials("direct", [task]), LocalTrials(pool, lambda *_: Says("good")), rows.append)

    asyncio.run(once())
    assert [(one.correct, one.judge) for one in rows] == [(True, make_judge_key(referee))]
    text = write(evaluation_text(summarize("direct", rows)))
    assert "Judge referee: not measured against your verdicts" in text
    save_agreement(count_agreement(make_judge_key(referee), [(True, True)]))
    assert "Judge referee agrees with 1 of 1 of your verdicts" in write(evaluation_text(summarize("direct", rows)))


def test_rows_without_a_judge_say_nothing_of_one():
    assert list_judges([row()]) == [] and "judge" not in json.loads(row().model_dump_json(exclude_defaults=True))
    assert list_judges([row(judge=KEY), row(1, judge=KEY)]) == [KEY]


class Says:
    """An orchestrator that answers at once."""

    name = "says"

    def __init__(self, answer: str) -> None:
        self._answer = answer

    async def turn(self, _: Any) -> Any:
        from orchestrator.plan import Turn

        return Turn((), self._answer)


def write(content: Any) -> str:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as capture:
        console.print(content)
    return capture.get()

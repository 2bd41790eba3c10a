"""Questions for agents of different skill: what is kept, what a cap, a failure and a second call do."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from tests.trainer.support.experts import (
    AUTHOR,
    FIELDS,
    Script,
    answer_as_expert,
    build_experts,
    count_pages,
    serve_script,
    write_question,
)
from tests.trainer.support.shop import build_shop, describe_worker
from trainer.errors import UnusableTasks
from trainer.tasks.practice.agents.journal import hold_journal
from trainer.tasks.practice.agents.make_agent_tasks import estimate_agent_tasks
from trainer.tasks.practice.agents.panel import PanelOptions
from trainer.tasks.practice.make_tasks import PracticeOptions, PracticeTasks, make_practice_tasks
from trainer.tasks.sources.jsonl import make_task

pytestmark = pytest.mark.medium
PRICED = {"price_in": 10.0, "price_out": 1000.0}  # 100 tokens in and 10 out are 0.011 dollars


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def experts(script) -> Iterator[Pool]:
    with serve_script(script) as url:
        yield build_experts(url)


def make(pool: Pool, count: int = 12, journal: Path | None = None, **panel) -> PracticeTasks:
    async def run() -> PracticeTasks:
        options = PracticeOptions(count=count, panel=PanelOptions(**{"author": AUTHOR, **panel}))
        async with live_pool(pool) as live:
            return await make_practice_tasks(live, options, journal)

    return asyncio.run(run())


def change(pool: Pool, *names: str, **changes) -> Pool:
    workers = [spec.model_copy(update=changes) if spec.name in names else spec for spec in pool.workers]
    return pool.model_copy(update={"workers": tuple(workers)})


def test_questions_that_three_agree_on_are_kept_with_a_plan_that_calls_the_expert(experts, script):
    tasks = make(experts)
    assert len(tasks.lines) == 12 and {line.checked for line in tasks.lines} == {"agreement of 3"}
    for line in tasks.lines:
        (step,) = line.plan["steps"]
        assert ("law" in line.query) == step["worker"].startswith("law"), "only the expert of the field was right"
    counts = Counter(line.plan["steps"][0]["worker"] for line in tasks.lines)
    assert len(counts) == 4 and min(counts.values()) >= 2, "every expert has its share"
    assert "found no agreement" in tasks.agents, "nobody knows the novice's field"


def test_of_equal_prices_the_agent_that_is_right_most_often_is_called_outside_its_field(experts, script):
    fields = FIELDS | {"law1": "nothing"}  # the first of the pool knows what the novice should, and that alone

    def answer(model: str, text: str) -> str:
        name = text.split("?")[0].split()[-1]
        is_right = model == "med2" or fields[model] == name
        number = int(text.split("volume ")[1].split()[0])
        return str(count_pages(name, number)) if is_right else f"{model} does not know"

    script.answer = answer
    tasks = make(experts, 16)
    called = {line.plan["steps"][0]["worker"] for line in tasks.lines if "nothing" in line.query}
    assert called == {"med2"}


def test_each_reference_plan_reaches_its_answer(experts):
    async def run() -> list[bool]:
        async with live_pool(experts) as live:
            lines = (await make_practice_tasks(live, PracticeOptions(4, panel=PanelOptions(AUTHOR)))).lines
            tasks = [make_task(line, "practice", place) for place, line in enumerate(lines)]
            episodes = [await run_episode(EpisodeSpec(row.query), OraclePolicy(row.oracle_turn), live) for row in tasks]
            return [row.verifier.accepts(episode.answer) for row, episode in zip(tasks, episodes, strict=True)]

    assert asyncio.run(run()) == [True] * 4


def test_the_answerers_get_the_question_alone(experts, script):
    make(experts, 2)
    texts = {text for model, text in script.calls if model != AUTHOR}
    assert texts and all(text.startswith("How many pages") and text.endswith("number alone.") for text in texts)


def test_every_split_has_questions_and_no_question_is_in_two(experts):
    tasks = make(experts, 40)
    assert tasks.count_splits()["train"] > tasks.count_splits()["test"] > 0 < tasks.count_splits()["validation"]
    assert len({line.query for line in tasks.lines}) == 40


def test_what_every_agent_knows_is_at_most_a_third(experts, script):
    def answer(model: str, text: str) -> str:
        known_to_all = int(text.split("volume ")[1].split()[0]) % 4 > 0
        return answer_as_expert("law1" if known_to_all and "law" in text else model, text)

    script.answer = answer
    tasks = make(experts, 30)
    votes = Counter(line.checked for line in tasks.lines)
    assert votes["agreement of 6"] * 3 <= len(tasks.lines) and votes["agreement of 6"] > 0
    assert "every agent gets right" in tasks.agents


def test_nothing_to_route_is_refused_with_the_reason(experts, script):
    script.answer = lambda model, text: answer_as_expert("law1" if "law" in text else "med1", text)
    with pytest.raises(UnusableTasks, match="nothing to route"):
        make(experts)
    assert script.count_calls("law1") < 60, "it ends soon"


def test_repeated_questions_and_those_that_state_their_answer_are_not_asked(experts, script):
    def write(text: str, count: int) -> str:
        rows = [write_question("law", 1), {"question": "Is a law a law or a rule?", "answer": "rule"}, "so here we go"]
        return "\n".join(map(json.dumps, rows))

    script.write = write
    tasks = make(experts)
    assert len(tasks.lines) == 1 and f"{AUTHOR} wrote no new questions" in tasks.agents
    for reason in ("were asked before", "state their answer", "could not be read"):
        assert reason in tasks.agents
    assert script.count_calls("law1") == 1


def test_refusals_do_not_agree(experts, script):
    script.answer = lambda model, text: "I do not know."
    with pytest.raises(UnusableTasks, match="found no agreement"):
        make(experts)


def test_a_tie_is_no_agreement(experts, script):
    script.answer = lambda model, text: "41" if model.endswith("1") else "42"
    with pytest.raises(UnusableTasks, match="found no agreement"):
        make(experts, answerers=("law1", "law2", "med1", "med2"), agree=2)


@pytest.mark.parametrize("judge_only", [False, True])
def test_a_judge_joins_what_the_graders_do_not(experts, script, judge_only):
    """A judge may be an agent that has no part in it, or a worker that does nothing else."""

    def answer(model: str, text: str) -> str:
        if "You compare two answers" in text:
            return "YES" if "The World Health Organization" in text else "No."
        return {"law1": "The World Health Organization", "law2": "WHO"}.get(model, "UNICEF")

    script.write = lambda text, count: json.dumps({"question": f"Which body is number {len(text)}?", "answer": "WHO"})
    script.answer = answer
    pool = change(experts, "med2", judge_only=judge_only)
    tasks = make(pool, 1, answerers=("law1", "law2", "med1", "novice"), judge="med2", agree=3)
    (line,) = tasks.lines
    assert line.checked == "the judge med2" and line.verifier.kind == "one_of"
    assert line.plan["steps"][0]["worker"] in ("law1", "law2")
    assert script.count_calls("med2") <= 3 * script.count_calls("law1")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"author": ""}, "say which agent writes the questions: --author with one of editor, law1"),
        ({"author": "calc"}, "calc is no agent"),
        ({"author": "nobody"}, "nobody"),
        ({"judge": "law1", "answerers": ("law1", "law2")}, "law1 cannot judge"),
        ({"answerers": (AUTHOR,)}, "nobody could check"),
        ({"agree": 9}, "9 cannot agree: 6 vote"),
    ],
)
def test_a_panel_that_cannot_work_is_refused_before_a_call(experts, script, options, sentence):
    tool = describe_worker("calc", "http", "Writes.", url="https://example.com/x", method="POST")
    with pytest.raises(UnusableTasks, match=sentence):
        make(experts.model_copy(update={"workers": (*experts.workers, tool)}), **options)
    assert not script.calls


def test_a_pool_with_one_agent_says_that_nobody_can_check(experts):
    alone = experts.model_copy(update={"workers": experts.workers[:1]})
    with pytest.raises(UnusableTasks, match="nobody could check what editor writes"):
        make(alone, author="")


def test_a_cap_ends_it_before_it_is_passed_and_a_second_call_goes_on(experts, script, tmp_path):
    names = [spec.name for spec in experts.workers]
    pool, journal = change(experts, *names, **PRICED), tmp_path / "x.questions"
    first = make(pool, 12, journal, max_cost=0.5)
    spent = 0.011 * len(script.calls)
    assert 0 < len(first.lines) < 12 and spent <= 0.5 and "the cap is reached" in first.agents
    asked = Counter(script.calls)
    second = make(pool, 12, journal)
    splits = {line.query: line.split for line in second.lines}
    assert len(second.lines) == 12 and len(splits.keys() & {line.query for line in first.lines}) > 2
    assert all(splits.get(line.query, line.split) == line.split for line in first.lines), "a later call moves none"
    answered = {call for call in asked if call[0] != AUTHOR}
    assert not answered & (Counter(script.calls) - asked).keys(), "nothing is asked twice"


def test_a_cap_with_a_price_that_is_not_known_is_refused(experts, script, monkeypatch):
    monkeypatch.setenv("EXPERT_KEY", "k")
    keyed = {**experts.worker("law1").config, "api_key": "env:EXPERT_KEY"}
    with pytest.raises(UnusableTasks, match="the price of law1 is not known"):
        make(change(experts, "law1", config=keyed), max_cost=1.0)
    assert not script.calls


def test_a_server_that_fails_ends_it_with_one_sentence(experts, script, tmp_path):
    script.status = 500
    with pytest.raises(
        UnusableTasks,
        match=r"of editor failed, the first so: .*8 calls in a row have failed.*making them again goes on",
    ):
        make(experts, journal=tmp_path / "x.questions")
    assert len(script.calls) <= 8


def test_an_agent_that_fails_has_no_vote_and_is_named(experts, script):
    dead = {**experts.worker("novice").config, "base_url": "http://127.0.0.1:9/v1"}
    tasks = make(change(experts, "novice", config=dead), 4)
    assert len(tasks.lines) == 4 and "of novice failed" in tasks.agents


def test_a_line_that_a_kill_has_cut_is_dropped_and_a_damaged_one_is_named(experts, tmp_path):
    journal = tmp_path / "x.questions"
    whole = make(experts, 4, journal).lines
    journal.write_bytes(journal.read_bytes() + b'{"kind": "reply", "ru')
    assert make(experts, 4, journal).lines == whole
    journal.write_bytes(b"{}\n" + journal.read_bytes())
    with pytest.raises(UnusableTasks, match="line 1, is damaged"):
        make(experts, 4, journal)


def test_a_mixed_pool_gets_both_kinds_of_tasks(experts, tmp_path):
    shop = build_shop(tmp_path)
    mixed = shop.model_copy(update={"workers": (*shop.workers, *experts.workers)})
    tasks = make(mixed, 20)
    checked = [line for line in tasks.lines if line.checked]
    assert len(tasks.lines) == 20 and len(checked) == 10
    assert not {spec.name for spec in experts.workers} & tasks.reasons.keys()
    alone = make(mixed, 20, author="")
    assert not any(line.checked for line in alone.lines) and "--author" in alone.reasons["law1"]


def test_questions_from_a_passage_are_answered_by_way_of_the_look_up(experts, script, tmp_path):
    (tmp_path / "rules.md").write_text("# Leave\n\nA trainee has 31 days of leave.\n\n# Badge\n\nThe badge is blue.\n")
    docs = describe_worker("rules", "documents", "Searches the house rules.", path=str(tmp_path))

    def write(text: str, count: int) -> str:
        question = {"question": "How many days of leave has a trainee?", "answer": 31}
        return json.dumps(question if "31 days" in text else write_question("medicine", len(script.calls)))

    def answer(model: str, text: str) -> str:
        return "31" if "31 days" in text and model != "novice" else answer_as_expert(model, text)

    script.write, script.answer = write, answer
    tasks = make(experts.model_copy(update={"workers": (*experts.workers, docs)}), 30)
    line = next(line for line in tasks.lines if line.checked and "trainee" in line.query)
    first, second = line.plan["steps"]
    assert (first["worker"], second["access"]) == ("rules", [1]) and line.plan["answer"] == "$2"


def test_a_field_whose_worker_has_left_the_pool_has_no_question_and_others_keep_their_split(experts, tmp_path):
    panel = {"answerers": ("law1", "law2", "med1"), "journal": tmp_path / "x.questions"}
    first = make(experts, 8, **panel)
    left = experts.model_copy(update={"workers": tuple(row for row in experts.workers if row.name != "novice")[::-1]})
    splits = {line.query: line.split for line in make(left, 8, **panel).lines}
    assert {line.query: line.split for line in first.lines} == splits


def estimate(pool: Pool, latencies: dict[str, float], **panel) -> str:
    async def run() -> str:
        async with live_pool(pool) as live:
            return estimate_agent_tasks(live, PanelOptions(AUTHOR, **panel), 100, latencies, None).describe()

    return asyncio.run(run())


def test_the_estimate_names_calls_cost_time_and_what_is_not_known(experts, script):
    names = [spec.name for spec in experts.workers]
    assert "a time that is not known" in estimate(experts, {"law1": 1.0})
    assert "not known (no price: editor, law1, law2, med1 and 2 others)" in estimate(experts, {})
    known = estimate(change(experts, *names, **PRICED), dict.fromkeys(names, 2.0))
    assert "About 1,040 calls" in known and "$" in known and "3 minutes" in known and "not known" not in known
    assert not script.calls


def test_two_that_make_tasks_of_one_pool_do_not_pay_twice(experts, script, tmp_path):
    journal = tmp_path / "experts.questions"
    with hold_journal(journal), pytest.raises(UnusableTasks, match="being made already: wait"):
        make(experts, journal=journal)
    assert not script.calls and make(experts, 4, journal).lines


def test_an_estimate_beside_a_call_leaves_a_line_that_is_being_written(experts, tmp_path):
    journal = tmp_path / "experts.questions"
    journal.write_bytes(b'{"kind": "reply", "run"')

    async def run() -> None:
        async with live_pool(experts) as live:
            estimate_agent_tasks(live, PanelOptions(AUTHOR), 4, {}, journal)

    asyncio.run(run())
    assert journal.read_bytes() == b'{"kind": "reply", "run"'

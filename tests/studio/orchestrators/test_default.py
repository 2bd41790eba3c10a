"""Which orchestrator is used where a person names none."""

from __future__ import annotations

import pytest

from orchestrator.checkpoints import STARTERS, Starter
from pool_registry.pool import Pool
from pool_registry.schemas.output_check import Output
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from studio.orchestrators import choices, default
from studio.orchestrators.choices import orchestrator_choices
from studio.orchestrators.default import choose_default, suggest_orchestrators


def agent(name: str, kind: str) -> WorkerSpec:
    config = {"base_url": "http://127.0.0.1:9/v1", "model": "m"} if kind == "chat" else {"model": "starter:smollm2"}
    return WorkerSpec(name=name, kind=kind, description="Answers.", config=config)


LOCAL, CHAT = agent("near", "local_model"), agent("far", "chat")
READER, FOR_AGENTS, FOR_RECORDS, SMALLEST = "smollm2-reader", "smollm2-agents", "smollm2-records", "starter-grpo"
MINE = Pool(name="mine", workers=(LOCAL, CHAT))


@pytest.fixture
def checkpoints(monkeypatch):
    """A function that says which checkpoints there are."""
    return lambda *names: monkeypatch.setattr(default, "checkpoint_names", lambda: list(names))


@pytest.mark.parametrize("pool", [starter_pool(), MINE, Pool(name="empty")])
def test_the_reader_is_the_default_of_every_pool(checkpoints, pool):
    checkpoints(READER, SMALLEST)
    assert choose_default(pool) == READER


def test_where_there_are_agents_alone_the_reader_that_learnt_to_ask_them_comes_first(checkpoints):
    checkpoints(READER, FOR_AGENTS, SMALLEST)
    assert suggest_orchestrators(MINE) == [FOR_AGENTS, READER, "model:far:plan"]
    assert suggest_orchestrators(starter_pool())[:2] == [READER, FOR_AGENTS], "it has tools, too"
    assert suggest_orchestrators(Pool(name="empty")) == [READER]


def test_without_the_reader_a_chat_model_plans(checkpoints):
    checkpoints(SMALLEST)
    assert choose_default(MINE) == "model:far:plan"
    assert choose_default(Pool(name="mine", workers=(LOCAL,))) == "model:near:plan"
    assert choose_default(starter_pool()) == SMALLEST


def test_the_training_demo_is_never_suggested(checkpoints):
    checkpoints(SMALLEST)
    assert suggest_orchestrators(starter_pool()) == [] and suggest_orchestrators(MINE) == ["model:far:plan"]
    checkpoints(SMALLEST, READER)
    assert suggest_orchestrators(MINE) == [READER, "model:far:plan"]


def test_a_second_reader_that_ships_is_one_row(checkpoints, monkeypatch):
    monkeypatch.setitem(STARTERS, "large-reader", Starter("large", "Large reader", plans_any_pool=True))
    checkpoints(READER, "large-reader")
    monkeypatch.setattr(choices, "checkpoint_names", lambda: [READER, "large-reader"])
    assert suggest_orchestrators(MINE) == [READER, "large-reader", "model:far:plan"]
    assert ("Large reader", "large-reader") in orchestrator_choices(pool=MINE), "it is no demonstration"


def test_what_plans_for_any_pool_comes_first_and_what_lacks_a_model_says_so(monkeypatch):
    monkeypatch.setattr(choices, "checkpoint_names", lambda: [SMALLEST, READER])
    labels = {name: label for label, name in orchestrator_choices(pool=Pool(name="bare"))}
    names = list(labels)
    assert names[:2] == [READER, "model"] and labels[SMALLEST].endswith(" · demonstration")
    assert labels["model"] == "Model · needs a model" and labels["pipeline"] == "Pipeline · baseline, needs a model"
    assert labels["random_plan"] == "Random plan · baseline"
    assert labels["oracle"] == "Oracle · baseline, for queries of a suite"
    assert ("Model", "model") in orchestrator_choices(pool=MINE)


def test_the_groups_of_the_list_follow_one_another(monkeypatch):
    monkeypatch.setattr(choices, "checkpoint_names", lambda: [SMALLEST, READER, "walk-4711@20"])
    marks = [label.partition(" · ")[2].partition(",")[0] for label, _ in orchestrator_choices(pool=MINE)]
    assert list(dict.fromkeys(marks)) == ["", "trained here", "baseline", "demonstration"]
    assert marks == sorted(marks, key=["", "trained here", "baseline", "demonstration"].index)


def test_the_oracle_is_offered_only_where_there_is_a_reference_plan():
    names = [name for _, name in orchestrator_choices()]
    without = [name for _, name in orchestrator_choices(with_reference=False)]
    assert [name for name in names if name not in without] == ["oracle"]


def test_where_a_worker_returns_records_the_reader_that_learnt_to_read_them_comes_first(checkpoints):
    checkpoints(READER, FOR_AGENTS, FOR_RECORDS, SMALLEST)
    fields = {"type": "object", "properties": {"price": {"type": "number"}}}
    tool = WorkerSpec(name="stock", kind="calculator", description="Stock.", output=Output(json_schema=fields))
    assert suggest_orchestrators(Pool(name="shop", workers=(tool,))) == [FOR_RECORDS, READER]
    assert suggest_orchestrators(Pool(name="shop", workers=(tool, CHAT)))[:3] == [FOR_RECORDS, READER, FOR_AGENTS]
    plain = tool.model_copy(update={"output": None})
    assert suggest_orchestrators(Pool(name="shop", workers=(plain,))) == [READER]
    off = tool.model_copy(update={"enabled": False, "name": "off"})
    assert suggest_orchestrators(Pool(name="shop", workers=(plain, off))) == [READER]
    assert FOR_RECORDS not in suggest_orchestrators(starter_pool())


def test_a_worker_that_cannot_be_opened_returns_nothing_that_is_known(checkpoints):
    checkpoints(READER, FOR_RECORDS)
    broken = WorkerSpec(name="far", kind="chat", description="Answers.", config={})
    assert suggest_orchestrators(Pool(name="mine", workers=(broken,)))[0] == READER

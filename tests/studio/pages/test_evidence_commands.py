"""The Pool page's commands about one worker's evidence: what it brings, and a description from calls of it."""

from __future__ import annotations

import json

import pytest

from studio.pages.pool.commands import PoolCommands
from tests.trainer.support.shop import build_shop, describe_worker
from trainer.evaluation.worker_facts import MARK
from trainer.tasks.practice.stored import find_practice_file


@pytest.fixture
def send(runtime, tmp_path, monkeypatch):
    """Commands about a shop, with practice tasks of which three of four need the look-up of cities."""
    shop = build_shop(tmp_path)
    order = describe_worker("order", "http", "Orders an item.", url="https://127.0.0.1:1/order", method="POST")
    runtime.store.pools.save(shop.model_copy(update={"workers": (*shop.workers, order)}))
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    cities = ["Lisbon", "Oslo", "Kyoto", "Quito", "Cairo"]
    look_ups = [
        (f"Where is Firm {chr(65 + k)}?", cities[k % 5], "city_of", {"customer": f"Firm {chr(65 + k)}"})
        for k in range(12)
    ]
    sums = [(f"{k} plus 1?", k + 1, "calc", {"expression": f"{k}+1"}) for k in range(4)]
    lines = [
        {"query": query, "answer": answer, "split": "test",
         "plan": {"steps": [{"worker": worker, "arguments": arguments, "access": []}], "answer": "$1"}}
        for query, answer, worker, arguments in (*look_ups, *sums)
    ]  # fmt: skip
    file = find_practice_file("shop")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = PoolCommands(runtime)

    def run(action: str, **fields) -> dict:
        return page.run(action, {"pool": "shop", **fields})

    yield run
    file.unlink(missing_ok=True)


def test_what_can_be_measured_is_said_first(send):
    evidence = send("evidence", name="city_of")["evidence"]
    assert (evidence["practice"], evidence["recorded"], evidence["refused"]) == (16, 0, ["order"])
    assert evidence["orchestrator"] and evidence["orchestrator_label"]


def test_a_workers_value_has_figures_with_intervals_and_the_tasks_behind_them(send):
    value = send("value_worker", name="city_of", orchestrator="oracle", seconds=60)["value"]
    score = next(change for change in value["changes"] if change["name"] == "score")
    assert (value["pairs"], value["needing"], value["called"], value["enough"]) == (16, 12, 12, True)
    assert (score["with_it"], score["without_it"]) == (1.0, 0.25) and 0.4 < score["low"] < 0.75 < score["high"]
    assert len(value["differing"]) == 12 and all(task["with_it"] for task in value["differing"])
    assert any("order" in note for note in value["notes"])
    assert value["orchestrator_label"] == "Oracle"


def test_a_worker_that_no_task_asks_for_is_said_so_with_what_to_do(send):
    value = send("value_worker", name="crm", orchestrator="oracle", seconds=60)["value"]
    assert "never called" in value["verdict"]
    assert any("podium tasks make --pool shop" in note for note in value["notes"])


def test_a_pool_without_tasks_says_how_to_make_some(send):
    find_practice_file("shop").unlink()
    reply = send("value_worker", name="crm")
    assert not reply["ok"] and "podium tasks make --pool shop" in reply["problems"][0][1]


@pytest.mark.parametrize("seconds", [0, 99999, "long", None])
def test_a_time_that_is_none_is_told_at_its_field(send, seconds):
    assert send("value_worker", name="crm", seconds=seconds)["problems"][0][0] == "seconds"


def test_a_proposed_description_changes_nothing_until_it_is_accepted(send, runtime):
    proposal = send("describe_worker", name="city_of")["proposal"]
    assert proposal["proposed"].startswith(f"Returns the city of a customer. {MARK} 100% of ")
    assert proposal["sampled"] >= 10 and proposal["current"] == "Returns the city of a customer."
    assert runtime.store.pools.latest("shop").pool.worker("city_of").description == proposal["current"]
    assert send("set_description", name="city_of", description=proposal["proposed"])["ok"]
    assert runtime.store.pools.latest("shop").pool.worker("city_of").description == proposal["proposed"]
    again = send("describe_worker", name="city_of")["proposal"]["proposed"]
    assert again.count(MARK) == 1


def test_an_author_that_is_no_agent_is_told(send):
    assert send("describe_worker", name="city_of", agent="calc")["problems"][0][0] == "agent"

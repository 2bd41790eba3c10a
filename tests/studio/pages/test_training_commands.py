"""The Pool page's commands that make practice tasks and train on them."""

from __future__ import annotations

import pytest

from pool_registry.pool import Pool
from studio.pages.pool.commands import PoolCommands
from tests.studio.support.making import wait_for_making
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script
from tests.trainer.support.shop import build_shop, describe_worker
from trainer.recipe import load_recipe
from trainer.tasks.practice.stored import count_planned, find_practice_file, open_task_book
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.sources.jsonl import TaskLine


@pytest.fixture
def send(runtime, tmp_path, monkeypatch):
    """Commands about a shop with a worker that may have effects and an agent."""
    shop = build_shop(tmp_path)
    writes = describe_worker("order", "http", "Orders an item.", url="https://example.com/order", method="POST")
    agent = describe_worker("writer", "local_model", "Writes texts.", model="starter:tiny")
    runtime.store.pools.save(shop.model_copy(update={"workers": (*shop.workers, writes, agent)}))
    page = PoolCommands(runtime)
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    find_practice_file("shop").unlink(missing_ok=True)

    def run(action: str, **fields) -> dict:
        return page.run(action, {"pool": "shop", **fields})

    return run


def make(send) -> dict:
    """The tasks once they are made."""
    assert send("make_practice", count=30)["ok"]
    wait_for_making("shop")
    return send("practice")["practice"]


def test_a_pool_without_tasks_says_which_workers_need_consent_and_which_are_in_no_task(send):
    practice = send("practice")["practice"]
    assert practice["counts"] == {"train": 0, "validation": 0, "test": 0} and practice["agents"] == ["writer"]
    excluded = {row["name"]: row["may_be_allowed"] for row in practice["excluded"]}
    assert excluded == {"order": True, "writer": False}


def test_made_tasks_are_listed_and_struck_one_by_one(send):
    practice = make(send)
    assert practice["counts"]["train"] > 10 and practice["counts"]["test"] > 2
    first, second = practice["rows"][:2]
    assert first["query"] and first["answer"] and set(first["workers"]) <= {"city_of", "crm", "calc"}
    left = send("strike_practice", query=first["query"])["practice"]
    assert left["rows"][0] == second and sum(left["counts"].values()) == sum(practice["counts"].values()) - 1
    again = send("strike_practice", query=first["query"])
    assert not again["ok"] and "no such task" in again["problems"][0][1]


@pytest.mark.parametrize("count", [0, 5000, "many", None])
def test_a_number_of_tasks_that_is_none_is_told_at_its_field(send, count):
    reply = send("make_practice", count=count)
    assert not reply["ok"] and reply["problems"][0][0] == "count"


def test_training_without_tasks_says_what_to_do_first(send):
    reply = send("train_on_pool")
    assert not reply["ok"] and "make them" in reply["problems"][0][1]


def test_training_queues_a_job_for_this_pool_and_its_tasks(send, runtime, monkeypatch):
    monkeypatch.setattr(runtime.jobs, "start_next", lambda: None)
    made = make(send)
    reply = send("train_on_pool")
    assert reply["ok"], reply
    recipe = runtime.jobs.recipe(reply["job"])
    assert (recipe.pool, recipe.tasks.source) == ("shop", "practice:shop")
    assert recipe.tasks.count == made["counts"]["train"] and recipe.model.start == "smollm2-reader"
    assert recipe.sft.steps * recipe.sft.batch >= 3 * made["counts"]["train"] and recipe.evaluate.split == "test"


def test_the_preset_for_an_own_pool_makes_its_tasks_when_a_job_starts(send, runtime):
    from trainer.pool_recipe import fit_recipe_to_pool
    from trainer.tasks.practice.stored import make_missing_tasks

    recipe = fit_recipe_to_pool(load_recipe("own-pool"), "shop")
    assert not find_practice_file("shop").exists()
    make_missing_tasks(recipe.list_sources(), runtime.store)
    assert find_practice_file("shop").is_file()


def test_what_can_orchestrate_a_pool_and_what_a_trained_one_scored(send, runtime, monkeypatch):
    from tests.trainer.jobs.test_outcome import append_solved
    from trainer.pool_recipe import build_pool_recipe

    general = [row["name"] for row in send("orchestrators")["orchestrators"]]
    assert general == ["smollm2-reader", "smollm2-agents"]
    monkeypatch.setattr(runtime.jobs, "start_next", lambda: None)
    row = runtime.jobs.submit(build_pool_recipe("shop", 10))
    name = f"{row.id}@27"
    append_solved(runtime.jobs.folder(row.id), name, {1, 2})
    assert runtime.jobs.claim(row.id)
    runtime.jobs.finish(row.id, "done", "", "")
    first = send("orchestrators")["orchestrators"][0]
    assert (first["name"], first["job"]) == (name, row.id) and first["about"].startswith("Solves 2 of 20")


@pytest.fixture
def crew(send, runtime):
    """A pool of two agents, one without a price, and questions of a person's own without plans."""
    agents = [
        describe_worker(name, "chat", "An assistant.", base_url="https://api.example.com/v1", model=name)
        for name in ("first", "second")
    ]
    agents[0] = agents[0].model_copy(update={"price_out": 2.0})
    runtime.store.pools.save(Pool(name="crew", workers=tuple(agents)))
    splits = ["train"] * 8 + ["test"] * 4
    lines = [TaskLine(query=f"Question {k}?", answer=k, split=split) for k, split in enumerate(splits)]
    find_practice_file("crew").unlink(missing_ok=True)
    open_task_book("crew").add(lines)
    return "crew"


def test_agents_are_trained_by_their_outcomes_and_what_that_takes_is_said_first(send, runtime, crew, monkeypatch):
    monkeypatch.setattr(runtime.jobs, "start_next", lambda: None)
    plan = send("training_plan", pool=crew)["plan"]
    assert plan["by_outcomes"] and plan["estimate"]["calls"] > 16 + 8 and plan["estimate"]["cost"] > 0
    assert plan["estimate"]["minutes"] > 3 and plan["estimate"]["basis"] == "no answer is on record yet"
    reply = send("train_on_pool", pool=crew)
    assert reply["ok"], reply
    recipe = runtime.jobs.recipe(reply["job"])
    assert recipe.stages == ("who", "grpo", "evaluate") and recipe.model.start == "smollm2-agents"
    assert (recipe.tasks.source, recipe.tasks.count, recipe.max_cost) == ("practice:crew", 8, None)


def test_a_capped_job_wants_the_price_of_every_agent_and_a_cap_that_is_one(send, runtime, crew, monkeypatch):
    monkeypatch.setattr(runtime.jobs, "start_next", lambda: None)
    refused = send("train_on_pool", pool=crew, max_cost="0.5")
    assert not refused["ok"] and refused["problems"][0][0] == "max_cost" and "second has no price" in str(refused)
    for amount in ("-1", "much", "0", "inf"):
        assert send("train_on_pool", pool=crew, max_cost=amount)["problems"][0][0] == "max_cost"
    pool = runtime.store.pools.latest("crew").pool
    runtime.store.pools.save(pool.with_worker(pool.worker("second").model_copy(update={"free": True}), "second"))
    reply = send("train_on_pool", pool=crew, max_cost="$0.5")
    assert reply["ok"] and runtime.jobs.recipe(reply["job"]).max_cost == 0.5


def test_what_a_later_stage_would_lack_is_found_before_the_job(send, runtime, crew):
    book = open_task_book("crew")
    for row in [row for row in book.read() if row.task.ref.split == "test"]:
        book.strike(row.task.query)
    book.add([TaskLine(query="Judged?", answer="x", split="train", verifier={"kind": "judge", "worker": "referee"})])
    gaps = " ".join(send("training_plan", pool=crew)["plan"]["gaps"])
    assert "practice:crew has no task in the split test, which the last stage measures on" in gaps
    assert "Tasks are graded by referee, which the pool crew has not" in gaps
    assert not send("train_on_pool", pool=crew)["ok"]


def test_keys_that_are_not_set_are_named_before_a_start(send, runtime, crew, monkeypatch):
    monkeypatch.delenv("CREW_KEY", raising=False)
    pool = runtime.store.pools.latest("crew").pool
    spec = pool.worker("first")
    keyed = spec.model_copy(update={"config": {**spec.config, "api_key": "env:CREW_KEY"}})
    runtime.store.pools.save(pool.with_worker(keyed, "first"))
    gaps = " ".join(send("training_plan", pool=crew)["plan"]["gaps"])
    assert "CREW_KEY is not set on this machine" in gaps and "for first." in gaps


@pytest.fixture
def experts(runtime, monkeypatch):
    """Commands about a pool of agents behind one scripted address, none of whose answers is exact."""
    script = Script()
    with serve_script(script) as url:
        runtime.store.pools.save(build_experts(url))
        monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
        for place in TaskBook(find_practice_file("experts")).files:
            place.unlink(missing_ok=True)
        page = PoolCommands(runtime)

        def run(action: str, **fields) -> dict:
            return page.run(action, {"pool": "experts", "count": 8, **fields})

        yield run, script


@pytest.mark.medium
def test_questions_for_agents_are_made_and_shown_with_what_checked_them(experts):
    send, script = experts
    shown = send("practice")["practice"]
    assert shown["agents_only"] and shown["agents"][0] == AUTHOR
    estimate = send("estimate_practice", author=AUTHOR)["estimate"]
    assert estimate.startswith("About") and not script.calls
    assert send("make_practice", author=AUTHOR)["making"]["state"] == "running"
    assert "8 questions of agents kept; " in wait_for_making("experts").outcome
    practice = send("practice")["practice"]
    assert {row["checked"] for row in practice["rows"]} == {"agreement of 3"} and practice["making"]["state"] == "done"
    assert count_planned("experts") == practice["counts"]["train"] > 0, "there are plans to learn from"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "say which agent writes the questions"),
        ({"author": AUTHOR, "answerers": []}, "choose who answers"),
        ({"author": AUTHOR, "max_cost": 0}, "above $0"),
        ({"author": AUTHOR, "max_cost": "much"}, "above $0"),
        ({"author": AUTHOR, "judge": AUTHOR}, "cannot judge"),
    ],
)
@pytest.mark.parametrize("action", ["make_practice", "estimate_practice"])
def test_a_panel_that_cannot_work_is_said_before_anything_is_asked(experts, action, fields, sentence):
    send, script = experts
    reply = send(action, **fields)
    assert not reply["ok"] and sentence in reply["problems"][0][1] and not script.calls


def test_plans_of_an_agent_come_first_where_one_is_chosen_and_are_in_the_estimate(send, runtime, crew, monkeypatch):
    monkeypatch.setattr(runtime.jobs, "start_next", lambda: None)
    without = send("training_plan", pool=crew)["plan"]
    assert without["teachers"] == ["first", "second"]
    plan = send("training_plan", pool=crew, teacher="first")["plan"]
    assert plan["estimate"]["calls"] >= without["estimate"]["calls"] + 8 and not plan["gaps"]
    assert plan["estimate"]["cost"] > without["estimate"]["cost"]
    assert plan["estimate"]["minutes"] > without["estimate"]["minutes"]
    recipe = runtime.jobs.recipe(send("train_on_pool", pool=crew, teacher="first")["job"])
    assert recipe.stages == ("who", "sft", "grpo", "evaluate") and recipe.sft.demonstrations.teacher == "model:first"
    assert runtime.jobs.recipe(send("train_on_pool", pool=crew, teacher="")["job"]).sft is None


@pytest.mark.parametrize(
    ("changes", "teacher", "sentence"),
    [
        ({"judge_only": True}, "first", "first only judges and plans nothing"),
        ({"config": {"api_key": "env:CREW_KEY"}}, "first", "CREW_KEY is not set on this machine"),
        ({}, "nobody", "has no agent 'nobody'"),
        ({"enabled": False}, "first", "has no agent 'first'"),
    ],
)
def test_who_cannot_plan_is_no_teacher(send, runtime, crew, monkeypatch, changes, teacher, sentence):
    monkeypatch.delenv("CREW_KEY", raising=False)
    pool = runtime.store.pools.latest(crew).pool
    spec = pool.worker("first")
    third = spec.model_copy(update={"name": "third"})
    changes = changes | {"config": {**spec.config, **changes.get("config", {})}}
    changed = pool.with_worker(third).with_worker(spec.model_copy(update=changes), "first")
    runtime.store.pools.save(changed)
    plan = send("training_plan", pool=crew, teacher=teacher)["plan"]
    assert teacher not in plan["teachers"] and sentence in " ".join(plan["gaps"])
    refused = send("train_on_pool", pool=crew, teacher=teacher)
    assert not refused["ok"] and sentence in str(refused["problems"])

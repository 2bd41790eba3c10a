"""Practice tasks on pools that are not ours: every plan runs, no split knows another's calls, nothing has an effect."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import BadCall
from pool_registry.kinds import KINDS, add_kind
from pool_registry.pool import Pool
from pool_registry.worker import Call, Reply, Worker
from tests.trainer.support.shop import CITIES, build_shop, describe_worker
from trainer.errors import UnusableTasks
from trainer.tasks.practice.make_tasks import PracticeOptions, PracticeTasks, make_practice_tasks, save_practice_tasks
from trainer.tasks.registry import open_source


class Census(Worker):
    """Looks up a city; counts its calls, because nobody said that they have no effect."""

    calls = 0

    @property
    def parameters(self) -> dict[str, JsonValue]:
        rule = {"type": "string", "description": "a name such as Lisbon, Oslo"}
        return {"type": "object", "properties": {"city": rule}, "required": ["city"], "additionalProperties": False}

    async def call(self, call: Call) -> Reply:
        Census.calls += 1
        if call.text("city") not in CITIES:
            raise BadCall("there is no such city")
        return Reply(CITIES[call.text("city")])


class Dice(Census):
    """Answers otherwise every time."""

    async def call(self, call: Call) -> Reply:
        Census.calls += 1
        return Reply(Census.calls)


class Register(Census):
    """Returns a record of a city: a name, a table inside, a link, what it was asked for, and the number of calls."""

    cacheable = True

    async def call(self, call: Call) -> Reply:
        city = call.text("city")
        Census.calls += 1
        record: JsonValue = {"mayor": f"M. {city[::-1]}", "size": {"people": CITIES[city]}, "city": city}
        return Reply([{**record, "link": f"https://x.org/{city}", "served": Census.calls}])  # type: ignore[dict-item]


class Writer(Worker):
    """An agent that rewords every other request, and answers the others with a question of its own."""

    role = "agent"
    calls = 0
    parameters = {"type": "object", "properties": {"instruction": {"type": "string"}}, "required": ["instruction"]}

    async def call(self, call: Call) -> Reply:
        Writer.calls += 1
        query = call.text("instruction").rpartition("Request: ")[2]
        return Reply(f"hey, {query}" if Writer.calls % 2 else "what about something else?")


@pytest.fixture(autouse=True)
def kinds():
    Census.calls = Writer.calls = 0
    made = {"census": Census, "dice": Dice, "writer": Writer, "register": Register}
    for name, kind in made.items():
        add_kind(name, kind)
    yield
    for name in made:
        del KINDS.built_in[name]


@pytest.fixture
def shop(tmp_path) -> Pool:
    """The shop, with a census of cities."""
    pool = build_shop(tmp_path)
    census = describe_worker("census", "census", "The number of people who live in a city.")
    return pool.model_copy(update={"workers": (*pool.workers, census)})


def make(pool: Pool, **options) -> PracticeTasks:
    async def draw() -> PracticeTasks:
        async with live_pool(pool) as live:
            return await make_practice_tasks(live, PracticeOptions(**options))

    return asyncio.run(draw())


def list_literals(tasks: PracticeTasks, split: str, worker: str) -> set[str]:
    """Arguments of a worker's calls in a split that quote no step."""
    steps = [step for line in tasks.lines if line.split == split for step in line.plan["steps"]]
    texts = {json.dumps(step.get("instruction", step.get("arguments"))) for step in steps if step["worker"] == worker}
    return {text for text in texts if "$" not in text}


def test_every_plan_runs_and_is_right_and_the_file_is_a_task_file(shop, tmp_path):
    tasks = make(shop, count=60, allowed=frozenset({"census"}))
    save_practice_tasks(tasks, tmp_path / "made" / "shop.jsonl")
    source = open_source(f"file:{tmp_path / 'made' / 'shop.jsonl'}")
    loaded = [task for split in ("train", "validation", "test") for task in source.tasks(split, 1000)]
    assert len(loaded) == len(tasks.lines) > 40

    async def run_all() -> list[bool]:
        async with live_pool(shop) as pool:
            policies = [(task, OraclePolicy(task.oracle_turn)) for task in loaded]
            ended = [await run_episode(EpisodeSpec(task.query), policy, pool) for task, policy in policies]
        return [task.verifier.accepts(episode.answer) for task, episode in zip(loaded, ended, strict=True)]

    assert all(asyncio.run(run_all()))


def test_tasks_have_one_to_four_steps_and_feed_outputs_to_other_workers(shop):
    lines = make(shop, count=80, allowed=frozenset({"census"})).lines
    plans = [line.plan["steps"] for line in lines]
    assert {len(steps) for steps in plans} >= {1, 2, 3}
    fed = [steps for steps in plans if steps[-1]["worker"] == "census" and steps[-1]["access"]]
    assert fed and all(steps[0]["worker"] == "city_of" for steps in fed)
    queries = [line.query for line in lines]
    assert any("the number of people who live in the city of Firm" in query for query in queries), queries
    names = [spec.name for spec in shop.workers]
    assert not [query for query in queries if any(name in query for name in names if "_" in name)]


def test_splits_share_no_call(shop):
    tasks = make(shop, count=100, allowed=frozenset({"census"}))
    assert all(count > 0 for count in tasks.count_splits().values())
    for worker in ("city_of", "crm"):
        train, test = list_literals(tasks, "train", worker), list_literals(tasks, "test", worker)
        assert train and test and not train & test


def test_the_same_seed_makes_the_same_tasks_and_another_seed_others(shop):
    first, again, other = (make(shop, count=30, seed=seed).lines for seed in (1, 1, 2))
    assert first == again != other


def test_a_worker_that_may_have_effects_is_never_called_unless_allowed(shop):
    tasks = make(shop, count=30)
    assert Census.calls == 0 and "--allow" in tasks.reasons["census"]
    assert all(step["worker"] != "census" for line in tasks.lines for step in line.plan["steps"])


def test_answers_that_change_and_answers_that_are_always_the_same_are_left_out(tmp_path):
    pool = Pool(name="dice", workers=(describe_worker("dice", "dice", "Rolls the dice of a city."),))
    with pytest.raises(UnusableTasks, match="dice: no call of it gave an answer"):
        make(pool, count=5, allowed=frozenset({"dice"}))


def test_tasks_ask_for_fields_of_objects_and_feed_them_to_other_workers(shop):
    register = describe_worker("register", "register", "Returns the record of a city.")
    lines = make(shop.model_copy(update={"workers": (*shop.workers, register)}), count=80).lines
    mine = [line for line in lines if line.plan["steps"][-1]["worker"] == "register"]
    answers = {line.plan["answer"] for line in mine}
    assert {"$1[0].mayor", "$1[0].size.people", "$2[0].mayor"} <= answers, answers
    assert not [answer for answer in answers if "link" in answer or "served" in answer or answer.endswith(".city")]
    queries = [line.query for line in mine]
    assert any("the mayor of the record of Lisbon" in query for query in queries), queries
    assert any("the size people of the record of the city of Firm" in query for query in queries), queries


def test_no_plan_is_asked_twice_in_other_words(shop):
    plans = [json.dumps(line.plan) for line in make(shop, count=100, allowed=frozenset({"census"})).lines]
    assert len(plans) == len(set(plans))


def test_sums_add_numbers_of_the_same_kind(shop):
    lines = make(shop, count=100, allowed=frozenset({"census"})).lines
    sums = [line.plan["steps"] for line in lines if line.plan["steps"][-1]["worker"] == "calc"]
    assert sums
    for *_, last in (steps for steps in sums):
        added = {steps[k - 1]["worker"] for steps in sums if steps[-1] == last for k in last["access"]}
        assert len(added) == 1, sums


def test_recorded_calls_are_used_where_nothing_else_is_known(tmp_path):
    undescribed = describe_worker("census", "census", "People.")
    recorded = {"census": [{"city": "Cairo"}, {"city": "Kyoto"}, {"city": "Nowhere"}]}
    tasks = make(Pool(name="p", workers=(undescribed,)), count=8, allowed=frozenset({"census"}), recorded=recorded)
    answers = [line.answer for line in tasks.lines]
    assert CITIES["Cairo"] in answers or CITIES["Kyoto"] in answers


def test_an_agent_may_word_the_queries_and_is_not_believed_where_it_changes_them(shop):
    pool = shop.model_copy(update={"workers": (*shop.workers, describe_worker("writer", "writer", "Writes."))})
    lines = make(pool, count=40, agent="writer").lines
    friendly = [line for line in lines if line.query.startswith("hey, ")]
    assert friendly and len(friendly) < len(lines)
    assert all("something else" not in line.query for line in lines)


def test_an_agent_that_is_not_in_the_pool_is_named_with_those_there_are(shop):
    with pytest.raises(UnusableTasks, match="there is no worker 'poet'; use one of: city_of"):
        make(shop, agent="poet")


def test_the_command_writes_the_file_and_says_what_was_left_out(shop, tmp_path):
    from typer.testing import CliRunner

    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home
    from studio.__main__ import app

    store = open_store(find_home(str(tmp_path / "home")))
    store.pools.save(shop)
    store.close()
    home = ["--home", str(tmp_path / "home")]
    result = CliRunner().invoke(app, ["tasks", "make", "--pool", "shop", "--count", "20", "--json", *home])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert Path(document["file"]).is_file() and document["tasks"]["train"] > 5
    assert "effects" in document["left_out"]["census"] and document["calls"]["city_of"] > 3

"""Skills are found in right runs and tasks, tested on what they were not made of, and hold no word of a question."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import Store
from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.skill import SkillConfig
from studio.__main__ import app
from studio.housekeeping.forget_skills import list_made_of
from studio.housekeeping.forgetting import Sender, forget
from studio.prepare import prepare_store
from trainer.demonstrations.episode_task import Judgement, judge_run
from trainer.evaluation.trials import make_inner_orchestrator
from trainer.skills.examples import list_examples
from trainer.skills.find import add_skill, find_skills, list_skills, remove_skill
from trainer.skills.generalize import generalize
from trainer.skills.template import make_template, states
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.sources.jsonl import NumberRule, TaskLine
from trainer.traffic.accept import set_consent

pytestmark = pytest.mark.medium
CALC = WorkerSpec(name="calc", kind="calculator", description="Works out an expression. It knows + and *.")
UNITS = WorkerSpec(name="units", kind="units", description="Convert a value from one unit to another.")
PROPERTIES = {"units": {"value": {"type": "number"}, "from_unit": {"type": "string"}, "to_unit": {"type": "string"}}}


@pytest.fixture
def store(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = prepare_store(str(tmp_path / "home"))
    opened.pools.save(Pool(name="mine", workers=(CALC, UNITS)))
    yield opened
    opened.close()


def double(number: float, unit: str = "km", factor: int = 2) -> Turn:
    steps = (
        Step(1, "calc", {"expression": f"{factor} * {number}"}),
        Step(2, "units", {"value": "$1", "from_unit": unit, "to_unit": "mile"}, (1,)),
    )
    return Turn(steps, "$2")


def record(store: Store, query: str, turn: Turn, *, user: str = "", source: str = "mine", is_right: bool = True) -> str:
    async def once() -> str:
        from pool_registry.calls.live_pool import live_pool

        async with live_pool(store.pools.latest("mine").pool) as live:
            spec = EpisodeSpec(query, source=source, user=user)
            policy = OraclePolicy(turn)
            return (await run_episode(spec, policy, live, sink=store.traces, resolve=make_inner_orchestrator)).id

    run = asyncio.run(once())
    store.traces.flush()
    judge_run(store, run, Judgement(is_right=is_right))
    return run


def record_two(store: Store, **options) -> list[str]:
    return [
        record(store, "Twice 21 km, in miles?", double(21), **options),
        record(store, "what is two times 8 km as miles", double(8), **options),
    ]


def test_two_right_runs_make_a_skill_with_the_names_of_their_workers(store):
    runs = record_two(store)
    (skill,) = find_skills(store, "mine")
    assert skill.problem == "" and skill.spec.name == "calc_units"
    assert list(skill.config.parameters["properties"]) == ["number", "from_unit"]
    assert skill.config.steps[0].arguments == {"expression": "2 * {number}"}
    assert skill.config.steps[1].arguments == {"from_unit": "{from_unit}", "to_unit": "mile", "value": "$1"}
    record_ = skill.config.record
    assert (record_.right, record_.tried, set(record_.runs)) == (2, 2, set(runs)) and record_.at
    assert skill.spec.description.startswith("Units by number, from unit: calc, then units. Works out an expression.")


def test_it_is_a_worker_that_plans_call_and_a_trace_shows(store):
    record_two(store)
    skill = add_skill(store, "mine", "calc_units")
    call = Turn((Step(1, "calc_units", {"number": 5, "from_unit": "km"}),), "$1")
    run = record(store, "double of 5 km", call)
    episode = store.traces.episode(run)
    assert float(str(episode.answer).split()[0]) == pytest.approx(6.2137, abs=1e-3)
    inner = store.traces.episode(episode.steps[1].observation.episode)
    assert inner.started.orchestrator == "skill:calc_units" and [s.step.worker for s in inner.steps.values()] == [
        "calc",
        "units",
    ]
    assert [spec.name for spec in list_skills(store.pools.latest("mine").pool)] == [skill.spec.name]
    assert find_skills(store, "mine") == [], "it is in the pool already"
    shown = CliRunner().invoke(app, ["skills", "list", "--pool", "mine", "--home", str(store.home.root)])
    assert "Right on 2 of 2 solved questions" in shown.output and "called 1 time of late, 0 failed" in shown.output


@pytest.mark.parametrize(
    ("query", "turn", "options"),
    [
        ("two times 8 km as miles", double(8), {"is_right": False}),
        ("two times 8 km as miles", double(8, factor=3), {}),
        ("two times eight km as miles", double(8), {}),
        ("Twice 21 km, in miles", double(21), {}),
        ("two times 8 km as miles", double(8), {"source": "evaluation"}),
        ("two times 8 km as miles", double(8), {"source": "served"}),
    ],
)
def test_wrong_other_unstated_repeated_measured_and_clients_runs_make_none(store, query, turn, options):
    record(store, "Twice 21 km, in miles?", double(21))
    record(store, query, turn, **options)
    assert find_skills(store, "mine") == []


def test_clients_runs_make_one_once_they_may_become_tasks(store):
    record_two(store, source="served", user="client-a")
    assert list_examples(store, store.pools.latest("mine").pool) == []
    set_consent("mine", True)
    assert len(find_skills(store, "mine")) == 1


def test_tasks_make_one_and_those_that_measure_do_not(store):
    plan = {"steps": [{"worker": step.worker, "arguments": dict(step.arguments), "access": list(step.access)}
                      for step in double(21).steps], "answer": "$2"}  # fmt: skip
    other = json.loads(json.dumps(plan).replace("21", "8"))
    book = TaskBook(store.home.root / "tasks" / "mine.jsonl")
    rule = NumberRule(kind="number", tolerance=0.01)
    right = TaskLine(query="Twice 21 km, in miles?", answer=26.1, plan=plan, split="train", verifier=rule)
    wrong = TaskLine(query="two times 8 km as miles", answer=1, plan=other, split="test", verifier=rule)
    book.add([right, wrong])
    assert find_skills(store, "mine") == []
    book.replace(wrong.query, wrong.model_copy(update={"split": "train"}))
    (skill,) = find_skills(store, "mine")
    assert "is right on 1 of 2" in skill.problem and "two times 8 km" in skill.problem, "one answer is wrong"
    with pytest.raises(InvalidPool, match="not added"):
        add_skill(store, "mine", skill.spec.name)


def test_what_may_have_effects_is_called_to_test_it_only_where_that_is_allowed(store):
    record_two(store)
    store.pools.edit("mine", lambda pool: pool.with_worker(UNITS.model_copy(update={"effects": "some"}), "units"))
    (skill,) = find_skills(store, "mine")
    assert "a call of units may have effects; allow it with --allow units" in skill.problem
    assert find_skills(store, "mine", ["units"])[0].problem == ""
    with pytest.raises(InvalidPool, match="no worker 'unit'"):
        find_skills(store, "mine", ["unit"])


def test_what_was_made_of_a_persons_runs_is_forgotten_with_them(store):
    first, second = record_two(store, user="ann")
    add_skill(store, "mine", "calc_units")
    store.pools.edit("mine", lambda pool: pool.with_worker(CALC.model_copy(update={"tools": ()}), "calc"))
    agent = WorkerSpec(name="helper", kind="calculator", description="Helps.", fallback="calc_units")
    store.pools.edit("mine", lambda pool: pool.with_worker(agent))
    assert list_made_of(store.pools.latest("mine").pool, {first}) == {"calc_units"}
    forgotten = forget(store, Sender(user="ann"))
    assert forgotten.counts["skills"] == 1
    versions = [stored.pool for stored in store.pools.versions("mine")]
    assert all(not list_skills(pool) for pool in versions) and versions[0].worker("helper").fallback == ""
    assert not [path for path in store.home.root.rglob("*") if path.is_file() and second.encode() in path.read_bytes()]


def test_commands_find_add_and_remove(store):
    record_two(store)
    home = ["--pool", "mine", "--home", str(store.home.root)]
    found_one = CliRunner().invoke(app, ["skills", "find", *home])
    assert "calc_units(number, from_unit)" in found_one.output and "podium skills add calc_units" in found_one.output
    assert (
        CliRunner().invoke(app, ["skills", "add", "calc_units", *home]).output.strip() == "calc_units is in mine now."
    )
    assert "No skill" in CliRunner().invoke(app, ["skills", "find", *home]).output
    assert json.loads(CliRunner().invoke(app, ["skills", "list", *home, "--json"]).output)[0]["uses"] == [0, 0]
    assert CliRunner().invoke(app, ["skills", "remove", "calc_units", *home]).exit_code == 0
    assert "has no skill" in CliRunner().invoke(app, ["skills", "list", *home]).output
    with pytest.raises(PoolNotFound, match="no skill 'calc_units'"):
        remove_skill(store, "mine", "calc_units")


def template(query: str, turn: Turn):
    return make_template(query, turn, lambda name: PROPERTIES.get(name, {}))


def test_values_that_are_equal_in_every_plan_are_one_parameter():
    def pair(one: float, other: float) -> Turn:
        steps = (
            Step(1, "units", {"value": one, "from_unit": "km"}),
            Step(2, "units", {"value": other, "from_unit": "km"}),
        )
        return Turn(steps, "$2")

    same = generalize([template("3 km", pair(3, 3)), template("4 km", pair(4, 4))])
    assert list(same.config.parameters["properties"]) == ["from_unit", "value"]
    others = generalize([template("3 or 5 km", pair(3, 5)), template("4 or 6 km", pair(4, 6))])
    assert list(others.config.parameters["properties"]) == ["from_unit", "value", "value_2"]
    assert others.config.steps[1].arguments["value"] == "{value_2}"


@pytest.mark.parametrize(
    ("query", "value", "is_stated"),
    [
        ("Twice 1,200 km", 1200, True),
        ("Twice 12 km", 2, False),
        ("version 1.2", 2, False),
        ("Is it true?", True, False),
        ("the old  Harbour blend", "Old Harbour", True),
        ("harbours", "harbour", False),
        ("costs $5", "$5", False),
    ],
)
def test_what_counts_as_stated(query, value, is_stated):
    assert states(query, value) is is_stated


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.text(max_size=8)
    | st.sampled_from(["$1", "a $1[0] 3", "{x}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "x"]), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["value", "number", "x", "from unit"]), JSON, max_size=3), st.text(max_size=20))
def test_a_skill_of_a_plan_called_with_its_own_values_is_that_plan(arguments, query):
    from pool_registry.kinds import open_worker

    turn = Turn((Step(1, "calc", {"a": 1}), Step(2, "calc", arguments, (1,))), "$2")
    made_of = template(f"{query} 3 x {json.dumps(arguments)}", turn)
    if made_of is None:
        return
    made = generalize([made_of])
    SkillConfig.model_validate(made.config.model_dump(mode="json"))
    spec = WorkerSpec(name="s", kind="skill", description="d", config=made.config.model_dump(mode="json"))
    plan = open_worker(spec).fill(made.read_arguments(made_of))
    assert plan[1].arguments == {key: pytest.approx(value) if isinstance(value, float) else value
                                 for key, value in escape_stated(arguments, plan[1].arguments).items()}  # fmt: skip


def escape_stated(arguments, filled):
    """Values with a dollar that were passed come doubled, which a plan reads as one."""
    return {key: filled[key] if "$$" in json.dumps(filled[key]) else value for key, value in arguments.items()}

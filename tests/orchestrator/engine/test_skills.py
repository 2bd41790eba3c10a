"""A skill runs its plan on the pool's workers: what holds for a plan holds for it, and its steps are in a trace."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.approval.plan_gate import PlanGate, list_effectful_workers
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.release import Decision, PlanRelease
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.actions import Action
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import live_pool
from pool_registry.calls.run_limits import RunLimits
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import InvalidPool
from pool_registry.kinds import load_config, open_worker
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import make_inner_orchestrator

CALC = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")
PRICED = CALC.model_copy(update={"name": "priced", "price_call": 0.5})
SKILL = WorkerSpec(
    name="double_and_add",
    kind="skill",
    description="Double a number and add another.",
    config={
        "steps": [
            {"worker": "calc", "arguments": {"expression": "2 * {number}"}},
            {"worker": "priced", "arguments": {"expression": "$1 + {other}"}, "access": [1]},
        ],
        "answer": "$2",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "number"}, "other": {"type": "number"}},
            "required": ["number", "other"],
            "additionalProperties": False,
        },
    },
)
POOL = Pool(name="p", workers=(CALC, PRICED, SKILL))
CALL = Turn((Step(1, "double_and_add", {"number": 4, "other": 3}),), "$1")


class Kept:
    def __init__(self):
        self.events = []

    def append(self, episode_id, event):
        self.events.append((episode_id, event))

    def of(self, kind):
        return [(key, event) for key, event in self.events if type(event).__name__ == kind]


def run(pool=POOL, turn=CALL, limits=None, sink=None, view=lambda live: live, **options):
    async def once():
        async with live_pool(pool) as live:
            opened = view(live)
            limited = opened.limit(limits) if limits else opened
            spec = options.pop("spec", EpisodeSpec("q"))
            return await run_episode(
                spec, OraclePolicy(turn), limited, sink=sink, resolve=make_inner_orchestrator, **options
            )

    return asyncio.run(once())


def failure(episode):
    seen = episode.steps[1].observation
    assert seen.error is not None, f"it ran: {seen.value}"
    return seen.error


def test_it_runs_its_plan_as_an_episode_inside_whose_cost_counts_once():
    sink = Kept()
    episode = run(sink=sink)
    assert float(episode.answer) == 11
    _, (inner_id, inner) = sink.of("EpisodeStarted")
    assert inner.orchestrator == "skill:double_and_add" and inner.parent.step == 1 and inner.depth == 1
    assert '"number": 4' in inner.query and episode.steps[1].observation.episode == inner_id
    steps = [event for key, event in sink.of("StepStarted") if key == inner_id]
    assert [event.arguments for event in steps] == [{"expression": "2 * 4"}, {"expression": "8 + 3"}]
    assert episode.usage.cost == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        (POOL.without_worker("calc"), "which the pool lacks"),
        (POOL.with_worker(CALC.model_copy(update={"enabled": False}), "calc"), "which is switched off"),
    ],
)
def test_without_one_of_its_workers_it_is_refused_and_nothing_runs(pool, why):
    sink = Kept()
    error = failure(run(pool, sink=sink))
    assert error.code == "broken_skill" and why in error.message and "calls calc" in error.message
    assert len(sink.of("EpisodeStarted")) == 1, "no episode began inside"


def test_a_ban_a_hidden_output_and_a_cap_hold_for_its_steps():
    assert "this run may not call" in failure(run(limits=RunLimits(without_workers=("priced",)))).message
    assert "does not show to it" in failure(run(limits=RunLimits(seen_by={"calc": ("priced",)}))).message
    dear = run(limits=RunLimits(max_cost=0.1))
    assert dear.usage.cost == 0 and not dear.steps[1].observation.ok


def test_a_step_that_no_longer_fits_its_worker_keeps_all_from_running():
    broken = SKILL.model_copy(update={"config": {**SKILL.config, "steps": [
        SKILL.config["steps"][0], {"worker": "priced", "arguments": {"formula": "{other}"}, "access": [1]},
    ]}})  # fmt: skip
    sink = Kept()
    error = failure(run(POOL.with_worker(broken, SKILL.name), sink=sink))
    assert "its step 2 (priced)" in error.message and len(sink.of("EpisodeStarted")) == 1


def test_the_step_that_failed_is_named():
    divided = {**SKILL.config, "steps": [{"worker": "calc", "arguments": {"expression": "{number} / {other}"}}],
               "answer": "$1"}  # fmt: skip
    pool = POOL.with_worker(SKILL.model_copy(update={"config": divided}), SKILL.name)
    error = failure(run(pool, Turn((Step(1, SKILL.name, {"number": 1, "other": 0}),), "$1")))
    assert "its step 1 (calc) failed" in error.message


def make_effectful():
    return POOL.with_worker(PRICED.model_copy(update={"effects": "some"}), "priced")


def test_it_has_the_effects_of_its_workers_and_waits_for_a_person_as_they_do():
    pool = make_effectful().model_copy(update={"mode": DeploymentMode(name="escalate", max_doubt=1.0)})

    async def list_names():
        async with live_pool(pool) as live:
            return list_effectful_workers(live), live.list_called(SKILL.name)

    assert asyncio.run(list_names()) == ({"priced", SKILL.name}, [SKILL.name, "calc", "priced"])
    assert failure(run(pool)).code == "needs_approval", "nobody can be asked here"
    reviews = []

    async def approve(review):
        reviews.append(review)
        return Decision("approve", "ann")

    release = PlanRelease(PlanGate(pool.mode), approve)
    assert float(run(pool, release=release).answer) == 11
    assert [reason.code for reason in reviews[0].reasons] == ["effects"] and len(reviews) == 1

    async def refuse(_):
        return Decision("reject", "ann")

    assert run(pool, release=PlanRelease(PlanGate(pool.mode), refuse)).ended.outcome == "rejected"


def test_a_trial_makes_no_call_of_it_that_may_have_effects():
    error = failure(run(make_effectful(), view=refuse_effects))
    assert "its step 2 (priced) failed: a call of priced may have effects" in error.message


def test_depth_and_steps_are_limited_also_for_one_that_calls_itself():
    step = {"worker": SKILL.name, "arguments": {"number": "{number}", "other": "{other}"}}
    config = {**SKILL.config, "steps": [step], "answer": "$1"}
    pool = POOL.with_worker(SKILL.model_copy(update={"config": config}), SKILL.name)
    pool = pool.model_copy(update={"limits": Limits(max_depth=2)})
    assert "nested 2 deep" in failure(run(pool)).message


def test_texts_of_a_call_quote_no_step_and_fill_in_once():
    first, second = open_worker(SKILL).fill({"number": "$1 {other}", "other": 3})
    assert first.arguments == {"expression": "2 * $$1 {other}"} and second.arguments == {"expression": "$1 + 3"}


def test_an_argument_that_was_left_out_is_left_out_of_its_step():
    parameters = {**SKILL.config["parameters"], "required": ["number"]}
    skill = open_worker(replace_config(parameters=parameters))
    assert skill.fill({"number": 4})[1].arguments == {}


def replace_config(**changes):
    return SKILL.model_copy(update={"config": {**SKILL.config, **changes}})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"steps": []}, "must not be empty"),
        ({"steps": [{"worker": "calc", "access": [1]}]}, "no step uses the parameter"),
        ({"steps": [SKILL.config["steps"][0] | {"access": [1]}, SKILL.config["steps"][1]]}, "earlier steps alone"),
        ({"record": {"right": -1, "tried": 1}}, "at least 0"),
    ],
)
def test_a_plan_that_cannot_be_one_is_refused_when_it_is_stored(changes, what):
    with pytest.raises(InvalidPool) as refused:
        load_config(replace_config(**changes))
    assert what in str(refused.value)


def test_outside_an_episode_it_says_where_it_runs():
    async def once():
        async with live_pool(POOL) as live:
            return await live.call(Action(SKILL.name, {"number": 1, "other": 2}))

    assert asyncio.run(once()).error.code == "no_episode"

"""The exact figures of plans are those that many readings by the experts come to."""

from __future__ import annotations

from math import sqrt

import pytest

from bench.agents.cases import KINDS, GroundTask, make_task
from bench.agents.ground import Judged
from bench.agents.plans import Plan, Situation, find_best_plan, judge_plan, judge_product_cascade, list_plans
from bench.agents.whole import Scene, make_scene
from podium_lessons.agents.experts import Expert
from podium_lessons.agents.reading import CallFails, Reader
from pool_registry.actions import Observation, Status
from pool_registry.language_models.completion import agent_messages
from pool_registry.worker import Visible

TASKS = 150


def read(scene: Scene, expert: Expert, text: str, outputs: list[str]) -> tuple[str, float]:
    """What an expert says without HTTP, and what that costs; "" where it fails."""
    seen = [Visible(k, "someone", Observation(Status.OK, output, 0.0)) for k, output in enumerate(outputs) if output]
    try:
        return Reader(expert, scene.book).reply(agent_messages("", text, seen)[0].content), expert.price
    except CallFails:
        return "", 0.0


def play(scene: Scene, task: GroundTask, plan: Plan) -> tuple[bool, float]:
    experts = scene.see(task).pick(plan)
    calls: list[tuple[str, float]] = []
    match plan.form:
        case "ask":
            calls = [read(scene, experts[0], task.query, [])]
        case "check":
            calls = [read(scene, expert, task.query, []) for expert in experts]
            if calls[0][0] and calls[0][0] == calls[1][0]:
                calls = calls[:2][::-1]
        case "vote":
            calls = [read(scene, expert, task.query, []) for expert in scene.ground.experts]
            calls.append(read(scene, experts[0], task.query, [text for text, _ in calls]))
        case "split":
            for case, expert in zip(task.cases, experts, strict=True):
                calls.append(read(scene, expert, case.text, [text for text, _ in calls] if case.given else []))
    right = bool(calls) and make_task(scene.book, task).verifier.accepts(calls[-1][0])
    return right, sum(price for _, price in calls)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "form"),
    [("chain", "ask"), ("check", "check"), ("join", "check"), ("route", "vote"), ("chain", "vote"), ("chain", "split"),
     ("join", "split")],
)  # fmt: skip
def test_exact_values_are_those_of_many_readings(kind, form):
    scene = make_scene(0, 1, kind, TASKS)
    plans = [plan for plan in list_plans(scene.see(scene.tasks[0])) if plan.form == form]
    for plan in plans[:1] + plans[-1:]:
        exact = [judge_plan(scene.see(task), plan) for task in scene.tasks]
        played = [play(scene, task, plan) for task in scene.tasks]
        deviation = sqrt(sum(row.right * (1 - row.right) for row in exact))
        surplus = sum(right for right, _ in played) - sum(row.right for row in exact)
        assert abs(surplus) <= 3.5 * deviation, f"{plan} is further off than in one of 2,000 measurements"
        assert sum(cost for _, cost in played) == pytest.approx(sum(row.cost for row in exact), rel=0.15)


def make_situation(kind: str, *skills: float, failure: float = 0.0) -> Situation:
    experts = [Expert(f"e{k}", (skill, skill), 1.0 + k, 1.0, failure) for k, skill in enumerate(skills)]
    return Situation(tuple(experts), kind, {"nobody": (-1,), "route": (0,), "check": (0,)}.get(kind, (0, 1)))


def test_the_best_plan_is_of_most_worth_and_refuses_what_nobody_knows():
    assert find_best_plan(make_situation("nobody", 0.9, 0.8)) == Plan("refuse")
    assert find_best_plan(make_situation("route", 0.2, 0.9, 0.3)) == Plan("ask", (1,))
    assert find_best_plan(make_situation("route", 0.01, 0.01)) == Plan("refuse"), "no answer is worth these prices"


def test_two_cheap_experts_and_a_dear_one_are_better_than_the_dear_one():
    cheap = [Expert(f"e{k}", (0.75,), 0.3, 1.0, 0.0) for k in range(2)]
    situation = Situation((*cheap, Expert("dear", (0.9,), 3.0, 1.0, 0.0)), "check", (0,))
    assert find_best_plan(situation) == Plan("check", (0, 1, 2))
    agree = 0.75**2 + 0.25**2 / 3
    judged = judge_plan(situation, Plan("check", (0, 1, 2)))
    assert judged.right == pytest.approx(0.75**2 + (1 - agree) * 0.9)
    assert judged.cost == pytest.approx(0.6 + (1 - agree) * 3.0)


def test_the_cascade_takes_the_first_that_is_sure_and_works():
    situation = make_situation("route", 0.5, 0.8, 0.9)
    assert judge_product_cascade(situation, [50, 80, 90], 70) == Judged(0.8, 3.0)
    assert judge_product_cascade(situation, [50, 60, 10], 70) == Judged(0.9, 6.0), "the last one is not checked"
    failing = make_situation("route", 0.5, 0.8, 0.9, failure=0.5)
    # 1/2: the second answers; 1/4: the third; 1/8: the first, which is not sure, is all there is.
    assert judge_product_cascade(failing, [50, 80, 90], 70).right == pytest.approx(0.8 / 2 + 0.9 / 4 + 0.5 / 8)


def test_a_seed_draws_the_same_scene():
    for kind in KINDS:
        assert make_scene(2, 1, kind, 3) == make_scene(2, 1, kind, 3) != make_scene(2, 0, kind, 3)

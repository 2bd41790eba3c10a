"""Plans that do not run by themselves: review, escalation, effects, decisions, and the rest of the episode."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from orchestrator.approval.plan_gate import CallAverages, PlanGate, estimate_plan
from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.episode_loop import EpisodeSpec, resume_episode, run_episode
from orchestrator.engine.release import Decision, PlanRelease, leave_waiting
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import OutOfDepth, Turn, Vote
from pool_registry.deployment_mode import DeploymentMode, tighten_mode
from pool_registry.pool import Pool
from tests.orchestrator.support.engine import (
    ALL,
    STAGE,
    Events,
    Scripted,
    a_pool,
    canary,
    codes,
    engine_kinds,
    step,
    worker,
)

__all__ = ["engine_kinds"]

REVIEW = DeploymentMode(name="review")
HARMLESS = tuple(spec.model_copy(update={"effects": "none"}) for spec in ALL)


def play(*turns: Any, mode: DeploymentMode, workers: Any = HARMLESS, stronger: Any = None, **more: Any) -> Episode:
    STAGE.clear()
    release = PlanRelease(PlanGate(mode), more.pop("approve", leave_waiting), stronger)

    async def once() -> Episode:
        return await run_episode(EpisodeSpec("q"), Scripted(*turns), a_pool(workers), release=release, **more)

    return asyncio.run(once())


def resume(episode: Episode, decision: Decision, *turns: Any, mode: DeploymentMode, **more: Any) -> Episode:
    async def once() -> Episode:
        release = PlanRelease(PlanGate(mode))
        return await resume_episode(episode, decision, Scripted(*turns), a_pool(HARMLESS), release, **more)

    return asyncio.run(once())


def test_a_plan_waits_and_the_rest_of_the_episode_goes_on_from_its_trace():
    events = Events()
    first = Turn((step(1),))
    held = play(first, mode=REVIEW, sink=events)
    assert held.ended is None and held.held.reasons[0].code == "review" and STAGE.shown == {}
    again = replay(held.id, events.all())  # as after a restart
    waiting = resume(again, Decision("approve", "ada"), Turn((step(2),), "$2"), mode=REVIEW, sink=events)
    assert STAGE.shown.keys() == {1} and waiting.held.round == 2, "the second plan waits, too"
    ended = resume(waiting, Decision("approve", "ada"), mode=REVIEW, sink=events)
    assert ended.answer == canary(2) and [done.number for done in ended.rounds] == [1, 2]
    assert replay(held.id, events.all()).answer == canary(2)


def test_time_that_a_plan_waited_does_not_count():
    held = play(Turn((step(1),), "$1"), mode=REVIEW)
    at = held.last_at
    ended = resume(held, Decision("approve", "ada"), mode=REVIEW)
    assert ended.last_at - at < 1.0 and ended.ended.at >= at


def test_an_edited_plan_replaces_the_one_that_was_written():
    held = play(Turn((step(1), step(2)), "$1"), mode=REVIEW)
    edited = Turn((step(1, worker="agent"),), "$1")
    ended = resume(held, Decision("approve", "ada", turn=edited), mode=REVIEW)
    assert list(ended.steps) == [1] and ended.steps[1].step.worker == "agent" and ended.answer == canary(1)


def test_a_rejected_plan_ends_the_episode_with_the_name_of_who_rejected_it():
    held = play(Turn((step(1),)), mode=REVIEW)
    ended = resume(held, Decision("reject", "ada", "no"), mode=REVIEW)
    assert ended.ended.outcome == "rejected" and ended.ended.reason == "ada rejected the plan: no"
    assert STAGE.shown == {}


def test_somebody_who_is_there_decides_at_once():
    async def approve(review):
        return Decision("approve", "ada")

    episode = play(Turn((step(1),), "$1"), mode=REVIEW, approve=approve)
    assert episode.answer == canary(1)


def test_an_answer_without_steps_waits_for_nobody():
    assert play(Turn(answer="42"), mode=REVIEW).answer == "42"


def escalate(**limits: Any) -> DeploymentMode:
    return DeploymentMode(name="escalate", **limits)


def review_codes(turn: Turn, mode: DeploymentMode, depth: OutOfDepth | None = None, averages: Any = None) -> list[str]:
    async def once() -> list[str]:
        gate = PlanGate(mode, lambda _: averages or {})
        review = gate.review(turn, depth, a_pool(HARMLESS))
        return [reason.code for reason in review.reasons] if review else []

    return asyncio.run(once())


def test_escalation_asks_for_each_limit_that_is_passed_and_for_no_other():
    plan = Turn((step(1), step(2, access=[1])))
    sure, unsure = OutOfDepth(0.1, 0.9), OutOfDepth(0.8, 0.2)
    costly = {"actor": CallAverages(3, 0.5, 4.0)}
    assert review_codes(plan, escalate(), sure) == []
    assert review_codes(plan, escalate(), unsure) == ["doubt"]
    assert review_codes(plan, escalate(max_doubt=0.9), unsure) == []
    assert review_codes(plan, escalate()) == ["doubt"], "nothing is known"
    assert review_codes(plan, escalate(max_doubt=1)) == []
    split = replace(plan, vote=Vote(5, 0, 0, 0, 1, {"269": 1, "297": 1, "3": 1, "4": 1, "5": 1}))
    assert review_codes(split, escalate(), sure) == ["doubt"], "familiar words do not answer for plans that disagree"
    assert review_codes(plan, escalate(max_plan_cost=0.9, max_plan_s=10), sure, costly) == ["cost"]
    assert review_codes(plan, escalate(max_plan_cost=1.1, max_plan_s=7), sure, costly) == ["time"]


def test_the_estimate_adds_costs_and_follows_the_slowest_chain():
    async def once() -> Any:
        plan = (step(1), step(2), step(3, access=[1]), step(4, worker="number"))
        return estimate_plan(plan, a_pool(), {"actor": CallAverages(3, 0.5, 4.0)})

    estimate = asyncio.run(once())
    assert estimate.cost == 1.5 and estimate.seconds == 8.0 and estimate.unknown == (4,)


def test_calls_with_effects_wait_in_escalation_also_where_they_take_over():
    mailer = worker("mailer", "actor", effects="some")
    fronted = worker("front", "actor", effects="none", fallback="mailer")
    workers = (*HARMLESS, mailer, fronted)
    for name in ("mailer", "front"):
        held = play(Turn((step(1, worker=name),)), mode=escalate(max_doubt=1), workers=workers)
        assert [reason.code for reason in held.held.reasons] == ["effects"]


def test_a_stronger_orchestrator_plans_where_the_first_is_in_doubt_and_keeps_the_episode():
    strong = Scripted(Turn((step(1, "strong"),)), Turn(answer="$1"))
    strong.name = "strong"
    mode = escalate(escalate_to="strong")
    episode = play(Turn((step(1, "weak"),)), mode=mode, stronger=lambda: strong)
    assert episode.answer == canary(1) and "strong" in STAGE.shown[1] and episode.escalated_to == "strong"
    assert [type(event).__name__ for event in episode.rounds[0].releases] == ["PlanEscalated", "PlanDecided"]


def test_a_person_is_asked_before_effects_also_when_the_stronger_one_plans_them():
    mailer = worker("mailer", "actor", effects="some")
    strong = Scripted(Turn((step(1, worker="mailer"),)))
    held = play(Turn((step(1),)), mode=escalate(escalate_to="s"), workers=(*HARMLESS, mailer), stronger=lambda: strong)
    assert [reason.code for reason in held.held.reasons] == ["effects"] and STAGE.shown == {}


def test_a_person_is_asked_where_the_stronger_one_cannot_plan():
    def fail():
        raise UnknownOrchestrator("there is no agent planner")

    held = play(Turn((step(1),)), mode=escalate(escalate_to="model:planner"), stronger=fail)
    assert [reason.code for reason in held.held.reasons] == ["doubt", "escalation"]
    assert "there is no agent planner" in held.held.reasons[1].sentence


def test_where_nobody_can_be_asked_calls_with_effects_are_refused_and_others_run():
    async def once() -> Episode:
        pool = a_pool((*HARMLESS, worker("mailer", "actor", effects="some")))
        pool.pool = pool.pool.model_copy(update={"mode": REVIEW})
        return await run_episode(EpisodeSpec("q"), Scripted(Turn((step(1, worker="mailer"), step(2)), "$2")), pool)

    episode = asyncio.run(once())
    assert codes(episode) == {1: "needs_approval", 2: "OK"} and episode.answer == canary(2)


def test_an_inner_episode_follows_the_mode_of_the_run_around_it():
    mailer = worker("mailer", "actor", effects="some")
    events = Events()

    async def approve(review):
        return Decision("approve", "ada")

    def resolve(name, query, pool):
        return Scripted(Turn((step(1, worker="mailer"),)), Turn(answer="done"))

    play(
        Turn((step(1, worker="inner"),), "$1"), mode=REVIEW, workers=(*HARMLESS, mailer),
        approve=approve, resolve=resolve, sink=events,
    )  # fmt: skip
    inner = [event for event in events.all() if getattr(event, "observation", None) and event.observation.error]
    assert [event.observation.error.code for event in inner] == ["needs_approval"]


def test_a_client_can_only_tighten_and_pools_of_before_keep_their_hash():
    assert tighten_mode(REVIEW, "autonomous").name == "review"
    assert tighten_mode(DeploymentMode(), "escalate").name == "escalate"
    pool = Pool(name="p", workers=(worker("actor"),))
    assert pool.hash.startswith("52e568aa09369c04")
    assert pool.model_copy(update={"mode": REVIEW}).hash != pool.hash

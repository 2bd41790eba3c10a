"""Whole tasks on pools drawn anew: what each policy brings, exact, and beside it what real episodes come to.

Every episode runs through the product's own executor, which calls the simulated experts over HTTP; `best` runs as an
oracle's plan (a check takes two turns of its own), all others by their orchestrators' names. What a learned policy
writes cannot be known beforehand: of it there are the episodes alone.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from bench.agents.cases import KINDS, GroundTask, Kind, draw_tasks, make_task
from bench.agents.experts import CENT, serve_experts
from bench.agents.ground import Ground, Judged, draw_ground, with_checkers
from bench.agents.plans import (
    Plan,
    Situation,
    find_best_plan,
    find_cheapest,
    judge_all_asks,
    judge_plan,
    judge_product_cascade,
    measure_worth,
)
from bench.agents.plays import Play, average, compare_plays, observe
from bench.agents.rows import Row, describe_gaps
from orchestrator.choice.outcomes import Outcome
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import agent_step, write_turn
from orchestrator.policies.baselines.cascade import CONFIDENT
from orchestrator.policies.registry import make_orchestrator, orchestrator_factory
from orchestrator.quotes import escape
from orchestrator.reader.refusal import refuse
from podium_lessons.agents.cases import Book
from podium_lessons.agents.reading import state_confidence
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool, live_pool
from trainer.evaluation.trials import run_task

POLICIES = ("best", "single", "random", "votes", "cascade")
AT_A_TIME = 8  # episodes


class CheckPolicy(Orchestrator):
    """Asks two workers, and a third one where they do not agree."""

    name = "check"

    def __init__(self, workers: Sequence[str]) -> None:
        self._workers = list(workers)

    async def turn(self, episode: Episode) -> Turn:
        query, runs = escape(episode.query), list(episode.steps.values())
        if not runs:
            return write_turn([agent_step(step, self._workers[step - 1], query) for step in (1, 2)])
        replies = [as_text(run.observation.value) for run in runs if run.observation is not None and run.observation.ok]
        if len(runs) == 2 and len(replies) == 2 and replies[0] == replies[1]:
            return write_turn([], escape(replies[0]))
        if len(runs) == 2:
            return write_turn([agent_step(3, self._workers[2], query)], "$3")
        return Turn(error="the two did not agree and the third one has not answered", failed=True)


@dataclass(frozen=True, slots=True)
class DrawnRecord:
    """A track record that was drawn, and no call made for it."""

    by_worker: Mapping[str, Sequence[Outcome]]
    prices: Mapping[str, float]

    def outcomes(self, worker: str) -> Sequence[Outcome]:
        return self.by_worker[worker]

    def cost(self, worker: str) -> float:
        return self.prices[worker]

    def wall_s(self, worker: str) -> float:  # noqa: ARG002  all are as fast here
        return 0.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The tasks of one kind on one ground, with the cases behind them."""

    ground: Ground
    book: Book
    tasks: tuple[GroundTask, ...]

    def draw_record(self, outcomes: int) -> DrawnRecord:
        """So many past outcomes of each expert and topic."""
        logs = self.ground.log(outcomes, self.book.seed)
        return DrawnRecord(
            {
                expert.name: tuple(Outcome(item.question, item.right) for item in log)
                for expert, log in zip(self.ground.experts, logs, strict=True)
            },
            {expert.name: expert.price * CENT for expert in self.ground.experts},
        )

    def see(self, task: GroundTask) -> Situation:
        """A task as those see it who know the skills."""
        return Situation(self.ground.experts, task.kind, task.topics)

    def find_single(self) -> int:
        """The place of the expert that brings most over all tasks alone."""
        rows = [judge_all_asks(self.see(task)) for task in self.tasks]
        return max(range(len(self.ground.experts)), key=lambda place: sum(measure_worth(row[place]) for row in rows))


def make_scene(pool: int, seed: int, kind: Kind, tasks: int) -> Scene:
    """The tasks of a kind on the pool of this number."""
    number = seed * 1000 + pool
    ground = draw_ground(number, seen=False)
    if kind == "check":
        ground = with_checkers(ground, number)
    book = Book(number)
    return Scene(ground, book, tuple(draw_tasks(ground, book, kind, tasks)))


def measure_whole(options: argparse.Namespace) -> Iterator[Row]:
    """A row for each kind of task and policy, over as many pools as there is time for; where policies are named, of
    those alone."""
    deadline = time.monotonic() + 60 * options.minutes
    for kind in KINDS:
        pools: list[dict[str, list[Play]]] = []
        for pool in range(options.pools):
            for seed in range(options.seeds):
                if time.monotonic() < deadline:
                    scene = make_scene(pool, seed, kind, options.tasks)
                    pools.append(asyncio.run(play_scene(scene, (*POLICIES, *options.learned), options.outcomes[-1])))
        print(f"{kind}: {len(pools)} pools", file=sys.stderr, flush=True)
        for policy in (options.learned or POLICIES) if pools else ():
            outcomes = options.outcomes[-1] if policy not in POLICIES else None
            yield describe(pools, kind, policy, options.seeds, outcomes)


async def play_scene(scene: Scene, policies: Sequence[str] = POLICIES, outcomes: int = 0) -> dict[str, list[Play]]:
    """Run every task with every policy; learned ones read `outcomes` of each expert and topic."""
    gate, single = asyncio.Semaphore(AT_A_TIME), scene.find_single()
    record = scene.draw_record(outcomes)
    with serve_experts(scene.ground, scene.book) as pool:
        async with live_pool(pool) as live:
            return {policy: await play_policy(scene, policy, single, live, gate, record) for policy in policies}


async def play_policy(
    scene: Scene, policy: str, single: int, live: LivePool, gate: asyncio.Semaphore, record: DrawnRecord
) -> list[Play]:
    """Run every task with one policy."""
    make = orchestrator_factory(policy, live, lambda: record) if policy not in POLICIES else None

    async def play(task: GroundTask) -> Play:
        exact, choose = choose_run(scene, task, policy, single) if make is None else (None, None)
        async with gate:
            orchestrator = choose(live) if make is None else make(None, None)
            observed = observe(await run_task(make_task(scene.book, task), orchestrator, live, NoSink()))
        return Play(exact or observed, observed)

    return list(await asyncio.gather(*map(play, scene.tasks)))


def choose_run(
    scene: Scene, task: GroundTask, policy: str, single: int
) -> tuple[Judged, Callable[[LivePool], Orchestrator]]:
    """What a policy brings to a task, and the orchestrator that does it; `single` is the best single expert."""
    situation, experts = scene.see(task), scene.ground.experts
    if policy == "cascade":
        beliefs = [state_confidence(expert, task.topics, scene.book.seed) for expert in experts]
        return judge_product_cascade(situation, beliefs, CONFIDENT), lambda live: make_orchestrator("cascade", live)
    if policy == "random":
        rows = judge_all_asks(situation)
        place = Random(f"{scene.book.seed}/lot/{task.cases[-1].number}").randrange(len(experts))
        return average(rows), lambda live: make_plan_orchestrator(Plan("ask", (place,)), scene.ground, task, live)
    plans = {"single": Plan("ask", (single,)), "votes": Plan("vote", (find_cheapest(experts),))}
    plan = plans[policy] if policy in plans else find_best_plan(situation)
    return judge_plan(situation, plan), lambda live: make_plan_orchestrator(plan, scene.ground, task, live)


def make_plan_orchestrator(plan: Plan, ground: Ground, task: GroundTask, live: LivePool) -> Orchestrator:
    """The orchestrator that follows a plan."""
    names = [ground.experts[place].name for place in plan.experts]
    match plan.form:
        case "refuse":
            return make_orchestrator("oracle", live, Turn(answer=refuse()))
        case "ask":
            return make_orchestrator(f"direct:{names[0]}", live)
        case "vote":
            return make_orchestrator(f"fan_out:{names[0]}", live)
        case "check":
            return CheckPolicy(names)
        case "split":
            return make_orchestrator("oracle", live, write_split(task, names))


def write_split(task: GroundTask, workers: Sequence[str]) -> Turn:
    """A turn with a step for each case, which sees the steps whose findings it hangs on."""
    steps = {case.number: step for step, case in enumerate(task.cases, start=1)}
    calls = [
        agent_step(steps[case.number], worker, escape(case.text), [steps[number] for number in case.given])
        for case, worker in zip(task.cases, workers, strict=True)
    ]
    return Turn(tuple(calls), f"${len(calls)}")


def describe(
    pools: Sequence[dict[str, list[Play]]], kind: Kind, policy: str, seeds: int, outcomes: int | None = None
) -> Row:
    """The row of a policy on tasks of a kind."""
    names = {policy, "single", "best"}
    plays = [play for pool in pools for play in pool[policy]]
    means = {name: [average([play.exact for play in pool[name]]) for pool in pools] for name in names}
    return {
        "part": "whole",
        "pools": "redrawn",
        "topics": "unseen",
        "task": kind,
        "policy": policy,
        "outcomes": outcomes,
        **describe_gaps(list(zip(means[policy], means["single"], means["best"], strict=True)), measure_worth),
        **({"episodes": len(plays)} if policy not in POLICIES else compare_plays(plays, f"{kind} {policy}")),
        "seeds": seeds,
        "pools_drawn": len(pools),
        "minutes": 0,
    }

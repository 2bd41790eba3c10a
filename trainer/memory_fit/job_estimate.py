"""Estimates, before a job on a pool of agents starts, its calls of workers, its cost and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from orchestrator.orchestrator_name import OrchestratorName
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.memory_fit.episode_cost import count_episodes, price_call
from trainer.recipe import Recipe
from trainer.recipe_sections import EVERY_AGENT
from trainer.results.statistics import mean

CALLS = 1.5  # of workers, in an episode that a reader plans
AGENT_S = 2.0  # seconds of an agent's answer, where none is on record
PLAN_S, LEARN_S = 2.0, 1.2  # seconds of an episode and of learning from it: SmolLM2-135M on two quiet cores
LESSON_S = 0.5  # of learning one demonstration
PLAN_TIMES, PLAN_TOKENS_IN = 2.0, 1500  # an agent's plan takes so many times an answer, and its prompt so many tokens
TEACHER_LANES = 8  # plans that a teacher writes at a time


class AgentCosts(Protocol):
    """What recorded answers of a worker took; 0 without records."""

    def cost(self, worker: str) -> float:
        """Mean US dollars."""

    def wall_s(self, worker: str) -> float:
        """Mean seconds."""


class JobEstimate(BaseModel):
    """The expected `calls` of workers, what they cost in US dollars (None where no worker has a price) and the minutes
    of the job on two cores, each to within a factor of two. `basis`: what they rest on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int
    cost: float | None
    minutes: float
    basis: str


def estimate_job(recipe: Recipe, pool: Pool, record: AgentCosts) -> JobEstimate:
    """Estimate a job whose workers are the pool's agents."""
    agents = pool.agents()
    prices = [record.cost(spec.name) or price_call(spec) for spec in agents]
    seconds = _measure_seconds(agents, record)
    episodes = count_episodes(recipe, pool)
    alone = _count_alone(recipe, len(agents))
    planned = sum(episodes.values()) - alone
    taught = _list_taught(recipe, pool, record)
    drawn_again = 1.5 if "rollouts" in episodes else 1.0  # of groups that are all alike, some
    rollouts = episodes.get("rollouts", 0)
    calls = alone + CALLS * (planned - rollouts + drawn_again * rollouts)
    imitated = sum(stage.method.count_lessons(stage.settings) for stage in recipe.training_stages)
    minutes = (
        alone * seconds / _count_lanes(recipe)
        + (planned - rollouts + drawn_again * rollouts) * PLAN_S
        + sum(lesson.seconds for lesson in taught)
        + rollouts * LEARN_S
        + imitated * LESSON_S
    ) / 60
    on_record = sum(record.wall_s(spec.name) > 0 for spec in agents)
    return JobEstimate(
        calls=round(calls) + sum(lesson.calls for lesson in taught),
        cost=calls * mean(prices) + sum(lesson.cost for lesson in taught) if any(prices) else None,
        minutes=minutes + (recipe.who.minutes if recipe.who else 0.0),
        basis=f"answers on record of {on_record} of {len(agents)} agents"
        if on_record
        else "no answer is on record yet",
    )


@dataclass(frozen=True, slots=True)
class Teaching:
    """The plans that an agent writes: how many, what they cost in US dollars, and how many seconds they take."""

    calls: int
    cost: float
    seconds: float


def _list_taught(recipe: Recipe, pool: Pool, record: AgentCosts) -> list[Teaching]:
    """What agents write as teachers. A plan is longer than an answer, and its prompt lists the pool."""
    lessons = []
    for stage in recipe.training_stages:
        plans = sum(stage.method.count_episodes(stage.settings, recipe).values())
        for name in stage.method.list_orchestrators(stage.settings):
            spec = pool.find_worker(OrchestratorName.parse(name).worker)
            if spec is not None:
                seconds = (record.wall_s(spec.name) or AGENT_S) * PLAN_TIMES
                price = price_call(spec, PLAN_TOKENS_IN)
                lessons.append(Teaching(plans, plans * price, plans * seconds / TEACHER_LANES))
    return lessons


def _measure_seconds(agents: Sequence[WorkerSpec], record: AgentCosts) -> float:
    return mean([record.wall_s(spec.name) or AGENT_S for spec in agents]) if agents else AGENT_S


def _count_alone(recipe: Recipe, agents: int) -> int:
    """How many questions are put to single agents."""
    who, evaluate = recipe.who, recipe.evaluate
    outcomes = min(who.questions, recipe.tasks.count) * who.tries * agents if who else 0
    baselines = evaluate.count * agents if evaluate and EVERY_AGENT in evaluate.orchestrators else 0
    return outcomes + baselines


def _count_lanes(recipe: Recipe) -> int:
    """How many single agents answer at a time."""
    return recipe.who.concurrency if recipe.who else recipe.evaluate.concurrency if recipe.evaluate else 1

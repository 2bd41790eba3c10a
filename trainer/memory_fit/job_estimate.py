"""Estimates, before a job on a pool of agents starts, its calls of workers, its cost and its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.memory_fit.episode_cost import count_episodes, price_call
from trainer.recipe import Recipe
from trainer.recipe_sections import EVERY_AGENT
from trainer.results.statistics import mean

CALLS = 1.5  # of workers, in an episode that a reader plans
AGENT_S = 2.0  # seconds of an agent's answer, where none is on record
PLAN_S, LEARN_S = 2.0, 1.2  # seconds of an episode and of learning from it: SmolLM2-135M on two quiet cores


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
    drawn_again = 1.5 if "rollouts" in episodes else 1.0  # of groups that are all alike, some
    rollouts = episodes.get("rollouts", 0)
    calls = alone + CALLS * (planned - rollouts + drawn_again * rollouts)
    minutes = (
        alone * seconds / _count_lanes(recipe)
        + (planned - rollouts + drawn_again * rollouts) * PLAN_S
        + rollouts * LEARN_S
    ) / 60
    on_record = sum(record.wall_s(spec.name) > 0 for spec in agents)
    return JobEstimate(
        calls=round(calls),
        cost=calls * mean(prices) if any(prices) else None,
        minutes=minutes + (recipe.who.minutes if recipe.who else 0.0),
        basis=f"answers on record of {on_record} of {len(agents)} agents"
        if on_record
        else "no answer is on record yet",
    )


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

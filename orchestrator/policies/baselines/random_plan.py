"""`random_plan`: a random valid plan over the pool, the floor for what planning is worth.

Steps, workers, access lists and references are drawn from a generator seeded by the query and a seed, so that the same
query gets the same plan on every machine. A worker takes part when its schema accepts generated arguments: the query
where it takes one text, its own sample, or values drawn by the schema's types.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Step, Turn
from orchestrator.policies.base import only_turn, read_limit, write_turn
from orchestrator.policies.baselines.random_arguments import draw_arguments
from pool_registry.calls.live_pool import LivePool

MAX_STEPS = 6  # as long as the longest reference plans


class RandomPlanPolicy(Orchestrator):
    def __init__(self, pool: LivePool, seed: int = 0) -> None:
        self.name = f"random_plan:{seed}" if seed else "random_plan"
        self._pool = pool
        self._seed = seed

    async def turn(self, episode: Episode) -> Turn:
        """Raises UnknownOrchestrator when no worker of the pool can be called at random."""
        return only_turn(episode, self._draw_plan(episode.query, read_limit(episode, "max_steps")))

    def _draw_plan(self, query: str, max_steps: int) -> Turn:
        random = Random(f"{self._seed}\n{query}")  # noqa: S311
        # A recursive worker is left out: random plans inside random plans measure the limits and nothing else.
        workers = [worker for worker in self._pool.workers.values() if worker.role != "recursion"]
        arguments_by_worker = {worker.spec.name: draw_arguments(worker, query, random) for worker in workers}
        callable_workers = {name: arguments for name, arguments in arguments_by_worker.items() if arguments is not None}
        if not callable_workers:
            raise UnknownOrchestrator("no worker of this pool takes arguments that can be made up; add an agent to it")
        steps = [
            self._draw_step(k, random.choice(list(callable_workers)), callable_workers, random)
            for k in range(1, random.randint(1, min(MAX_STEPS, max_steps)) + 1)
        ]
        return write_turn(steps, f"${random.randint(1, len(steps))}")

    def _draw_step(self, k: int, worker: str, callable_workers: Mapping[str, dict[str, Any]], random: Random) -> Step:
        """A step that may see some of the steps before it; one that takes a text may quote one of them instead."""
        access = tuple(earlier for earlier in range(1, k) if random.random() < 0.5)
        text = self._pool.workers[worker].instruction_parameter
        if text is not None and access and random.random() < 0.5:
            return Step(k, worker, {text: f"${random.choice(access)}"}, access)
        return Step(k, worker, callable_workers[worker], access)

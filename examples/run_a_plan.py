"""Run a plan on a pool of your own functions: two steps in parallel, and one that sees both."""

import asyncio

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool

PLAN = Turn(
    steps=(
        Step(1, "price", {"item": "tea"}),
        Step(2, "stock", {"item": "tea"}),
        Step(3, "multiply", {"a": "$1", "b": "$2"}, access=(1, 2)),
    ),
    answer="$3",
)


async def main() -> None:
    workers = tuple(offer.spec for offer in await list_functions("examples/shop.py"))
    async with live_pool(Pool(name="shop", workers=workers)) as pool:
        episode = await run_episode(EpisodeSpec("What is all our tea worth?"), OraclePolicy(PLAN), pool)
    for step in episode.steps.values():
        print(step.step.id, step.step.worker, step.state, step.observation.value)
    print("answer:", episode.answer)


if __name__ == "__main__":
    asyncio.run(main())

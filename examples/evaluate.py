"""Score two orchestrators on the same test tasks of a generated family, on the starter pool."""

import asyncio

from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import run_task
from trainer.tasks import find_task

TASKS = [find_task("atlas", level=1, split="test", index=index) for index in range(5)]


async def main() -> None:
    async with live_pool(starter_pool()) as pool:
        for name in ("oracle", "random_plan:7"):
            correct = 0
            for task in TASKS:
                episode = await run_task(task, make_orchestrator(name, pool, task.oracle_turn), pool, NoSink())
                correct += episode.graded.correct
            print(f"{name}: {correct} of {len(TASKS)}")


if __name__ == "__main__":
    asyncio.run(main())

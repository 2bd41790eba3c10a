"""Write a reward and see what it pays: a recipe names it as `examples/reward.py:few_workers`."""

import asyncio

from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import run_task
from trainer.methods.grpo.rewards import make_sample
from trainer.tasks import find_task


def few_workers(sample, _group):
    """1 for an episode that calls one worker, half for two, and so on; nothing for a wrong answer."""
    workers = {run.step.worker for run in sample.episode.steps.values()}
    return sample.correct / max(1, len(workers))


async def main() -> None:
    task = find_task("ledger", level=1, split="test", index=3)
    async with live_pool(starter_pool()) as pool:
        for name in ("oracle", "random_plan:7"):
            orchestrator = make_orchestrator(name, pool, task.oracle_turn)
            episode = await run_task(task, orchestrator, pool, NoSink())
            sample = make_sample(task, episode, pool.pool.limits)
            print(f"{name}: {few_workers(sample, [sample]):.2f}")


if __name__ == "__main__":
    asyncio.run(main())

"""Write a policy: an orchestrator that asks two agents in parallel and lets the first judge their answers.

A package offers it to every page and command with an entry point; see docs/extend.md.
"""

import asyncio

from access_lists import MyAgent  # the example beside this one

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.quotes import escape
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.pool import Pool
from pool_registry.worker import NoConfig, WorkerSpec


class SecondOpinion:
    """Two agents answer, the first of them decides."""

    name = "second_opinion"

    def __init__(self, first: str, second: str) -> None:
        self._agents = (first, second)

    async def turn(self, episode: Episode) -> Turn:
        query = escape(episode.query)  # a dollar in the query quotes no step
        first, second = self._agents
        return Turn(
            steps=(
                Step(1, first, {"instruction": query}),
                Step(2, second, {"instruction": query}),
                Step(3, first, {"instruction": f"Decide between both answers to: {query}"}, access=(1, 2)),
            ),
            answer="$3",
        )


async def main() -> None:
    specs = [WorkerSpec(name=name, kind="my_agent", description="d") for name in ("ada", "bob")]
    pool = LivePool(
        Pool(name="pair", workers=tuple(specs)),
        {spec.name: LiveWorker(spec, MyAgent(spec, NoConfig())) for spec in specs},
    )
    episode = await run_episode(EpisodeSpec("Is 91 prime?"), SecondOpinion("ada", "bob"), pool)
    print(episode.answer)


if __name__ == "__main__":
    asyncio.run(main())

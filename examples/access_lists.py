"""Enforce access lists in your own agent code: Podium runs the steps, your functions are the agents.

Each agent receives the outputs in its access list and nothing else. The reviewer may see the draft but not the salary.
"""

import asyncio

from orchestrator.engine.budget import Budget
from orchestrator.engine.executor import Recorder, RoundRun
from orchestrator.plan import Step, Turn, check_turn
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.kinds import add_kind
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string


class MyAgent(Worker[NoConfig]):
    """Your agent. A real one would send `call.text("instruction")` and `call.visible` to a model."""

    role = "agent"

    @property
    def parameters(self):
        return one_string("instruction", "What to do.")

    async def call(self, call: Call) -> Reply:
        seen = ", ".join(f"step {entry.step}: {entry.observation.value}" for entry in call.visible) or "nothing"
        return Reply(f"{self.spec.name} saw {seen}")


add_kind("my_agent", MyAgent)

PLAN = Turn(
    steps=(
        Step(1, "payroll", {"instruction": "Look up the salary."}),
        Step(2, "writer", {"instruction": "Draft the letter."}, access=(1,)),
        Step(3, "reviewer", {"instruction": "Review the letter."}, access=(2,)),
        Step(4, "reviewer", {"instruction": "Is $1 too much?"}, access=(2,)),  # quotes what it may not see: refused
    )
)


async def main() -> None:
    specs = [WorkerSpec(name=name, kind="my_agent", description="d") for name in ("payroll", "writer", "reviewer")]
    pool = LivePool(
        Pool(name="letters", workers=tuple(specs)),
        {spec.name: LiveWorker(spec, MyAgent(spec, NoConfig())) for spec in specs},
    )
    turn = check_turn(PLAN, pool, earlier=())
    results = {}
    recorder = Recorder(started=lambda _step, _arguments: None, ended=lambda step, seen: results.update({step: seen}))
    await RoundRun(turn.steps, {}, pool, Budget(pool.pool.limits), recorder).run()
    for step, observation in sorted(results.items()):
        print(step, observation.status.value, observation.value or observation.error.message)


if __name__ == "__main__":
    asyncio.run(main())

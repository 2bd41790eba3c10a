"""Write a kind of worker and call it through a pool, with validation, time-outs and statuses.

A package offers a kind to the whole studio with an entry point; see docs/extend.md.
"""

import asyncio

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import BadCall
from pool_registry.kinds import add_kind
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string


class Reverse(Worker[NoConfig]):
    """Turns a text around."""

    summary = "Turns a text around."

    @property
    def parameters(self):
        return one_string("text", "The text to turn around.")

    async def call(self, call: Call) -> Reply:
        if not call.text("text").strip():
            raise BadCall("text is blank; write something to turn around")
        return Reply(call.text("text")[::-1])


async def main() -> None:
    add_kind("reverse", Reverse)
    spec = WorkerSpec(name="mirror", kind="reverse", description="Turns a text around.")
    async with live_pool(Pool(name="texts", workers=(spec,))) as pool:
        for arguments in ({"text": "podium"}, {"text": " "}, {"words": "podium"}):
            observation = await pool.call(Action("mirror", arguments))
            print(observation.status.value, observation.value or observation.error.message)


if __name__ == "__main__":
    asyncio.run(main())

"""A task set of verifiers, as its authors write them."""

import os
import time
from collections.abc import Iterable

import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData]):
    @vf.reward(weight=0.75)
    async def exact(self, trace: vf.Trace) -> float:
        print("a task set may print")
        if trace.last_reply == "hang":
            time.sleep(60)  # noqa: ASYNC251  it hangs
        if trace.last_reply == "die":
            os._exit(3)
        return float(trace.last_reply == self.data.answer)

    @vf.reward(weight=0.25)
    async def short(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) < 5)


class SumConfig(vf.TasksetConfig):
    count: int = 40


class SumTaskset(vf.Taskset[SumTask, SumConfig]):
    def load(self) -> Iterable[SumTask]:
        for number in range(self.config.count):
            data = SumData(prompt=f"What is {number} + {number}?", answer=str(2 * number))
            yield SumTask(data, self.config.task)


__all__ = ["SumTaskset"]

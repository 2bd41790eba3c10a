"""A pool and tasks of Podium as an environment of verifiers, made by `podium export verifiers`.

The model under evaluation or training orchestrates: every turn that it writes is a call of its own. The pool's workers
stay as they are. One rollout is one run of `podium rollout`, which plays the episode and grades its answer.
"""

import json
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import verifiers.v1 as vf

HERE = Path(__file__).resolve().parent
SETTINGS = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))


class PodiumData(vf.TaskData):
    line: str
    """The task as Podium reads it: JSON with its query, its answer and how that is graded."""


class PodiumTask(vf.Task[PodiumData]):
    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        return float(trace.info["podium"]["correct"])

    @vf.metric
    async def rounds(self, trace: vf.Trace) -> float:
        return float(trace.info["podium"]["rounds"])

    @vf.metric
    async def unreadable_turns(self, trace: vf.Trace) -> float:
        return float(trace.info["podium"]["unreadable_turns"])

    @vf.metric
    async def worker_calls(self, trace: vf.Trace) -> float:
        return float(sum(trace.info["podium"]["calls"].values()))

    @vf.metric
    async def worker_cost_usd(self, trace: vf.Trace) -> float:
        return float(trace.info["podium"]["worker_cost_usd"])


class PodiumConfig(vf.TasksetConfig):
    split: str = "train"
    """train, validation or test."""


class PodiumTaskset(vf.Taskset[PodiumTask, PodiumConfig]):
    def load(self) -> Iterable[PodiumTask]:
        for line in (HERE / "tasks.jsonl").read_text(encoding="utf-8").splitlines():
            task = json.loads(line)
            if task["split"] == self.config.split:
                yield PodiumTask(PodiumData(prompt=task["query"], line=line), self.config.task)


class PodiumHarnessConfig(vf.HarnessConfig):
    podium: str = os.environ.get("PODIUM", "podium")
    """The command of Podium where it is installed, such as /opt/podium/bin/podium."""
    turn_tokens: int = 1024
    """Most tokens of one turn."""


class PodiumHarness(vf.Harness[PodiumHarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002
        data: vf.TaskData,  # noqa: ARG002
    ) -> vf.ProgramResult:
        pool, task = f"pool-{trace.id}.json", f"task-{trace.id}.json"
        await runtime.write(pool, (HERE / "pool.json").read_bytes())
        await runtime.write(task, trace.task.data.line.encode())
        command = [*shlex.split(self.config.podium), "rollout", "--pool", pool, "--task", task]
        policy = ["--base-url", endpoint, "--model", ctx.model, "--dialect", SETTINGS["dialect"]]
        limit = ["--turn-tokens", str(self.config.turn_tokens)]
        # The runtime hides variables that look like keys: those that the workers name go along.
        keys = {name: os.environ[name] for name in SETTINGS["variables"] if name in os.environ}
        trust = {"PODIUM_TRUST": os.environ.get("PODIUM_TRUST", "")}
        env = {**keys, **trust, **self.config.resolved_env, "PODIUM_POLICY_KEY": secret}
        result = await runtime.run_program([*command, *policy, *limit], env)
        if result.exit_code == 0:
            trace.info["podium"] = json.loads(result.stdout.splitlines()[-1])
        return result


__all__ = ["PodiumHarness", "PodiumTaskset"]

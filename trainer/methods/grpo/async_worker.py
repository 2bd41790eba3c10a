"""The rollout engine as the `rollout_worker` of TRL's AsyncGRPOTrainer: episodes run on while the trainer updates.

The trainer starts and stops it, tells it which version of the model the server has, and takes samples from its queue as
groups of episodes end. Each sample carries its advantage, so rewards and the choice of groups stay ours; a group counts
as made by the version that was there when it began.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from trainer.errors import TrainingFailed
from trainer.learner.generator import Generator
from trainer.methods.grpo.curriculum import Curriculum
from trainer.methods.grpo.rewards import compute_outcome_weight
from trainer.methods.grpo.rollout_metrics import compute_rollout_metrics
from trainer.methods.grpo.rollouts import Rollout, RolloutEngine, RolloutGroup, set_advantages
from trainer.results.statistics import mean

LOOK_S = 0.05  # how often a worker whose queue is full looks for room
STOP_S = 30.0
OnGroup = Callable[[RolloutGroup, int, bool], None]  # (group, version of the model, whether it is learnt)


class AsyncWorker:
    """Runs groups of `size` episodes, `groups` of them at a time, until it is stopped.

    `runner` has the event loop on which the engine's pool was opened; nothing else may run on it meanwhile. With
    `adapter` the generator asks for the adapter that TRL has loaded under this name and the version.
    """

    def __init__(
        self,
        runner: asyncio.Runner,
        engine: RolloutEngine,
        curriculum: Curriculum,
        generator: Generator,
        *,
        groups: int,
        size: int,
        mixed_only: bool = True,
        adapter: str = "",
        most_samples: int = 1024,
        on_group: OnGroup | None = None,
    ) -> None:
        if engine.scale == "batch":
            raise TrainingFailed(
                "scale", "groups are learnt one by one here, there is no batch of them: set grpo.loss.scale: group"
            )
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue(most_samples)
        self.metrics_queue: queue.Queue[Mapping[str, float]] = queue.Queue()
        self._runner, self._engine, self._curriculum, self._generator = runner, engine, curriculum, generator
        self._groups, self._size, self._mixed_only, self._adapter = groups, size, mixed_only, adapter
        self._on_group, self._version = on_group, 0
        self._numbers = itertools.count()
        self._failure: BaseException | None = None
        self._alive_at = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="rollouts", daemon=True)

    def start(self) -> None:
        """Begin to run episodes."""
        self._alive_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End the episodes that run, and wait until they have. Also where it has not been started, or has failed."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def update_model_version(self, model_version: int) -> None:
        """Tell it which version of the model the server has now. Episodes that run go on with it."""
        self._version = model_version
        if self._adapter:
            generator: Any = self._generator
            generator.model = f"{self._adapter}-v{model_version}"

    def check_health(self, stale_after_s: float) -> None:
        """Raise what ended the episodes, or TrainingFailed when no group has ended for `stale_after_s` seconds."""
        if self._failure is not None:
            raise self._failure
        silent_s = time.monotonic() - self._alive_at
        if silent_s > stale_after_s:
            raise TrainingFailed(
                "rollouts",
                f"no group of episodes has ended for {silent_s:.0f} s: look whether the vLLM server and the pool's "
                "workers answer, then resume",
            )

    def _work(self) -> None:
        try:
            self._runner.run(self._run_until_stopped())
        except Exception as error:  # noqa: BLE001  the trainer's thread raises it
            self._failure = find_first_failure(error)

    async def _run_until_stopped(self) -> None:
        async with asyncio.TaskGroup() as running:
            tasks = [running.create_task(self._run_groups()) for _ in range(self._groups)]
            await asyncio.to_thread(self._stopping.wait)
            for task in tasks:
                task.cancel()

    async def _run_groups(self) -> None:
        """Run one group after the other."""
        while True:
            version, task = self._version, self._curriculum.draw()
            group = await self._engine.run_group(task, self._generator, self._size)
            self._curriculum.learn(group.task, group.success)
            kept = not (self._mixed_only and group.equal)
            names = list(self._engine.terms)
            figures = compute_rollout_metrics([group], [], names)
            self.metrics_queue.put({**figures, "groups/left_out_total": float(not kept)})
            self._alive_at = time.monotonic()
            if kept:  # advantages first: they are recorded
                set_advantages(
                    [group], self._engine.scale, compute_outcome_weight(self._engine.terms), self._mixed_only
                )
            if self._on_group is not None:
                self._on_group(group, version, kept)
            if kept:
                await self._hand_over(group, version)

    async def _hand_over(self, group: RolloutGroup, version: int) -> None:
        """Queue a group's samples, waiting for room where the trainer is behind."""
        number = next(self._numbers)
        centre = mean(group.rewards)
        spread = mean([(reward - centre) ** 2 for reward in group.rewards]) ** 0.5
        for rollout in group.rollouts:
            sample = make_sample(rollout, version, number, spread)
            while self.rollout_buffer.full():
                self._alive_at = time.monotonic()
                await asyncio.sleep(LOOK_S)
            self.rollout_buffer.put_nowait(sample)


def find_first_failure(error: BaseException) -> BaseException:
    """The first of the failures that ended a group of tasks, however deep they are nested."""
    return find_first_failure(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def make_sample(rollout: Rollout, version: int, group: int, spread: float) -> RolloutSample:
    """An episode as the trainer takes it: whole sequence, mask and log-probabilities are equally long.

    Raises TrainingFailed where the server does not return log-probabilities.
    """
    transcript = rollout.transcript
    if rollout.logprobs is None:
        raise TrainingFailed("vllm", "the server returned no log-probabilities, which this trainer needs")
    before = len(transcript.prompt)
    return RolloutSample(
        prompt=[{"role": "user", "content": rollout.sample.task.query}],
        completion=[{"role": "assistant", "content": str(rollout.sample.episode.answer or "")}],
        input_ids=np.asarray(transcript.ids, dtype=np.int64),
        completion_mask=np.asarray([0] * before + transcript.mask, dtype=np.int64),
        old_log_probs=np.asarray([0.0] * before + rollout.logprobs, dtype=np.float32),
        advantage=rollout.advantage,
        model_version=version,
        group_id=group,
        metrics={
            "reward": rollout.reward,
            "reward_std": spread,
            **{f"rewards/{name}": value for name, value in rollout.terms.items()},
        },
        enqueued_at=time.time(),
    )

"""Where the learning model's turns come from: one contract, and what its three backends share.

`generate(ids)` continues a token sequence and returns when that one sequence has ended; sequences do not
wait for each other.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pool_registry.errors import WorkerFault
from trainer.errors import TrainingFailed

GATHER_S = 0.002  # what becomes ready at nearly the same time shares a batch from its start


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """New token ids, the end token included if there was one, and their sampling log-probabilities
    (natural log; None where the backend does not tell)."""

    ids: list[int]
    logprobs: list[float] | None = None


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample. Temperature 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 1.0


class Generator(Protocol):
    """A backend. `busy_s` is the time it has generated so far, `tokens` what came out of it."""

    busy_s: float
    tokens: int

    async def generate(self, ids: Sequence[int], limit: int) -> GeneratedTokens: ...


@dataclass(slots=True, eq=False)
class SequenceState:
    """A sequence on its way: its prompt, what it has so far, and who waits for it.

    `past` holds keys and values, by layer, of all its tokens but the last; None where they are not known.
    """

    prompt: list[int]
    limit: int
    done: asyncio.Future[GeneratedTokens]
    made: list[int] = field(default_factory=list)
    released: bool = False
    past: list[tuple[Any, Any]] | None = None

    @property
    def ids(self) -> list[int]:
        return self.prompt + self.made


class BatchingGenerator(ABC):
    """What a backend has in common that makes its own batches: rows wait until `_run` takes them."""

    def __init__(self) -> None:
        self._waiting: list[SequenceState] = []
        self._runner: asyncio.Task[None] | None = None
        self.busy_s = 0.0
        self.tokens = 0

    async def generate(self, ids: Sequence[int], limit: int) -> GeneratedTokens:
        """Raises TrainingFailed `out_of_memory` or `generation_failed`."""
        row = SequenceState(list(ids), limit, asyncio.get_running_loop().create_future())
        self._waiting.append(row)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await row.done

    @abstractmethod
    async def _run(self) -> None:
        """Batches, one after another, until nothing waits."""

    def _give_up(self, batch: Sequence[SequenceState], error: Exception) -> None:
        """Tell every row, also those that wait."""
        for row in [*batch, *self._waiting]:
            fail_sequence(row, error)
        self._waiting.clear()


def fail_sequence(row: SequenceState, error: Exception) -> None:
    if row.done.done():
        return
    if is_out_of_memory(error):
        failure = TrainingFailed(
            "out_of_memory",
            "not enough memory to generate: lower rollouts.group, rollouts.prompts or model.turn_tokens",
        )
    elif isinstance(error, TrainingFailed | WorkerFault):
        row.done.set_exception(error)
        return
    else:
        failure = TrainingFailed("generation_failed", f"generation failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    row.done.set_exception(failure)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether there was not enough memory: CUDA and MPS say so in other words than torch on a CPU and the system."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in said or "allocate memory" in said

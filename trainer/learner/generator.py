"""The contract of a backend that generates the learning model's turns, and what the three backends share.

`generate(ids)` continues a token sequence, held to a grammar where there is one, and returns when that one sequence has
ended; sequences do not wait for each other. `seed` says which draw it is, for the backend in this process: vLLM draws
rows with seeds of their own one by one, and gets none.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import Grammar
from trainer.errors import TrainingFailed

NO_MEMORY = ("out of memory", "allocate memory", "free memory on device")
GATHER_S = 0.002  # seconds in which new sequences are gathered, so that they share a batch from its start


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """New token ids, including the end token if there was one, and their log-probabilities in sampling (nats; None
    where the backend does not report them)."""

    ids: list[int]
    logprobs: list[float] | None = None


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """The parameters of sampling. Temperature 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 1.0


class Generator(Protocol):
    """A backend. `busy_s` is the time in which it has generated so far, `tokens` the number of generated tokens."""

    busy_s: float
    tokens: int

    async def generate(
        self, ids: Sequence[int], limit: int, grammar: Grammar | None = None, seed: int | None = None
    ) -> GeneratedTokens: ...


@dataclass(slots=True, eq=False)
class SequenceState:
    """A sequence that waits or is being generated: its prompt, its new tokens, and the future of the result. Without a
    `seed` it is any draw.

    `released` is set when it has ended. `numbers` are those of its draws (token_draws.py). `past` holds the keys and
    values, by layer, of all its tokens but the last; None where they have to be computed.
    """

    prompt: list[int]
    limit: int
    done: asyncio.Future[GeneratedTokens]
    grammar: Grammar | None = None
    seed: int | None = None
    new_ids: list[int] = field(default_factory=list)
    released: bool = False
    numbers: Any = None
    past: list[tuple[Any, Any]] | None = None

    @property
    def ids(self) -> list[int]:
        return self.prompt + self.new_ids


class BatchingGenerator(ABC):
    """Base of the backends that form batches themselves: sequences wait until `_run` takes them."""

    def __init__(self) -> None:
        self._waiting: list[SequenceState] = []
        self._runner: asyncio.Task[None] | None = None
        self.busy_s = 0.0
        self.tokens = 0

    async def generate(
        self, ids: Sequence[int], limit: int, grammar: Grammar | None = None, seed: int | None = None
    ) -> GeneratedTokens:
        """Continue `ids` by at most `limit` tokens. Raises TrainingFailed `out_of_memory` or `generation_failed`."""
        sequence = SequenceState(list(ids), limit, asyncio.get_running_loop().create_future(), grammar, seed)
        self._waiting.append(sequence)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await sequence.done

    @abstractmethod
    async def _run(self) -> None:
        """Generate batch after batch until no sequence waits."""

    def _give_up(self, batch: Sequence[SequenceState], error: Exception) -> None:
        """Fail every sequence, also those that wait."""
        for sequence in [*batch, *self._waiting]:
            fail_sequence(sequence, error)
        self._waiting.clear()


def fail_sequence(sequence: SequenceState, error: Exception) -> None:
    """End a sequence with an error; errors that are not ours become TrainingFailed."""
    if sequence.done.done():
        return
    if is_out_of_memory(error):
        failure = TrainingFailed(
            "out_of_memory",
            "not enough memory to generate: lower rollouts.group, rollouts.prompts or model.turn_tokens",
        )
    elif isinstance(error, TrainingFailed | WorkerFault):
        sequence.done.set_exception(error)
        return
    else:
        failure = TrainingFailed("generation_failed", f"generation failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    sequence.done.set_exception(failure)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether RAM or GPU memory ran out, for which CUDA, MPS, torch on a CPU, vLLM and the system have words of their
    own."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or any(words in message for words in NO_MEMORY)

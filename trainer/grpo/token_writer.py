"""Has the learning model continue an episode's tokens, and keeps every token that it saw and wrote."""

from __future__ import annotations

from collections.abc import Sequence

from pool_registry.language_models.completion import Message
from trainer.grpo.token_transcript import ChatTokens, Transcript
from trainer.learner.generator import Generator


class TokenWriter:
    """The transcript of one episode in the making.

    `logprobs` are those of sampling: as many as the completion has tokens, 0 where the model did not write; None when
    the backend did not report them.
    """

    def __init__(self, generator: Generator, chat: ChatTokens, turn_tokens: int, max_length: int) -> None:
        self._generator, self._chat = generator, chat
        self._turn_tokens, self._max_length = turn_tokens, max_length
        self.transcript = Transcript([])
        self.logprobs: list[float] | None = []

    @property
    def room(self) -> int:
        """How many tokens the model may write now."""
        return min(self._turn_tokens, self._max_length - len(self.transcript.ids))

    async def write(self) -> list[int]:
        """Let the model continue; returns its tokens. Raises TrainingFailed when the backend does."""
        made = await self._generator.generate(self.transcript.ids, self.room)
        # An empty turn still ends: without an end token the template's next part would stand inside it.
        ids = made.ids or [self._chat.tokenizer.eos_token_id]
        self._add(ids, made.logprobs if made.ids else [0.0], learn=True)
        return ids

    def read(self, reply: str | Sequence[Message]) -> None:
        """Add what the model's last turn is answered with, and what opens its next one."""
        end = self._chat.tokenizer.eos_token_id
        missing = [end] if self.transcript.completion[-1] != end else []  # a turn that was cut off at its limit
        ids = [*missing, *self._chat.encode_between(reply)]
        self._add(ids, [0.0] * len(ids), learn=False)

    def go_back(self, length: int) -> None:
        """Forget everything behind the first `length` tokens of the completion."""
        del self.transcript.completion[length:], self.transcript.mask[length:]
        if self.logprobs is not None:
            del self.logprobs[length:]

    def _add(self, ids: Sequence[int], logprobs: Sequence[float] | None, learn: bool) -> None:
        self.transcript.add(ids, learn)
        # One backend call without log-probabilities spoils the episode's: TRL needs them for every token or for none.
        if self.logprobs is not None:
            self.logprobs = None if logprobs is None else [*self.logprobs, *logprobs]

"""Has the learning model continue an episode's tokens, and keeps every token that it saw and wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, repeat

from pool_registry.language_models.completion import Grammar, Message, seed_round
from trainer.learner.generator import Generator
from trainer.learner.held_tokens import HeldTokens, cut_held
from trainer.learner.token_transcript import ChatTokens, Transcript


class TokenWriter:
    """The transcript of one episode in the making.

    `logprobs` are those of sampling: as many as the completion has tokens, 0 where the model did not write; None when
    the backend did not report them. With a `seed` the episode is the same draw again; each of its texts has a seed of
    its own, for numbers that two texts share would make the second depend on how the first was drawn.
    """

    def __init__(
        self, generator: Generator, chat: ChatTokens, turn_tokens: int, max_length: int, seed: int | None = None
    ) -> None:
        self._generator, self._chat = generator, chat
        self._seeds = repeat(None) if seed is None else (seed_round(seed, number) for number in count(1))
        self._turn_tokens, self._max_length = turn_tokens, max_length
        self.transcript = Transcript([])
        self.logprobs: list[float] | None = []

    @property
    def room(self) -> int:
        """How many tokens the model may write now."""
        return min(self._turn_tokens, self._max_length - len(self.transcript.ids))

    async def write(self, grammar: Grammar | None = None) -> list[int]:
        """Let the model continue, held to a grammar where there is one; returns its tokens. Raises TrainingFailed when
        the backend does."""
        made = await self._generator.generate(self.transcript.ids, self.room, grammar, next(self._seeds))
        # An empty turn still ends: without an end token the template's next part would stand inside it.
        ids = made.ids or [self._chat.tokenizer.eos_token_id]
        first = len(self.transcript.completion)
        self._add(ids, made.logprobs if made.ids else [0.0], learn=True)
        if grammar is not None:
            self.transcript.held.append(HeldTokens(first, first, first + len(made.ids), grammar))
        return ids

    async def write_again(self, grammar: Grammar | None, start: int = 0) -> list[int]:
        """Let the model write what begins at this place of the completion anew, held to another grammar; returns its
        tokens. What both versions begin with was drawn in the first: there the second had no choice. Raises
        TrainingFailed."""
        before, logprobs, held = self.transcript.completion[start:], self.logprobs, self.transcript.held[:]
        self.go_back(start)
        ids = await self.write(grammar)
        shared = start + _count_shared(before, ids)
        if self.logprobs is not None and logprobs is not None:
            self.logprobs[:shared] = logprobs[:shared]
        earlier = len(cut_held(held, start))
        own = [replace(part, first=shared) for part in self.transcript.held[earlier:]]
        self.transcript.held = [*cut_held(held, shared), *own]
        return ids

    def settle(self, text: str, start: int = 0) -> None:
        """Make the completion from this place on this text: what the model has written with an ending of another's, or
        another's alone. Nothing that is not the model's is learnt."""
        end, written = self._chat.tokenizer.eos_token_id, self._chat.decode(self.transcript.completion[start:])
        if text == written:
            return
        own = len(self.transcript.completion) if text.startswith(written) else start
        self.go_back(own - (own > start and self.transcript.completion[own - 1] == end))
        ids = self._chat.encode_turn(text.removeprefix(written) if own > start else text)
        self._add(ids, [0.0] * len(ids), learn=False)

    def read(self, reply: str | Sequence[Message]) -> None:
        """Add what the model's last turn is answered with, and what opens its next one."""
        end = self._chat.tokenizer.eos_token_id
        missing = [end] if self.transcript.completion[-1] != end else []  # a turn that was cut off at its limit
        ids = [*missing, *self._chat.encode_between(reply)]
        self._add(ids, [0.0] * len(ids), learn=False)

    def go_back(self, length: int) -> None:
        """Forget everything behind the first `length` tokens of the completion."""
        del self.transcript.completion[length:], self.transcript.mask[length:]
        self.transcript.held = cut_held(self.transcript.held, length)
        if self.logprobs is not None:
            self.logprobs = self.logprobs[:length]

    def _add(self, ids: Sequence[int], logprobs: Sequence[float] | None, learn: bool) -> None:
        self.transcript.add(ids, learn)
        # One backend call without log-probabilities spoils the episode's: TRL needs them for every token or for none.
        if self.logprobs is not None:
            self.logprobs = None if logprobs is None else [*self.logprobs, *logprobs]


def _count_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    shortest = min(len(one), len(other))
    return next((place for place in range(shortest) if one[place] != other[place]), shortest)

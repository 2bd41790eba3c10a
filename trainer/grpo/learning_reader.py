"""The learning model as a reader: the policy that serves readers, with every token of its conversation kept.

An episode is one sequence: listing and query, needs, cards, arguments; needs and arguments are learnt, cards are
context. A model that refuses a card is shown another one in its place and not behind it, so that its first arguments
are no part of the conversation that goes on: only the last cards and arguments are kept, and no token is learnt with
another context than it was sampled with. Where a step fails, code tries another worker: that adds no tokens.
"""

from __future__ import annotations

from orchestrator.engine.episode import Episode
from orchestrator.plan import Turn
from orchestrator.policies.reader import ReaderPolicy
from pool_registry.actions import Usage
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Completion, Draw, Grammar, Message
from trainer.grpo.token_transcript import ChatTokens
from trainer.grpo.token_writer import TokenWriter

# The others would have the model write what is no part of its one sequence of tokens.
REPAIRS_IN_TRAINING = frozenset(
    {"doubted_refusals", "named_operations", "copied_examples", "repeated_outputs", "substitutes"}
)


class LearningReader:
    """The orchestrator of one episode."""

    def __init__(self, name: str, pool: LivePool, writer: TokenWriter, chat: ChatTokens, hints: int = 0) -> None:
        self.name = name
        self.writer = writer
        self._chat = chat
        self._reader = ReaderPolicy(
            name, pool, self._write, constrained=False, repairs=REPAIRS_IN_TRAINING, hints=hints, other_plans=0
        )
        self._needs_end: int | None = None  # where the needs end in the completion, once they are written

    async def turn(self, episode: Episode) -> Turn:
        """Raises TrainingFailed when the backend does; the episode then ends as orchestrator_failed."""
        try:
            return await self._reader.turn(episode)
        except _NoRoom as error:
            return Turn(error=str(error), failed=True)

    async def _write(self, messages: list[Message], _grammar: Grammar | None, _draw: Draw | None) -> Completion:
        """Write without a mask: a mask would make the log-probabilities those of another distribution."""
        transcript = self.writer.transcript
        if self._needs_end is None:
            transcript.prompt = self._chat.encode_prompt(messages)
        else:
            self.writer.go_back(self._needs_end)
            self.writer.read(messages[-1].content)
        context = len(transcript.ids)
        if self.writer.room < 1:
            raise _NoRoom(f"the episode has {context:,} tokens; its limit is reached")
        ids = await self.writer.write()
        if self._needs_end is None:
            self._needs_end = len(transcript.completion)
        return Completion(self._chat.decode(ids), Usage(context, len(ids)))


class _NoRoom(Exception):
    """The cards leave no room for arguments."""

"""The learning model as a reader: the policy that serves readers, with every token of its conversation kept.

It plans as in use: the same prompts, grammars and bindings. An episode is one sequence: listing and query, needs,
cards, arguments; needs and arguments are learnt, cards are context. A model that refuses a card is shown another one in
its place and not behind it, so that its first arguments are no part of the conversation that goes on: only the last
cards and arguments are kept, and no token is learnt with another context than it was sampled with. So it is with needs
that are written anew: which operation a sum is. A second turn of the model's own goes on behind what came of its plan.
Where code tries another worker for a step that failed, that adds no tokens. Other plans are not drawn, and no worker is
put in: what is learnt is the model's own plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat
from orchestrator.repairs.table import OWN_TURNS
from orchestrator.traces.agent_track_record import TrackRecord
from pool_registry.actions import Usage
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Completion, Draw, Grammar, Message
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.grpo.token_writer import TokenWriter


@dataclass(frozen=True, slots=True)
class WorkerScore:
    """The score by which a reader chooses workers, and the outcomes that it goes by. What agents said to the very
    question of an episode does not count in it: it would give away who is right."""

    name: str
    record: TrackRecord


# The others would have the model write what is no part of its one sequence of tokens.
REPAIRS_IN_TRAINING = OWN_TURNS | {"named_operations", "substitutes"}


class LearningReader(Orchestrator):
    """The orchestrator of one episode."""

    def __init__(
        self,
        name: str,
        pool: LivePool,
        writer: TokenWriter,
        chat: ChatTokens,
        listing: ListingFormat = PLAIN_LISTING,
        query: str = "",
        score: WorkerScore | None = None,
    ) -> None:
        self.name = name
        self.writer = writer
        self._chat = chat
        self._reader = ReaderPolicy(
            name, pool, self._write, repairs=REPAIRS_IN_TRAINING, listing=listing, other_plans=0, own_turns=1
        )
        if score is not None:
            self._reader.choose_by(score.name, lambda: score.record.leave_out(query))
        self._turn = 0  # which plan of its own it writes, and where its needs begin and end in the completion
        self._needs_start = 0
        self._needs_end: int | None = None

    async def turn(self, episode: Episode) -> Turn:
        """Raises TrainingFailed when the backend does; the episode then ends as orchestrator_failed."""
        try:
            return await self._reader.turn(episode)
        except _NoRoom as error:
            return Turn(error=str(error), failed=True)

    async def _write(self, messages: list[Message], grammar: Grammar | None, _draw: Draw | None) -> Completion:
        """Write under the grammar of use; the trainer computes log-probabilities under it, too."""
        written = [message.content for message in messages if message.role == "assistant"]
        turn, has_needs = divmod(len(written), 2)  # a plan is two texts: its needs and its arguments
        if not has_needs:
            return await self._write_needs(messages, turn, grammar)
        self.writer.go_back(self._needs_end or 0)
        self.writer.settle(written[-1], self._needs_start)
        self._needs_end = len(self.writer.transcript.completion)
        self.writer.read(messages[-1].content)
        context = self._measure_context()
        ids = await self.writer.write(grammar)
        return Completion(self._chat.decode(ids), Usage(context, len(ids)))

    async def _write_needs(self, messages: list[Message], turn: int, grammar: Grammar | None) -> Completion:
        transcript = self.writer.transcript
        is_again = self._needs_end is not None and turn == self._turn
        if not is_again:
            self._begin_plan(messages, turn)
        context = len(transcript.prompt) + self._needs_start if is_again else self._measure_context()
        ids = await (self.writer.write_again(grammar, self._needs_start) if is_again else self.writer.write(grammar))
        self._needs_end = len(transcript.completion)
        return Completion(self._chat.decode(ids), Usage(context, len(ids)))

    def _begin_plan(self, messages: list[Message], turn: int) -> None:
        """Open the conversation, or go on in it with what came of the last plan."""
        if turn:
            self.writer.read(messages[-1].content)
        else:
            self.writer.transcript.prompt = self._chat.encode_prompt(messages)
        self._turn, self._needs_start = turn, len(self.writer.transcript.completion)

    def _measure_context(self) -> int:
        context = len(self.writer.transcript.ids)
        if self.writer.room < 1:
            raise _NoRoom(f"the episode has {context:,} tokens; its limit is reached")
        return context


class _NoRoom(Exception):
    """The cards leave no room for arguments."""

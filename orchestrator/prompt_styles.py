"""The styles of prompt, and what follows from each. Whoever asks a model asks its row, and compares no names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

PromptStyle = Literal["full", "query", "reader", "reader-agents", "reader-outputs", "reader-fields", "reader-turns"]


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """What a model of one style is shown, and how it is put to work.

    What a model was shown in training it must be shown in use, to the letter: raise `version` when the text changes.
    Checkpoints keep the number (`podium.json`), and those of another one are refused, not used at half strength.
    """

    content: str  # of the prompt, in words
    version: int
    lists_workers: bool = False  # rules and workers stand in it, and lessons and the template's own functions may
    knows_one_pool: bool = False  # by heart: the pool that it was trained on
    binds_needs: bool = False  # it writes needs, then calls of the workers that they are bound to (orchestrator/reader)
    marks_agents: bool = False  # the listing says which workers are agents, who may be asked anything
    shows_outputs: bool = False  # cards name the fields of what a worker returns, where its kind or its spec says them
    lists_fields: bool = False  # lines of the listing name them, too
    reads_states: bool = False  # where a call failed it is shown what came of its plan, and plans again

    @property
    def reads_conversation(self) -> bool:
        """Whether a conversation may stand around the query: small models were trained on bare questions."""
        return self.lists_workers

    @property
    def texts(self) -> int:
        """How many texts the model writes for a turn."""
        return 2 if self.binds_needs else 1


PROMPTS: Mapping[PromptStyle, PromptFacts] = {
    "full": PromptFacts("the pool's description and the query", version=1, lists_workers=True),
    "query": PromptFacts("the query alone", version=1, knows_one_pool=True),
    "reader": PromptFacts(
        "a listing of the pool and the query, then the cards of the workers that its needs were bound to",
        version=1,
        binds_needs=True,
    ),
    "reader-agents": PromptFacts(
        "that of a reader, with agents marked in the listing", version=1, binds_needs=True, marks_agents=True
    ),
    "reader-outputs": PromptFacts(
        "that of a reader, with agents marked in the listing, and the fields of what workers return on their cards",
        version=1,
        binds_needs=True,
        marks_agents=True,
        shows_outputs=True,
    ),
    "reader-fields": PromptFacts(
        "that of a reader, with agents marked, and the fields of what workers return in the listing and on their cards",
        version=1,
        binds_needs=True,
        marks_agents=True,
        shows_outputs=True,
        lists_fields=True,
    ),
    "reader-turns": PromptFacts(
        "that of a reader, with agents marked, the fields of what workers return in the listing and on their cards, "
        "and where a call failed the last plan with what came of it",
        version=1,
        binds_needs=True,
        marks_agents=True,
        shows_outputs=True,
        lists_fields=True,
        reads_states=True,
    ),
}

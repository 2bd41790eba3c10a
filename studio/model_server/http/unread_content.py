"""The answer to a message that holds no text: what the server can read, in place of an episode over nothing."""

from __future__ import annotations

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import write_turn
from orchestrator.quotes import escape

_WORDS = {"image": "an image", "audio": "a recording", "video": "a film", "file": "a file"}


class UnreadContentPolicy(Orchestrator):
    """Answers at once, by a sentence; no worker is called. `kinds` are the types of the content."""

    def __init__(self, name: str, kinds: str) -> None:
        self.name = name
        self._kinds = kinds

    async def turn(self, _episode: Episode) -> Turn:
        return write_turn([], escape(explain_unread(self._kinds)))


def explain_unread(kinds: str) -> str:
    """What a client reads in answer to a message of these types of content alone."""
    words = [next((words for part, words in _WORDS.items() if part in kind), kind) for kind in kinds.split()]
    content = " and ".join(dict.fromkeys(words))
    return f"I read text only, and your message holds {content} without a word. Write what you want to know."

"""Finds the columns of queries, answers and splits by the names that data sets give them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pool_registry.text import one_line, shorten
from trainer.errors import UnusableTasks

# Names without case, spaces, hyphens and underscores. A data set has one of the first group, else one of the next.
QUERY_NAMES = (
    ("question", "query", "problem", "prompt", "questions", "q", "frage", "pregunta", "domanda", "vraag"),
    ("instruction", "input", "inputs", "inputtext", "textinput"),
)
ANSWER_NAMES = (
    (
        "answer", "answers", "target", "targets", "label", "expected", "expectedanswer", "expectedoutput",
        "correctanswer", "answerkey", "finalanswer", "groundtruth", "gold", "goldanswer", "a", "antwort", "réponse",
        "respuesta", "risposta", "antwoord",
    ),
    ("solution", "output", "outputs", "outputtext", "response", "completion", "reference"),
)  # fmt: skip
CHAT_NAMES = (("messages", "conversations", "conversation", "contents"),)
CHOICE_NAMES = (("choices", "options"),)
SPLIT_NAMES = (("split", "subset"),)
# A query's column, and the one that it is read with (Alpaca, SQuAD).
CONTEXTS = {"instruction": "input", "question": "context"}
REMEDY = "rename it, or choose it (--query-column, --answer-column)"
SHOWN = 12
MAX_NAME_CHARS = 60  # of a column, in a sentence
_FILL = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that tasks are read from; `split`, `context` and `choices` are "" where there is none. In `chats`
    there must be a chat: no person chose them, or one holds queries and answers."""

    query: str
    answer: str
    split: str = ""
    context: str = ""
    choices: str = ""
    chats: tuple[str, ...] = ()

    def list_unused(self, columns: Sequence[str]) -> list[str]:
        """The columns that no task is read from."""
        used = (self.query, self.answer, self.split, self.context, self.choices)
        return [name for name in columns if name not in used]


class UnclearColumns(UnusableTasks):
    """The columns of queries and answers must be chosen from `columns`."""

    def __init__(self, columns: Sequence[str], sentence: str) -> None:
        self.columns = tuple(columns)
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class ColumnChooser:
    """Finds the columns of `source`, or takes those that a person names. `takes_first`: of several of a kind, the one
    that stands first in the table of names; else that is an error."""

    source: str
    query: str = ""
    answer: str = ""
    takes_first: bool = False
    remedy: str = REMEDY

    def choose(self, columns: Sequence[str]) -> Columns:
        """The columns of tasks. Raises UnclearColumns where none, or several, could be meant."""
        is_own = not self.takes_first and {"query", "answer"} <= {normalize_name(name) for name in columns}
        query = self._choose(columns, "queries", self.query or "query" * is_own, QUERY_NAMES)
        answer = self._choose(columns, "answers", self.answer or "answer" * is_own, ANSWER_NAMES)
        if query == answer and not is_chat_name(query):
            raise self._refuse(columns, f"queries and answers cannot both be in {query!r}; choose two")
        split = next(iter(_match(columns, SPLIT_NAMES)), "")
        contexts = [name for name in columns if normalize_name(name) == CONTEXTS.get(normalize_name(query))]
        choices = next((name for name in _match(columns, CHOICE_NAMES) if name not in (query, answer)), "")
        context = next((name for name in contexts if name != answer), "")
        chats = [name for name, chosen in ((query, self.query), (answer, self.answer)) if not chosen or query == answer]
        return Columns(query, answer, split, context, choices, tuple(filter(is_chat_name, dict.fromkeys(chats))))

    def _choose(self, columns: Sequence[str], what: str, chosen: str, names: tuple[tuple[str, ...], ...]) -> str:
        if chosen:
            return self._find(columns, chosen)
        matches = _match(columns, names) or _match(columns, CHAT_NAMES)
        contexts = {CONTEXTS.get(normalize_name(name)) for name in matches}
        matches = [name for name in matches if normalize_name(name) not in contexts]
        if not matches:
            examples = ", ".join(names[0][:4])
            raise self._refuse(columns, f"none is known to hold the {what} ({examples} ...); {self.remedy}")
        if len(matches) > 1 and not self.takes_first:
            raise self._refuse(columns, f"{' and '.join(matches)} could hold the {what}; {self.remedy}")
        return matches[0]

    def _find(self, columns: Sequence[str], chosen: str) -> str:
        alike = [name for name in columns if normalize_name(name) == normalize_name(chosen)]
        if not alike:
            raise self._refuse(columns, f"none is called {chosen!r}; choose one of these")
        return chosen if chosen in alike else alike[0]

    def _refuse(self, columns: Sequence[str], reason: str) -> UnclearColumns:
        shown = [shorten(one_line(name), MAX_NAME_CHARS) for name in columns[:SHOWN]] + ["..."] * (len(columns) > SHOWN)
        return UnclearColumns(columns, f"{self.source} has the columns {', '.join(shown)}, and {reason}")


def is_chat_name(column: str) -> bool:
    """Whether a column is known for chats, which hold queries and answers."""
    return bool(_match([column], CHAT_NAMES))


def is_known_pair(columns: Sequence[str]) -> bool:
    """Whether columns are known for queries and for answers."""
    return bool(_match(columns, CHAT_NAMES) or (_match(columns, QUERY_NAMES) and _match(columns, ANSWER_NAMES)))


def is_query_name(column: str) -> bool:
    """Whether a column is known for queries."""
    return bool(_match([column], QUERY_NAMES))


def is_known(column: str) -> bool:
    """Whether a column is known by its name."""
    return bool(_match([column], QUERY_NAMES + ANSWER_NAMES + CHAT_NAMES))


def normalize_name(name: str) -> str:
    """The name of a column without what makes no difference."""
    return _FILL.sub("", name).casefold()


def _match(columns: Sequence[str], groups: tuple[tuple[str, ...], ...]) -> list[str]:
    """The columns of the first group that there is one of, in the order of the group."""
    there: Mapping[str, str] = {normalize_name(name): name for name in reversed(columns)}
    return next((matches for names in groups if (matches := [there[name] for name in names if name in there])), [])

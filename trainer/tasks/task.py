"""A task: a query with a verifier and perhaps a reference plan, and the templates queries are written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.events import TaskRef
from orchestrator.plan import Turn
from pool_registry.actions import JsonValue
from trainer.tasks.verifier import AnyVerifier

CUSTOM = "custom"  # the split of tasks that were recognised from a query and have no index


@dataclass(frozen=True, slots=True)
class Task:
    """`oracle_turn` is one turn that solves the query with the workers of a pool; None where nobody gave one."""

    ref: TaskRef
    query: str
    verifier: AnyVerifier
    oracle_turn: Turn | None = None

    @property
    def expected(self) -> JsonValue:
        return self.verifier.expected

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers that the reference plan calls, each once."""
        steps = self.oracle_turn.steps if self.oracle_turn else ()
        return tuple(dict.fromkeys(step.worker for step in steps))


class Template:
    """A query with named gaps, `"Company {company} gives back ..."`, that can be filled and recognised.

    `gaps` gives the pattern of each gap; white space, case and a missing full stop do not matter when
    recognising, so that a person may edit a query and still be understood.
    """

    def __init__(self, text: str, gaps: Mapping[str, str]) -> None:
        self.text = text
        # ASCII: without it "ſ" matches "s" when case does not matter, and nobody expects that in a gap
        self._pattern = re.compile(_as_pattern(text, gaps), re.IGNORECASE | re.ASCII)

    def fill(self, **values: object) -> str:
        return self.text.format(**values)

    def match(self, query: str) -> dict[str, str] | None:
        """The gaps' contents when `query` is this template filled in, else None."""
        found = self._pattern.fullmatch(plain(query))
        return found.groupdict() if found else None


def plain(query: str) -> str:
    """A query without the differences that do not matter: white space and the mark at its end."""
    return " ".join(query.split()).rstrip(".?! ")


def _as_pattern(text: str, gaps: Mapping[str, str]) -> str:
    pieces = re.split(r"\{(\w+)\}", text.rstrip(".?"))
    return "".join(
        f"(?P<{piece}>{gaps[piece]})" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces)
    )

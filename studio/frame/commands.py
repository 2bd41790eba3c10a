"""What a page's command answers, and how commands read what the page sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import OrchestratorError
from pool_registry.errors import InvalidPool, PoolError, WorkerFault
from pool_registry.kinds import PLAIN_WORDS
from pool_registry.secrets import redact
from trainer.errors import TrainerError

MENDABLE = (PoolError, OrchestratorError, TrainerError, WorkerFault)  # a person can do something about these


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command did: `said` is for a toast, `problems` belong to fields, `more` to the command."""

    said: str = ""
    problems: tuple[tuple[str, str], ...] = ()
    more: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        return {"ok": not self.problems, "said": self.said, "problems": self.problems, **(self.more or {})}


Command = Callable[[Mapping[str, Any]], Reply]


def answered(
    commands: Mapping[str, Callable[[Mapping[str, Any]], Reply | dict[str, Any]]], request: Mapping[str, Any]
) -> dict[str, Any]:
    """What the command answers that `request["action"]` names. Never raises for what a person can mend: that is
    told as problems, each at its field where the error knows it, and none of them shows a secret."""
    name = str(request.get("action"))
    if name not in commands:
        return refused([("", f"there is no command {request.get('action')!r}")])
    try:
        done = commands[name](request)
    except MENDABLE as error:
        problems = getattr(error, "problems", None) or [("", str(error))]
        return refused([(where, redact(what)) for where, what in problems])
    return done.document() if isinstance(done, Reply) else {"ok": True, "problems": [], **done}


def refused(problems: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The answer of a command that did nothing, for these reasons."""
    return Reply(problems=tuple(problems)).document()


def text(request: Mapping[str, Any], name: str) -> str:
    """The string `name`. Raises InvalidPool when it is missing, empty or something else."""
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidPool([(name, PLAIN_WORDS["missing"])])
    return value


def words(request: Mapping[str, Any], name: str) -> str:
    """The string `name`, stripped; "" when it is missing or something else."""
    value = request.get(name)
    return value.strip() if isinstance(value, str) else ""


def table(request: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object `name`. Raises InvalidPool when it is missing or something else."""
    value = request.get(name)
    if not isinstance(value, Mapping):
        raise InvalidPool([(name, PLAIN_WORDS["missing"])])
    return value


def tables(request: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in the list `name`. Raises InvalidPool when it is no such list, or empty."""
    value = request.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        raise InvalidPool([(name, "choose at least one")])
    return value


def version(request: Mapping[str, Any], name: str = "version") -> int:
    """The number `name`. Raises InvalidPool when it is none."""
    try:
        return int(str(request.get(name)))
    except ValueError:
        raise InvalidPool([(name, "this is no version")]) from None


def encode(document: Mapping[str, Any]) -> str:
    """A document as the page takes it: text, never an object (Gradio proxies objects deeply)."""
    return json.dumps(document, ensure_ascii=False)

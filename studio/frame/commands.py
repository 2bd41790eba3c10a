"""Commands of the pages: each is a POST to /api/pages/PAGE/COMMAND, and all replies have one envelope.

A reply is `{"ok", "message", "problems", ...}`: what a person can mend comes as problems at their fields, never as an
HTTP error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse

from pool_registry.errors import InvalidPool
from pool_registry.kinds import PLAIN_WORDS
from pool_registry.secrets import redact
from trainer.errors import MENDABLE

Fields = Mapping[str, Any]  # what a page sends: the body of the request


@dataclass(frozen=True, slots=True)
class PageReply:
    """What a command did: `message` is for a toast, `fields` are its own, `problems` are (field, sentence)."""

    message: str = ""
    fields: Fields = field(default_factory=dict)
    problems: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """The reply as JSON."""
        return {"ok": not self.problems, "message": self.message, "problems": self.problems, **self.fields}

    def extend(self, message: str = "", **fields: Any) -> PageReply:
        """This reply with more fields, and with another message where one is given; a refusal stays as it is."""
        return self if self.problems else PageReply(message or self.message, {**self.fields, **fields})


Command = Callable[[Fields], PageReply]


class PageCommands:
    """The commands of a page by name; subclasses fill `commands`."""

    commands: Mapping[str, Command]

    def run(self, name: str, fields: Fields) -> dict[str, Any]:
        """Run a command and return its reply as JSON."""
        command = self.commands.get(name)
        if command is None:
            return PageReply(problems=(("", f"there is no command {name!r}"),)).document()
        return answer(lambda: command(fields))


def command_routes(page: str, commands: PageCommands) -> APIRouter:
    """The POST routes of a page's commands, in a router that takes the page's other routes too."""
    router = APIRouter()

    @router.post(f"/api/pages/{page}/{{name}}")
    def run(name: str, fields: dict[str, Any] = Body()) -> JSONResponse:  # noqa: B008  FastAPI's way
        return JSONResponse(commands.run(name, fields))

    return router


def answer(work: Callable[[], PageReply], mendable: tuple[type[Exception], ...] = MENDABLE) -> dict[str, Any]:
    """Do the work and return its reply as JSON. Errors that a person can mend become problems, at their fields where
    the error names them, and none of them shows a secret."""
    try:
        return work().document()
    except mendable as error:
        problems = getattr(error, "problems", None) or [("", str(error))]
        return PageReply(problems=tuple((where, redact(what)) for where, what in problems)).document()


def text(fields: Fields, name: str) -> str:
    """The string `name`. Raises InvalidPool when it is missing, empty or something else."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidPool([(name, PLAIN_WORDS["missing"])])
    return value


def words(fields: Fields, name: str) -> str:
    """The string `name`, stripped; "" when it is missing or something else."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def table(fields: Fields, name: str) -> Mapping[str, Any]:
    """The object `name`. Raises InvalidPool when it is missing or something else."""
    value = fields.get(name)
    if not isinstance(value, Mapping):
        raise InvalidPool([(name, PLAIN_WORDS["missing"])])
    return value


def tables(fields: Fields, name: str) -> list[Mapping[str, Any]]:
    """The objects in the list `name`. Raises InvalidPool when the list is missing, empty or holds something else."""
    value = fields.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        raise InvalidPool([(name, "choose at least one")])
    return value


def version(fields: Fields, name: str = "version") -> int:
    """The number `name`. Raises InvalidPool when it is not a number."""
    try:
        return int(str(fields.get(name)))
    except ValueError:
        raise InvalidPool([(name, "this is not a version")]) from None

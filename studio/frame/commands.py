"""Commands of the pages: each is a POST to /api/pages/PAGE/COMMAND, and all replies have one envelope.

A reply is `{"ok", "message", "problems", ...}`: what a person can mend comes as problems at their fields, never as an
HTTP error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse

from pool_registry.errors import InvalidPool
from pool_registry.secrets import redact
from pool_registry.validation_words import MISSING
from studio.access.json_route import JsonRoute
from studio.access.permissions import Function, Need, RoleName, find_need, needs
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
_NAME = "_podium_command"
_HALF = re.compile("[\ud800-\udfff]")  # of a pair, which JSON can escape and UTF-8 cannot write
_HALF_OR_NUL = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL does not take NUL, nor does the name of a file
FILE_CONTENTS = ("text", "yaml")  # fields whose commands say themselves what a file without text is
FILES = frozenset((*FILE_CONTENTS, "data", "answers"))  # fields that hold a whole file
MAX_CHARS = 1_000_000  # of a text in any other field, as of a query
_PIECE = 2**20  # characters that are searched between two moments at which other threads may go on
NOT_STORABLE = "this holds something that is no character; type it again"


def command(role: RoleName, name: str = "", *, edits_pool: bool = False) -> Callable[[Function], Function]:
    """Make a method a command that needs a role, by default under the method's own name.

    A command that `edits_pool` is for owners where the pool that its fields name is shared read-only.
    """
    declare = needs(role, edits_pool=edits_pool)

    def mark(function: Function) -> Function:
        setattr(function, _NAME, name or function.__name__.strip("_"))
        return declare(function)

    return mark


class PageCommands:
    """The commands of a page: the methods that @command marks, and those of its parts."""

    parts: Sequence[PageCommands] = ()

    @cached_property
    def commands(self) -> Mapping[str, Command]:
        """The commands by name. Raises ValueError when two have the same name."""
        marked = [name for kind in type(self).__mro__ for name, value in vars(kind).items() if hasattr(value, _NAME)]
        methods = [getattr(self, name) for name in dict.fromkeys(marked)]
        commands = [(getattr(method, _NAME), method) for method in methods]
        commands += [row for part in self.parts for row in part.commands.items()]
        if len(dict(commands)) < len(commands):
            raise ValueError(f"two commands of {type(self).__name__} have the same name")
        return dict(commands)

    def run(self, name: str, fields: Fields) -> dict[str, Any]:
        """Run a command and return its reply as JSON."""
        command = self.commands.get(name)
        if command is None:
            return PageReply(problems=(("", f"there is no command {name!r}"),)).document()

        def work() -> PageReply:
            self.check(command, fields)
            return command(fields)

        return answer(work)

    def check(self, command: Command, fields: Fields) -> None:  # noqa: ARG002  a page may go by the command
        """Raise InvalidPool for fields that no command takes: too long ones, and texts that neither a file nor a
        database can hold."""
        long = [name for name in fields if name not in FILES and any(map(_is_long, _list_texts(fields[name])))]
        if long:
            raise InvalidPool([(name, f"this has more than {MAX_CHARS:,} characters; shorten it") for name in long])
        refused = {name: _HALF if name in FILE_CONTENTS else _HALF_OR_NUL for name in fields}
        if problems := [(name, NOT_STORABLE) for name, parts in refused.items() if _holds(parts, fields[name])]:
            raise InvalidPool(problems)


def _holds(pattern: re.Pattern[str], document: Any) -> bool:
    """Whether a text of a document matches the pattern of a character."""
    texts = _list_texts(document)
    return any(pattern.search(text, start, start + _PIECE) for text in texts for start in range(0, len(text), _PIECE))


def _is_long(text: str) -> bool:
    return len(text) > MAX_CHARS


def _list_texts(document: Any) -> Iterator[str]:
    """The texts of a document. Without recursion: a page may send what is nested as deep as Python's own stack."""
    rest = [document]
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            rest += [*value, *value.values()]
        elif isinstance(value, list):
            rest += value


def command_routes(page: str, commands: PageCommands) -> APIRouter:
    """The POST routes of a page's commands, in a router that takes the page's other routes too."""
    router = APIRouter(route_class=JsonRoute)

    def add(name: str, need: Need) -> None:
        @router.post(f"/api/pages/{page}/{name}")
        @needs(need.role.value, edits_pool=need.edits_pool)
        def run(fields: dict[str, Any] = Body()) -> JSONResponse:  # noqa: B008  FastAPI's way
            return JSONResponse(commands.run(name, fields))

    for name, command in commands.commands.items():
        add(name, find_need(command) or Need())

    @router.post(f"/api/pages/{page}/{{name}}")
    @needs("owner")
    def refuse(name: str, fields: dict[str, Any] = Body()) -> JSONResponse:  # noqa: B008  FastAPI's way
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
        raise InvalidPool([(name, MISSING)])
    return value


def words(fields: Fields, name: str) -> str:
    """The string `name`, stripped; "" when it is missing or something else."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def dollars(fields: Fields, name: str) -> float | None:
    """The amount above 0 that a person typed as `name`; None for an empty field. Raises InvalidPool."""
    written = words(fields, name)
    if not written:
        return None
    try:
        amount = float(written.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        raise InvalidPool([(name, "give an amount in US dollars above 0, such as 0.50")])
    return amount


def flag(fields: Fields, name: str) -> bool:
    """The yes or no `name`. Raises InvalidPool when it is missing or something else."""
    value = fields.get(name)
    if not isinstance(value, bool):
        raise InvalidPool([(name, MISSING)])
    return value


def table(fields: Fields, name: str) -> Mapping[str, Any]:
    """The object `name`. Raises InvalidPool when it is missing or something else."""
    value = fields.get(name)
    if not isinstance(value, Mapping):
        raise InvalidPool([(name, MISSING)])
    return value


def tables(fields: Fields, name: str) -> list[Mapping[str, Any]]:
    """The objects in the list `name`. Raises InvalidPool when the list is missing, empty or holds something else."""
    value = fields.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        raise InvalidPool([(name, "choose at least one")])
    return value


def version(fields: Fields, name: str = "version") -> int:
    """The number `name`. Raises InvalidPool when it is not a number that a database can hold."""
    with suppress(ValueError):
        if abs(number := int(str(fields.get(name)))) < 2**63:
            return number
    raise InvalidPool([(name, "this is not a version")])

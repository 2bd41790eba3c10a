"""What `podium pool add` takes workers from: a source (`--from`) or a text (`--paste`), with the settings of either."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from pool_registry.errors import InvalidPool

SOURCES = "function:FILE.py, openapi:FILE-OR-URL, mcp:COMMAND-OR-URL or space:OWNER/NAME"
PASTE_HELP = (
    "Workers of a text, from a file or what is typed or piped in (-): mcpServers settings, a line such as claude mcp "
    "add, an OpenAPI document or its address, a list of OpenAI tools, a curl line, a collection of Postman, a "
    "SKILL.md, an A2A card, an AutoGen team, an export of OpenAI's Agent Builder, the address of Ollama or vLLM."
)
ALLOW_FORMS = "network, read:PATH, write:PATH or key:env:NAME"
STDIN = "-"


class AddCommand(typer.core.TyperCommand):
    """`--paste` alone reads what is typed or piped in."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        places = [index for index, word in enumerate(args) if word == "--paste"]
        for index in places:
            rest = args[index + 1 : index + 2]
            if not rest or (rest[0].startswith("-") and rest[0] != STDIN):
                args = [*args[: index + 1], STDIN, *args[index + 1 :]]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The settings of a source or a text; each goes where it is of use, or is refused."""

    key: str = ""
    server: str = ""
    env: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    name: str = ""
    private: bool = False
    python: str = ""

    def refuse_all(self, users: str) -> None:
        """Raise InvalidPool where any is set."""
        self.refuse(users, "key", "server", "env", "header", "name", "private", "python")

    def refuse(self, users: str, *options: str) -> None:
        """Raise InvalidPool where one of these is set; `users` says with what they are of use."""
        if useless := [f"--{option}" for option in options if getattr(self, option)]:
            raise InvalidPool([("", f"{', '.join(useless)} is of no use here; give it with {users}")])


def read_pasted(place: str, options: SourceOptions) -> dict[str, Any]:
    """The fields with which a text is recognised. Raises InvalidPool where it cannot be read."""
    options.refuse("--from function:", "python")
    return {
        "text": _read_text(place),
        "key": options.key,
        "server": options.server,
        "env": "\n".join(options.env),
        "headers": "\n".join(options.header),
        "name": options.name,
        "private": options.private,
    }


def read_source(source: str, options: SourceOptions) -> dict[str, Any]:
    """The fields with which an importer is asked. Raises InvalidPool."""
    kind, _, what = source.partition(":")
    reader = _READERS.get(kind)
    if reader is None:
        raise InvalidPool([("", f"--from takes {SOURCES}, not {source!r}")])
    return {"source": kind, **reader(what, options)}


def _read_function(target: str, options: SourceOptions) -> dict[str, Any]:
    options.refuse("--from openapi:, mcp: or space:", "key", "server", "env", "header", "name", "private")
    return {"target": target, "python": options.python}


def _read_openapi(place: str, options: SourceOptions) -> dict[str, Any]:
    options.refuse("--from function:", "python")
    options.refuse("--from mcp:", "env", "name")
    is_url = place.startswith(("http://", "https://"))
    key, header = _read_key_header(options)
    return {
        **({"url": place} if is_url else {"text": _read_file(place)}),
        "api_key": key,
        "key_header": header,
        "base_url": options.server,
        "allow_private": options.private,
    }


def _read_key_header(options: SourceOptions) -> tuple[str, str]:
    """The reference to the key and the header for it: `--header 'X-API-Key: env:NAME'`, or `--key` alone."""
    if not options.header:
        return options.key, ""
    name, colon, value = options.header[0].partition(":")
    if len(options.header) > 1 or options.key or not colon:
        raise InvalidPool([("", "an OpenAPI document takes --key env:NAME, or one --header 'NAME: env:NAME'")])
    return value.strip(), name.strip()


def _read_mcp(place: str, options: SourceOptions) -> dict[str, Any]:
    web = place.startswith(("http://", "https://"))
    options.refuse("--from function:", "python")
    options.refuse("--from openapi:", "server")
    if web:
        options.refuse("a program", "env")
    else:
        options.refuse("a URL; a program has its key in --env NAME=env:NAME", "key", "header", "private")
    bearer = (f"Authorization: Bearer {options.key}",) if options.key else ()
    server = {"transport": "http", "url": place} if web else {"transport": "stdio", "command": place}
    lines = {"env": "\n".join(options.env), "headers": "\n".join((*options.header, *bearer))}
    return {"server": {**server, **lines, "name": options.name, "allow_private": options.private and web}}


def _read_space(space: str, options: SourceOptions) -> dict[str, Any]:
    options.refuse("--from function:", "python")
    options.refuse("--from openapi: or mcp:", "server", "env", "header", "name")
    return {"space": space, "token": options.key, "allow_private": options.private}


_READERS: Mapping[str, Callable[[str, SourceOptions], dict[str, Any]]] = {
    "function": _read_function,
    "openapi": _read_openapi,
    "mcp": _read_mcp,
    "space": _read_space,
}


ALLOWED = {"read": "read", "write": "write", "key": "keys"}  # what stands before the colon: its permission


def read_permissions(as_you: bool, allow: list[str]) -> dict[str, Any]:
    """How functions run: as the person, or in the sandbox with what is allowed. Raises InvalidPool."""
    if as_you:
        return {"as_you": True}
    permissions: dict[str, Any] = {"network": "network" in allow, "read": [], "write": [], "keys": []}
    for item in allow:
        what, _, value = item.partition(":")
        if item != "network" and not (what in ALLOWED and value):
            raise InvalidPool([("", f"--allow takes {ALLOW_FORMS}, not {item!r}")])
        if value:
            permissions[ALLOWED[what]].append(value)
    return {"permissions": permissions}


def _read_text(place: str) -> str:
    """What is typed or piped in, a file, or the text itself where it was written in place of one."""
    from pool_registry.pasted.table import find_kind

    if place == STDIN:
        try:
            return sys.stdin.read()
        except UnicodeDecodeError as error:
            raise InvalidPool([("", "what is piped in is not UTF-8 text: convert it first")]) from error
    try:
        return _read_file(place)
    except InvalidPool:
        if find_kind(place) is None:
            raise
        return place


def _read_file(place: str) -> str:
    try:
        return Path(place).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidPool([("", f"{place} cannot be read: {error}")]) from error

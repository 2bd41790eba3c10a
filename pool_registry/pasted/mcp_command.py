"""The commands with which clients of MCP add a server: `claude mcp add NAME -- COMMAND`, and those of Codex, Gemini,
Qwen, Amp and VS Code. Each is read as the entry that it would write into the client's settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pool_registry.errors import InvalidPool
from pool_registry.processes.shell_words import list_words

MAX_COMMANDS = 50
MAX_COMMAND_CHARS = 4000
_COMMAND = re.compile(
    r"^[ \t]*(?:[$>][ \t]+)?[\w.-]{1,40}[ \t]+(?:mcp[ \t]+add(?:-json)?|--add-mcp)[ \t]", re.MULTILINE
)
_CONTINUATION = re.compile(r"(?<![ \t\\])[ \t]*\\\n[ \t]*")
_PAIR = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Options by the field of settings that they fill; those of "" have a value that changes nothing here.
OPTIONS = {
    "-e": "env", "--env": "env",
    "-H": "headers", "--header": "headers",
    "-t": "type", "--transport": "type", "--type": "type",
    "--url": "url",
    "--bearer-token-env-var": "bearer_token_env_var",
    "-s": "", "--scope": "", "--timeout": "", "--description": "", "--include-tools": "", "--exclude-tools": "",
    "--client-id": "", "--callback-port": "",
}  # fmt: skip


@dataclass(slots=True)
class _Entry:
    """A server on its way from the words of a command."""

    words: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def is_program(self) -> bool:
        """Whether a name and a program stand there, so that what follows are the program's own words."""
        return len(self.words) > 1 and not _is_address(self.words[1])

    def write(self) -> tuple[str, Mapping[str, Any]]:
        """The name and the entry. Raises InvalidPool."""
        name, *words = self.words or [""]
        if words and _is_address(words[0]):
            self.fields["url"] = words.pop(0)
        if "url" in self.fields:
            return name, {"type": "http", **self.fields, "headers": self.headers}
        if not words:
            raise InvalidPool([("text", f"the command that adds {name or 'a server'} names no program and no address")])
        return name, {"command": words[0], "args": words[1:], "env": self.env}


def adds_server(text: str) -> bool:
    """Whether a text holds such a command."""
    return bool(_COMMAND.search(text))


def read_add_commands(text: str) -> dict[str, Mapping[str, Any]]:
    """The servers that the commands of a text would add, by name. Raises InvalidPool."""
    joined = _CONTINUATION.sub(" ", text)
    lines = [line for line in joined.splitlines() if _COMMAND.match(line)]
    if len(lines) > MAX_COMMANDS or any(len(line) > MAX_COMMAND_CHARS for line in lines):
        raise InvalidPool(
            [("text", f"paste at most {MAX_COMMANDS} commands of {MAX_COMMAND_CHARS:,} characters at once")]
        )
    servers: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        name, entry = _read_command(line)
        servers[name] = entry
    return servers


def _read_command(line: str) -> tuple[str, Mapping[str, Any]]:
    try:
        words = list(list_words(line.lstrip(" \t$>")))
    except ValueError as error:
        raise InvalidPool([("text", f"a quotation mark of this command does not close: {line[:80]}")]) from error
    if words[1] == "--add-mcp":  # VS Code: the entry with its name
        entry = _read_json(words[2:3])
        return str(entry.get("name") or ""), entry
    if words[2] == "add-json":
        names = _read_words([word for word in words[3:] if word != "--"]).words
        return names[0] if names else "", _read_json(names[1:2])
    return _read_words(words[3:]).write()


def _read_words(words: list[str]) -> _Entry:
    """What the words after `mcp add` say; after `--`, or after a name and a program, all words are the program's."""
    entry, waiting = _Entry(), list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--" or entry.is_program:
            entry.words += [*([] if word == "--" else [word]), *reversed(waiting)]
            break
        if not word.startswith("-"):
            entry.words.append(word)
            continue
        option, equals, value = word.partition("=")
        if equals:
            waiting.append(value)
        filled = OPTIONS.get(option)
        if filled is None or not waiting:
            continue  # a switch, such as --trust
        if filled in ("env", "headers"):
            _read_pairs(getattr(entry, filled), filled, waiting)
        else:
            value = waiting.pop()
            entry.fields |= {filled: value} if filled else {}
    return entry


def _read_pairs(pairs: dict[str, str], name: str, waiting: list[str]) -> None:
    """One value of an option, and, as Claude takes them, further NAME=value."""
    mark = "=" if name == "env" else ":"
    key, _, value = waiting.pop().partition(mark)
    pairs[key.strip()] = value.strip()
    while name == "env" and waiting and _PAIR.fullmatch(waiting[-1]):
        key, _, value = waiting.pop().partition("=")
        pairs[key] = value


def _read_json(words: list[str]) -> Mapping[str, Any]:
    try:
        entry = json.loads(words[0]) if words else None
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InvalidPool([("text", "the server in this command is no JSON object; paste the whole command")])
    return entry


def _is_address(word: str) -> bool:
    return word.startswith(("http://", "https://"))

"""The servers in the settings of an MCP client: Claude, Cursor, VS Code, Zed, Codex, LibreChat, Continue and Goose
write nearly the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer, worker_name
from pool_registry.kinds import field_problems
from pool_registry.literal_keys import find_literal_keys
from pool_registry.mcp_client.server import McpServer
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, Source, UnfitText, refuse
from pool_registry.pasted.keys import VARIABLE, KeyReferences, read_variable
from pool_registry.pasted.mcp_command import adds_server, read_add_commands
from pool_registry.pasted.mcp_link import read_install_link
from pool_registry.pasted.mcp_listing import find_listing, read_listing
from pool_registry.processes.shell_words import list_words

MAX_NAME_CHARS = 24  # as in mcp_client/server.py
MAX_SERVERS = 50
OTHER_DOCUMENTS = frozenset({"openapi", "swagger", "asyncapi", "paths", "skills", "podium_pool"})
HOLDERS = ("mcpServers", "mcp_servers", "context_servers", "servers", "extensions")
CERTAIN = HOLDERS[:3]  # hold servers of MCP and nothing else, so that an address is enough there
COMMAND_LINE = re.compile(r"\A(?:npx|uvx|bunx|pipx run|uv run|deno run|docker run)\s[^\n]{1,2000}\Z")
_FLAG = re.compile(r"--?([\w-]+)")
_PAIR = re.compile(r"((?:--?)?([\w-]+)\s*[=:]\s*(?:Bearer\s+)?)(.+)", re.IGNORECASE | re.DOTALL)


def is_client_settings(pasted: PastedText) -> bool:
    """Whether a text is the settings of a client, a part of them with servers, one server, a server's command, its
    listing, or the command or the link that adds one to a client."""
    by_document = bool(find_listing(pasted.document)) or bool(_find_servers(pasted.document))
    return (
        by_document
        or bool(COMMAND_LINE.match(pasted.text))
        or adds_server(pasted.text)
        or bool(read_install_link(pasted.text))
    )


def read_client_settings(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """A source for each server; one that cannot be used is offered with the reason. Raises InvalidPool."""
    servers = _read_listed(pasted) or _find_servers(pasted.document) or _read_commands(pasted.text)
    if len(servers) > MAX_SERVERS:
        raise InvalidPool([("text", f"it names more than {MAX_SERVERS} servers; paste some of them")])
    if settings.name and len(servers) > 1:
        raise InvalidPool([("name", f"it names {len(servers)} servers, which keep their names; leave the name out")])
    offers, sources = list[Offer](), list[Source]()
    for name, entry in servers.items():
        try:
            sources.append(make_server_source(settings.name or name, entry, settings))
        except UnfitText as reason:
            offers.append(refuse(name or "server", "mcp", str(reason)))
    return Recognition(tuple(offers), tuple(sources))


def _read_listed(pasted: PastedText) -> dict[str, Mapping[str, Any]]:
    """The server of a listing, or of a link. Raises UnfitText."""
    listing = find_listing(pasted.document)
    return dict([read_listing(listing)]) if listing else read_install_link(pasted.text)


def make_server_source(name: str, entry: Mapping[str, Any], settings: ImportSettings) -> Source:
    """The source of one server. Raises UnfitText where it cannot be used."""
    return _make_source(_read_server(name, entry, settings))


def _find_servers(document: JsonValue) -> dict[str, Mapping[str, Any]]:
    """The servers of a document by name; "" is the name of one that has none. None where the document is no such."""
    if not isinstance(document, Mapping) or not OTHER_DOCUMENTS.isdisjoint(document):
        return {}
    for holder in HOLDERS:
        if servers := _keep_servers(document.get(holder), _reaches_server if holder in CERTAIN else _is_server):
            return servers
    inner = document.get("mcp")  # VS Code's settings.json and OpenCode
    if isinstance(inner, Mapping) and (servers := _find_servers(inner)):
        return servers
    if _is_server(document):
        return {str(document.get("name") or ""): document}
    return _keep_servers(document) if all(map(_is_server, document.values())) else {}


def _keep_servers(entries: Any, fits: Callable[[Any], bool] | None = None) -> dict[str, Mapping[str, Any]]:
    """The entries by name, where one of them at least is a server."""
    fits = fits or _is_server
    if isinstance(entries, list):
        return {str(entry.get("name") or index): entry for index, entry in enumerate(entries) if fits(entry)}
    if not isinstance(entries, Mapping) or not any(map(fits, entries.values())):
        return {}
    return {str(name): entry if isinstance(entry, Mapping) else {} for name, entry in entries.items()}


def _reaches_server(entry: Any) -> bool:
    """Whether an entry names a command or an address."""
    if not isinstance(entry, Mapping) or not OTHER_DOCUMENTS.isdisjoint(entry):
        return False
    return _starts_server(entry) or bool(_read_url(entry))


def _is_server(entry: Any) -> bool:
    """Whether an entry is a server wherever it stands: other documents have addresses, too."""
    if not _reaches_server(entry):
        return False
    return (
        _starts_server(entry)
        or bool(entry.keys() & {"type", "transport", "headers", "http_headers"})
        or set(entry) <= {"url", "serverUrl", "httpUrl", "name", "disabled", "enabled"}
    )


def _starts_server(entry: Mapping[str, Any]) -> bool:
    command = entry.get("command", entry.get("cmd"))
    return isinstance(command, str | Mapping) or (isinstance(command, list) and bool(command))


def _read_url(entry: Mapping[str, Any]) -> str:
    return next((url for key in ("url", "serverUrl", "httpUrl", "uri") if isinstance(url := entry.get(key), str)), "")


def _read_commands(text: str) -> Mapping[str, Mapping[str, Any]]:
    return read_add_commands(text) if adds_server(text) else {"": _split_command(text)}


def _split_command(line: str) -> Mapping[str, Any]:
    try:
        command, *args = list_words(line)
    except ValueError as error:
        raise InvalidPool([("text", f"this is no command line: {error}")]) from error
    return {"command": command, "args": args}


def _read_server(name: str, entry: Mapping[str, Any], settings: ImportSettings) -> McpServer:
    """Raises UnfitText."""
    if not _reaches_server(entry):
        raise UnfitText("it names neither a command nor a url")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise UnfitText("it is switched off in these settings; switch it on there and paste them again")
    url = _read_url(entry)
    document = _read_address(name, url, entry, settings) if url else _read_program(name, entry, settings)
    try:
        return McpServer.model_validate(document)
    except ValidationError as error:
        raise UnfitText("; ".join(f"{where}: {what}" for where, what in field_problems(error))[:600]) from error


def _read_address(name: str, url: str, entry: Mapping[str, Any], settings: ImportSettings) -> dict[str, Any]:
    if settings.env:
        raise UnfitText("it is reached by an address and has no environment; leave --env (Environment) out")
    if any(find_literal_keys(url)) or VARIABLE.search(url):
        raise UnfitText("its address holds a key, which is not kept there; send it as a header, NAME: env:KEY")
    short = _shorten(name or url.partition("://")[2].partition("/")[0].partition(":")[0])
    headers = _read_pairs(entry, ("headers", "http_headers")) | dict(settings.headers)
    if settings.key:
        headers["Authorization"] = f"Bearer {settings.key}"
    token = isinstance(entry.get("bearer_token_env_var"), str)  # Codex
    if token:
        headers.setdefault("Authorization", f"Bearer env:{entry['bearer_token_env_var']}")
    keys = {field: settings.keys.refer_setting(f"{short} {field}", field, value) for field, value in headers.items()}
    reach = {"allow_private": True} if settings.private else {}
    return {"name": short, "transport": "http", "url": url, "headers": keys, **reach}


def _read_program(name: str, entry: Mapping[str, Any], settings: ImportSettings) -> dict[str, Any]:
    if settings.headers or settings.key:
        raise UnfitText("it is a program: give its key in its environment, as NAME=env:NAME (--env)")
    command, *args = _read_command(entry)
    env = _read_pairs(entry, ("env", "environment", "envs")) | dict(settings.env)
    env = {field: settings.keys.refer_setting(field, field, value) for field, value in env.items()}
    short = _shorten(name or _name_program([command, *args]))
    command, args, more = _hide_keys(short, [command, *args], settings.keys)
    cwd = entry.get("cwd")
    place = {"cwd": cwd} if isinstance(cwd, str) and cwd else {}
    return {"name": short, "command": command, "args": args, "env": {**more, **env}, **place}


def _read_command(entry: Mapping[str, Any]) -> list[str]:
    """The program and its arguments. Raises UnfitText."""
    command = entry.get("command", entry.get("cmd"))
    if isinstance(command, Mapping):  # Zed
        return _read_command({"command": command.get("path"), "args": command.get("args")})
    args = entry.get("args")
    parts = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    if not all(isinstance(part, str | int | float) for part in parts) or not str(parts[0]).strip():
        raise UnfitText("its command and arguments must be texts")
    words = [str(part) for part in parts]
    if len(words) == 1 and " " in words[0].strip():
        line = _split_command(words[0])
        words = [line["command"], *line["args"]]
    is_windows = [word.lower() for word in words[:2]] in (["cmd", "/c"], ["cmd.exe", "/c"])
    return words[2:] if is_windows and len(words) > 2 else words


def _read_pairs(entry: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for field in fields:
        values = entry.get(field)
        if isinstance(values, Mapping):
            pairs |= {str(key): _write_value(value) for key, value in values.items() if value is not None}
    return pairs


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise UnfitText("its environment and headers must be texts")
    return str(value)


def _hide_keys(name: str, words: list[str], keys: KeyReferences) -> tuple[str, list[str], dict[str, str]]:
    """A command line with its keys in the environment: a shell puts them back, since arguments hold no references."""
    env: dict[str, str] = {}
    parts = [list(_split_word(name, words, index, keys, env)) for index in range(len(words))]
    if not env:
        return words[0], words[1:], env
    line = " ".join("".join(pieces) or "''" for pieces in parts)
    return "sh", ["-c", f"exec {line}"], env


def _split_word(name: str, words: list[str], index: int, keys: KeyReferences, env: dict[str, str]) -> Iterator[str]:
    """One argument as a shell reads it, its key or its variables as variables of `env`."""
    word = words[index]
    flag = _FLAG.fullmatch(words[index - 1]) if index else None
    pair = _PAIR.fullmatch(word)
    if flag and any(find_literal_keys({flag[1]: word})):
        yield _write_variable(keys.refer(f"{name} {flag[1]}", word), env)
    elif pair and any(find_literal_keys({pair[2]: pair[3]})):
        yield shlex.quote(pair[1]) + _write_variable(keys.refer(f"{name} {pair[2]}", pair[3]), env)
    elif any(find_literal_keys(word)):
        yield _write_variable(keys.refer(f"{name} key", word), env)
    else:
        end = 0
        for match in VARIABLE.finditer(word):
            yield shlex.quote(word[end : match.start()]) if match.start() > end else ""
            yield _write_variable(f"env:{read_variable(match)}", env)
            end = match.end()
        yield shlex.quote(word[end:]) if word[end:] else ""


def _write_variable(reference: str, env: dict[str, str]) -> str:
    variable = re.sub(r"\W", "_", reference.partition(":")[2])
    env[variable] = reference
    return f'"${variable}"'


def _name_program(words: list[str]) -> str:
    """`npx -y @acme/server-weather` is "server-weather"."""
    runners = {"npx", "uvx", "uv", "pipx", "python", "python3", "node", "bunx", "docker", "run", "deno"}
    names = [word for word in words if not word.startswith("-") and word.rpartition("/")[2] not in runners]
    return (names[0] if names else words[0]).rstrip("/").rpartition("/")[2].partition("@")[0] or "server"


def _shorten(name: str) -> str:
    return worker_name(name or "server")[:MAX_NAME_CHARS].rstrip("_-")


def _make_source(server: McpServer) -> Source:
    from pool_registry.imports.mcp import list_tools

    document = server.model_dump(mode="json")
    if left := next(find_literal_keys(document), None):
        raise UnfitText(f"{left[0]}: {left[1]}, and cannot be kept there; write env:NAME in its place")
    action = f"Starts {server.starts} on this machine, with your rights" if server.starts else f"Asks {server.url}"
    return Source(server.name, action, {"source": "mcp", "server": document}, lambda: list_tools(server))

"""The commands behind the importers: look at a source, choose from what it offers, add, refresh.

Looking adds nothing. An MCP server over stdio runs other people's code on this machine, as the person who started the
studio; the page says so before it asks. A Python function runs in the sandbox unless an owner chooses otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer, shorten_prefix, worker_name
from pool_registry.imports.mcp import ToolChange
from pool_registry.kinds import field_problems, open_worker
from pool_registry.pool import Pool
from pool_registry.processes.function_process import FunctionPermissions
from pool_registry.processes.shell_words import list_words
from pool_registry.schemas.result_outline import format_fields
from pool_registry.validation_words import describe_problems
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpServer
from studio.access.pool_rights import check_source, check_worker
from studio.frame.commands import Fields, PageCommands, PageReply, command, table, tables, text, words
from studio.pages.pool.adding.gallery_commands import add_workers
from studio.pages.pool.edits import Edit
from studio.pages.pool.forms import parse_worker
from studio.pages.pool.schema import OfferDocument
from studio.runtime import Runtime

MAX_SERVER_NAME_CHARS = 24  # as in workers/mcp.py
_RUNNERS = {"npx", "uvx", "uv", "pipx", "python", "python3", "node", "bunx", "docker", "run", "deno"}
_PLAIN = re.compile(r"^(@?[a-z0-9][\w.@/-]*)$", re.IGNORECASE)


class ImportCommands(PageCommands):
    """Sources of workers, one command to look and one to add."""

    def __init__(self, runtime: Runtime, edit: Edit) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools
        self._edit = edit
        self._sources: dict[str, Callable[[Mapping[str, Any]], list[Offer]]] = {
            "mcp": self._from_mcp,
            "openapi": self._from_openapi,
            "function": self._from_function,
            "space": self._from_space,
        }

    @command("editor")
    def _look(self, fields: Fields) -> PageReply:
        """What a source offers, ready or with the reason why not."""
        source = self._sources.get(words(fields, "source"))
        if source is None:
            raise InvalidPool([("source", f"there is no importer {fields.get('source')!r}")])
        check_source(fields)
        offers = source(fields)
        return PageReply(fields={"offers": [build_offer(offer).to_json() for offer in offers]})

    @command("editor", edits_pool=True)
    def _add_workers(self, fields: Fields) -> PageReply:
        """Add chosen offers, all in one new version."""
        specs, names = [parse_worker(worker) for worker in tables(fields, "workers")], list[str]()
        reply = self._edit(fields, lambda pool: add_workers(pool, specs, names), "")
        return reply.extend(f"Added {names[0]}" if len(names) == 1 else f"Added {len(names)} workers", added=names)

    @command("editor", edits_pool=True)
    def _refresh(self, fields: Fields) -> PageReply:
        """Ask a worker's source again: arguments follow it, names, words and limits stay."""
        pool = self._pools.latest(text(fields, "pool")).pool
        spec = pool.worker(text(fields, "name"))
        check_worker(spec, None)
        if spec.kind == "mcp":
            return self._refresh_mcp(fields, pool, spec)
        if spec.kind == "function":
            return self._refresh_function(fields, pool, spec)
        raise InvalidPool([("", f"{spec.name} was not imported from something that can be asked again")])

    def _refresh_mcp(self, fields: Fields, pool: Pool, spec: WorkerSpec) -> PageReply:
        """Refresh all tools of a server at once; those that it no longer has are switched off."""
        from pool_registry.imports.mcp import refresh

        config = table(spec.config, "server")
        server = _server(config)
        workers = [other for other in pool.workers if other.kind == "mcp" and other.config.get("server") == config]
        refreshed = self._runtime.run(refresh(server, workers))
        kept = {worker.name: worker for worker in refreshed.specs}
        changed = pool
        for worker in workers:
            fresh = kept.get(worker.name) or worker.model_copy(update={"enabled": False})
            changed = changed.with_worker(fresh, worker.name)
        message = "; ".join(f"{change.tool}: {_describe(change)}" for change in refreshed.changes)
        # The server was asked for the pool as it was then: what has been edited since is merged, or refused.
        reply = self._edit(fields, lambda _pool: changed, pool.hash)
        return reply.extend(message or f"Nothing has changed at {server.name}")

    def _refresh_function(self, fields: Fields, pool: Pool, spec: WorkerSpec) -> PageReply:
        permissions = spec.config.get("permissions")
        held = FunctionPermissions.model_validate(permissions) if permissions is not None else None
        offer = self._list_functions(text(spec.config, "target"), held, words(spec.config, "python"))[0]
        if offer.problem:
            raise InvalidPool([("", f"{spec.name}: {offer.problem}")])
        fresh = spec.model_copy(update={"config": {**spec.config, **offer.spec.config}})
        message = (
            f"{spec.name} is unchanged at its source" if fresh == spec else f"{spec.name} follows its source again"
        )
        changed = pool.with_worker(fresh, spec.name)
        return self._edit(fields, lambda _pool: changed, pool.hash).extend(message)

    def _from_mcp(self, fields: Fields) -> list[Offer]:
        from pool_registry.imports.mcp import list_tools

        return self._runtime.run(list_tools(_server(parse_server(table(fields, "server")))))

    def _from_openapi(self, fields: Fields) -> list[Offer]:
        from pool_registry.imports.openapi import operations

        url, document = words(fields, "url"), words(fields, "text")
        if not url and not document:
            raise InvalidPool([("text", "paste a document, choose a file or give a URL")])
        private = fields.get("allow_private") is True
        if not document:
            document = self._runtime.run(operations.fetch(url, private))
        return operations.list_operations(
            document,
            base_url=words(fields, "base_url"),
            api_key=words(fields, "api_key"),
            key_header=words(fields, "key_header"),
            source=url,
            allow_private=private,
        )

    def _from_function(self, fields: Fields) -> list[Offer]:
        """What a file or module offers: in the sandbox with the permissions that are given, or as the person who runs
        the studio where `as_you` says so."""
        if fields.get("as_you") is True:
            return self._list_functions(text(fields, "target"), None, words(fields, "python"))
        try:
            permissions = FunctionPermissions.model_validate(fields.get("permissions") or {})
        except ValidationError as error:
            raise InvalidPool([("permissions", describe_problems(error))]) from error
        return self._list_functions(text(fields, "target"), permissions, words(fields, "python"))

    def _list_functions(self, target: str, permissions: FunctionPermissions | None, python: str) -> list[Offer]:
        from pool_registry.imports.functions import list_functions

        return self._runtime.run(list_functions(target, python, permissions))

    def _from_space(self, fields: Fields) -> list[Offer]:
        from pool_registry.imports.space import list_endpoints

        private = fields.get("allow_private") is True
        token = words(fields, "token")
        return self._runtime.run(list_endpoints(text(fields, "space"), token=token, allow_private=private))


def parse_server(form: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP server as the dialog describes it: a command line, and lines of environment or headers.

    Raises InvalidPool with the field that cannot be read.
    """
    server: dict[str, Any]
    if words(form, "transport") == "http":
        url = words(form, "url")
        server = {"transport": "http", "url": url, "headers": read_pairs(form, "headers", ":")}
        guess = url.partition("://")[2].partition("/")[0].partition(":")[0]
    else:
        line = words(form, "command")
        try:
            parts = list(list_words(line))
        except ValueError as error:
            raise InvalidPool([("command", f"this is no command line: {error}")]) from error
        if not parts:
            raise InvalidPool([("command", "this is missing")])
        server = {"transport": "stdio", "command": parts[0], "args": parts[1:], "env": read_pairs(form, "env", "=")}
        if words(form, "cwd"):
            server["cwd"] = words(form, "cwd")
        guess = _program(parts)
    if form.get("allow_private") is True:
        server["allow_private"] = True
    name = words(form, "name") or shorten_prefix(worker_name(guess), MAX_SERVER_NAME_CHARS).rstrip("_-")
    return {"name": name, **server}


def _server(described: Mapping[str, Any]) -> McpServer:
    """Raises InvalidPool with every field that is wrong."""
    try:
        return McpServer.model_validate(dict(described))
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error


def _describe(change: ToolChange) -> str:
    words = {"added": "new there; import it to use it", "removed": "gone there, switched off here"}
    return words.get(change.what) or f"changed ({change.detail})"


def _program(parts: list[str]) -> str:
    """What a person would call the server: `npx -y @acme/server-weather` is "server-weather"."""
    arguments = [part for part in parts if not part.startswith("-") and Path(part).name not in _RUNNERS]
    program = next((part for part in arguments if _PLAIN.match(part) or "/" in part), parts[0])
    return Path(program).stem.partition("@")[0] or "server"


def read_pairs(form: Mapping[str, Any], field: str, sign: str) -> dict[str, str]:
    """Parse lines of `name<sign>value`. Raises InvalidPool naming the line that is none."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(words(form, field).splitlines(), start=1):
        name, separator, value = line.partition(sign)
        if line.strip() and not (separator and name.strip()):
            raise InvalidPool([(field, f"line {number} is not NAME{sign}value")])
        if line.strip():
            pairs[name.strip()] = value.strip()
    return pairs


def list_mended(config: Mapping[str, JsonValue]) -> list[str]:
    """What an importer changed in the schema of a worker's arguments."""
    notes = config.get("mended")
    return [str(note) for note in notes] if isinstance(notes, list | tuple) else []


def build_offer(offer: Offer) -> OfferDocument:
    """An offer as the page lists it."""
    parameters = offer.spec.config.get("parameters")
    return OfferDocument(
        spec=offer.spec,
        problem=offer.problem,
        mended=[] if offer.problem else list_mended(offer.spec.config),
        may_have_effects=not offer.problem and offer.spec.effects == "auto" and not open_worker(offer.spec).only_reads,
        parameters=parameters if isinstance(parameters, dict) else {},
        returns="" if offer.problem else format_fields(open_worker(offer.spec).output_schema),
    )

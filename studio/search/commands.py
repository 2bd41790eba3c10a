"""The one command of the search that every page opens by Ctrl+K: /api/pages/search/find."""

from __future__ import annotations

from fastapi import APIRouter

from pool_registry.errors import InvalidPool
from studio.frame.commands import Fields, PageCommands, PageReply, command, command_routes, words
from studio.runtime import Runtime
from studio.search.find import find_places

MAX_CHARS = 1000


class SearchCommands(PageCommands):
    """Finds what has a name in a data folder."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("viewer")
    def _find(self, fields: Fields) -> PageReply:
        text = words(fields, "text")
        if len(text) > MAX_CHARS:
            raise InvalidPool([("text", f"search for {MAX_CHARS:,} characters at most")])
        hits = find_places(self._runtime, text)
        return PageReply("", {"hits": [hit.to_json() for hit in hits]})


def search_routes(runtime: Runtime) -> APIRouter:
    """The command, below /api/pages/search."""
    return command_routes("search", SearchCommands(runtime))

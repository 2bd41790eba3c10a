"""One session per MCP server and event loop, shared by all workers that name the same server.

It connects at the first call, stays connected while any worker needs it, connects again after the server has
died, and is closed with the last worker.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.mcp_client.server import McpServer

if TYPE_CHECKING:
    import mcp_types

    from pool_registry.mcp_client.connection import Connection

T = TypeVar("T")
_sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Session]] = WeakKeyDictionary()


class Session:
    """The calls to one server. Raises WorkerFault, and nothing else, for what a server does wrong."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._connection: Connection | None = None
        self.users = 0

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> mcp_types.CallToolResult:
        """The tool's result, which may be an error of the tool's own (`is_error`)."""
        return await self._ask(lambda connection: connection.call(tool, dict(arguments)))

    async def tools(self) -> list[mcp_types.Tool]:
        """Every tool that the server lists now."""
        return await self._ask(lambda connection: connection.tools())

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _ask(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        from pool_registry.mcp_client.connection import SessionLost

        for _ in range(2):
            connection = await self._connect()
            try:
                return await work(connection)
            except SessionLost:  # nothing has been run: ask again, in a new session
                await connection.close()
        raise WorkerFault("connection", "the server forgets its sessions at once", retryable=True)

    async def _connect(self) -> Connection:
        if self._connection is None or self._connection.over:
            from pool_registry.mcp_client.connection import Connection

            self._connection = Connection(self._server)
        return self._connection


async def borrow(server: McpServer) -> Session:
    """Return this event loop's session for `server`. Each borrower must call `give_back`."""
    # The SDK takes 1.6 s to import; that must not hold up the loop.
    await asyncio.to_thread(importlib.import_module, "pool_registry.mcp_client.connection")
    loop = asyncio.get_running_loop()
    for closed in [other for other in _sessions if other.is_closed()]:  # a session keeps its loop alive
        del _sessions[closed]
    sessions = _sessions.setdefault(loop, {})
    session = sessions.setdefault(server.model_dump_json(), Session(server))
    session.users += 1
    return session


async def give_back(server: McpServer, session: Session) -> None:
    """Close the session when no other borrower has it."""
    session.users -= 1
    if session.users == 0:
        del _sessions[asyncio.get_running_loop()][server.model_dump_json()]
        await session.close()

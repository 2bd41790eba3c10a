"""One connection to an MCP server, from its start to its end.

The SDK wants a connection to be entered and left by the same task, so each has a task of its own; calls come
from any task of the same event loop. Importing this file imports the SDK (1.6 s): see session.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import mcp_types
from mcp import Client, MCPError
from pydantic import ValidationError

from pool_registry.actions import clean_text
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.mcp_client.exchange import Exchange, exchange
from pool_registry.mcp_client.http import HttpLink
from pool_registry.mcp_client.listed_tools import TolerantStream
from pool_registry.mcp_client.server import McpServer
from pool_registry.mcp_client.stdio import TOO_LARGE, StdioLink
from pool_registry.secrets import redact
from pool_registry.validation_words import describe_problems, drop_library_words

CONNECT_S = 60.0  # to start and to introduce itself; npx and uvx may have to fetch a server first
LIST_S = 15.0
MAX_PAGES = 100
MAX_TOOLS = 1000
MAX_SAID = 800
# What the SDK says where server and client have no version in common.
_FOREIGN_VERSION = re.compile(r"Unsupported protocol version from the server: ?(\S*)|\(server: (\[[^\]]*\])")
T = TypeVar("T")


class SessionLost(Exception):
    """The server has lost the session, as after a restart behind its URL. The call was not run."""


class Connection:
    """Opened by its making. Raises WorkerFault, or SessionLost, for whatever a server does wrong."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._over = asyncio.Event()
        self._link = StdioLink(server, self._over) if server.transport == "stdio" else HttpLink(server)
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._opened.add_done_callback(lambda opened: opened.cancelled() or opened.exception())  # it is told elsewhere
        self._task = asyncio.ensure_future(self._run())

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""
        return self._over.is_set() or self._task.done()

    async def call(self, tool: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        """Call a tool; its result may be an error of the tool's own (`is_error`)."""
        client = await asyncio.shield(self._opened)
        return await self._ask(lambda: client.call_tool(tool, arguments))

    async def tools(self) -> list[mcp_types.Tool]:
        """List the tools that the server has now."""
        client = await asyncio.shield(self._opened)
        try:
            async with asyncio.timeout(LIST_S):
                return await self._ask(lambda: _all_tools(client))
        except TimeoutError:
            raise WorkerFault("connection", f"no list of tools within {LIST_S:g} s", retryable=True) from None

    async def close(self) -> None:
        """End the connection, and the server if it was started here."""
        self._over.set()
        if not self._opened.done():
            self._task.cancel()  # the caller of the handshake has gone
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            async with self._link.open() as (incoming, outgoing):
                await self._serve(nullcontext((TolerantStream(incoming), outgoing)))
        except Exception as error:  # noqa: BLE001  the SDK's task groups may end in anything, in groups
            cause = _innermost(error)
            broke = WorkerFault("connection", f"the connection broke: {_words(cause)}", retryable=True)
            self._fail(cause if isinstance(cause, WorkerFault) else broke)
        finally:
            self._over.set()
            self._fail(WorkerFault("connection", "the connection was closed", retryable=True))

    async def _serve(self, transport: Any) -> None:
        """Initialize the connection, then wait for its end."""
        note = Exchange()
        exchange.set(note)
        info = mcp_types.Implementation(name="podium", version="1")
        try:
            async with asyncio.timeout(CONNECT_S) as clock, Client(transport, client_info=info, cache=None) as client:
                clock.reschedule(None)
                self._opened.set_result(client)
                await self._over.wait()
        except Exception as error:
            if self._opened.done():
                raise
            raise await self._explain_refusal(_innermost(error), note) from error

    async def _explain_refusal(self, error: BaseException, note: Exchange) -> WorkerFault:
        """Explain why the connection failed."""
        if note.fault is not None:
            return note.fault
        if isinstance(error, TimeoutError):
            sentence = f"no handshake within {CONNECT_S:g} s: {await self._link.trouble()}"
            return WorkerFault("connection", sentence, retryable=True)
        if self._over.is_set() or (isinstance(error, MCPError) and error.code == mcp_types.CONNECTION_CLOSED):
            return WorkerFault("connection", await self._link.trouble(), retryable=True)
        if version := _FOREIGN_VERSION.search(str(error)):
            return WorkerFault("invalid_response", _describe_version((version[1] or version[2] or "")[:80]))
        return WorkerFault("invalid_response", f"the handshake failed: {_words(error)}; is this an MCP server?")

    def _fail(self, fault: WorkerFault) -> None:
        if not self._opened.done():
            self._opened.set_exception(fault)

    async def _ask(self, work: Callable[[], Awaitable[T]]) -> T:
        note = Exchange()
        token = exchange.set(note)
        try:
            return await work()
        except MCPError as error:
            raise await self._fault(error, note) from error
        except (RuntimeError, ValidationError) as error:  # the SDK's words for an answer against the protocol
            raise WorkerFault("invalid_response", f"the server's answer is not valid: {_words(error)}") from error
        finally:
            exchange.reset(token)

    async def _fault(self, error: MCPError, note: Exchange) -> Exception:
        reason = _words(error)
        if note.session_lost:
            return SessionLost(reason)
        if note.fault is not None:
            return note.fault
        if error.code == mcp_types.CONNECTION_CLOSED:
            self._over.set()
            return WorkerFault("connection", f"the connection is lost: {await self._link.trouble()}", retryable=True)
        if error.code == mcp_types.INVALID_PARAMS:
            return BadCall(reason)
        return WorkerFault(_CODES.get(error.code, "server_error"), reason)


_CODES = {
    TOO_LARGE: "output_too_large",
    mcp_types.METHOD_NOT_FOUND: "not_found",
    mcp_types.PARSE_ERROR: "invalid_response",
    mcp_types.INVALID_REQUEST: "invalid_response",
}


async def _all_tools(client: Client) -> list[mcp_types.Tool]:
    """Fetch every page of the list of tools. Raises WorkerFault when it does not end."""
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if len(tools) > MAX_TOOLS:
            raise WorkerFault("invalid_response", f"the server lists more than {MAX_TOOLS:,} tools")
        if not cursor:  # some end the list by an empty one
            return tools
    raise WorkerFault("invalid_response", f"the server's list of tools has more than {MAX_PAGES} pages")


def _describe_version(version: str) -> str:
    spoken = ", ".join(mcp_types.version.KNOWN_PROTOCOL_VERSIONS)
    theirs = f"speaks version {version}" if version else "names no version"
    what = f"the server {theirs} of the protocol, and Podium speaks {spoken}"
    return f"{what}; use a release of the server that speaks one of them"


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(error: BaseException) -> str:
    """Format an error's message for a person: on one line, without secrets."""
    written = describe_problems(error) if isinstance(error, ValidationError) else drop_library_words(str(error))
    text = " ".join(written.split()) or type(error).__name__
    return redact(clean_text(text))[:MAX_SAID]

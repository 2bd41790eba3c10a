"""MCP over a program's standard input and output: a transport for the SDK's client.

Not the SDK's own `stdio_client`, for three reasons: that reads a line of any length (a server that never ends
its line takes all memory), it leaves the server running when the studio is killed and the server does not
mind a closed input, and its errors do not hold what the server said on standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from pool_registry.actions import clean_text
from pool_registry.mcp_client.server import McpServer
from pool_registry.processes.child_process import Child, start
from pool_registry.secrets import redact, resolve_references

MAX_BYTES = 8 * 2**20  # of one message
TOO_LARGE = -32099  # JSON-RPC leaves -32000 to -32099 to implementations
_EDGE_BYTES = 300  # of an overlong message, where its id is looked for
_ID = re.compile(rb'"id"\s*:\s*(?:"([^"\\]{1,100})"|(\d{1,15}))')


class StdioLink:
    """The transport to a server on this machine. `over` is set once it can send nothing more."""

    def __init__(self, server: McpServer, over: asyncio.Event) -> None:
        self._server = server
        self._over = over
        self._child: Child | None = None
        self._noise = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start the server and yield the two streams that the SDK's client needs. Raises WorkerFault."""
        server = self._server
        env = {**get_default_environment(), **resolve_references(server.env)}
        child = self._child = await start([server.command, *server.args], env, server.cwd)
        arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
        reader = asyncio.ensure_future(self._read(child.stdout, arriving))
        writer = asyncio.ensure_future(self._write(child.stdin, leaving))
        try:
            yield incoming, outgoing
        finally:
            incoming.close()
            outgoing.close()
            with anyio.CancelScope(shield=True):
                await child.end()
                reader.cancel()
                writer.cancel()
                await asyncio.gather(reader, writer, return_exceptions=True)

    async def trouble(self) -> str:
        """Describe a server that does not answer, for an error message."""
        if self._child is None:
            return "the server did not start"
        if self._over.is_set() or not self._child.alive:
            return f"the server {await self._child.ending()}{self._noise}"
        return f"the server gives no valid answer{self._child.last_words()}{self._noise}"

    async def _read(
        self, stdout: asyncio.StreamReader, arriving: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session has gone
            async with arriving:
                async for line in _lines(stdout):
                    message = self._message(line)
                    if message is not None:
                        await arriving.send(SessionMessage(message))
        self._over.set()

    def _message(self, line: bytes | Overlong) -> mcp_types.JSONRPCMessage | None:
        """Parse a line; None for noise (print() in a server), which is reported when nothing else comes."""
        if isinstance(line, Overlong):
            return line.as_error()
        if not line.strip():
            return None
        try:
            return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            start = redact(clean_text(" ".join(line[:200].decode("utf-8", "replace").split())))
            self._noise = f". It writes lines to standard output that are no JSON-RPC, such as: {start}"
            return None

    async def _write(self, stdin: asyncio.StreamWriter, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with contextlib.suppress(ConnectionError):  # the reader notices the end, and says so
            async with leaving:
                async for message in leaving:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stdin.write(text.encode() + b"\n")
                    await stdin.drain()


class Overlong:
    """A line that was discarded but for its two ends."""

    def __init__(self, head: bytes, tail: bytes) -> None:
        match = _ID.search(head) or _ID.search(tail[-_EDGE_BYTES:])
        self._id = None if match is None else (match[1].decode() if match[1] else int(match[2]))

    def as_error(self) -> mcp_types.JSONRPCError | None:
        """Build an error in place of the answer, so that its caller does not wait for it."""
        if self._id is None:
            return None
        error = mcp_types.ErrorData(code=TOO_LARGE, message=f"the answer is larger than {MAX_BYTES:,} bytes")
        return mcp_types.JSONRPCError(jsonrpc="2.0", id=self._id, error=error)


async def _lines(stdout: asyncio.StreamReader) -> AsyncIterator[bytes | Overlong]:
    """Yield lines, or the ends of those over MAX_BYTES. Holds little more than MAX_BYTES in memory."""
    line = bytearray()
    head: bytes | None = None  # of a line that has grown too long
    while part := await stdout.read(2**16):
        *ended, rest = part.split(b"\n")
        for end in ended:
            line += end
            yield bytes(line) if head is None else Overlong(head, bytes(line))
            line, head = bytearray(), None
        line += rest
        if head is None and len(line) > MAX_BYTES:
            head = bytes(line[:_EDGE_BYTES])
        if head is not None:
            del line[:-_EDGE_BYTES]

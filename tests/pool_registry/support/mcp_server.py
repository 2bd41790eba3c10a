"""A real MCP server from the official SDK, for the tests: over stdio, or `http PORT`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.utilities.types import Image
from mcp_types import ToolAnnotations
from pydantic import BaseModel

app = MCPServer("tests")
cancelled: list[str] = []
slow_ones: list[str] = []


class Weather(BaseModel):
    city: str
    degrees: float


@app.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def weather(city: str) -> Weather:
    return Weather(city=city, degrees=21.5)


@app.tool()
async def slow(seconds: float, word: str = "done") -> str:
    slow_ones.append(word)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        cancelled.append(word)
        raise
    return word


@app.tool()
def running() -> list[str]:
    return slow_ones


@app.tool()
def was_cancelled() -> list[str]:
    return cancelled


@app.tool()
def pid() -> int:
    return os.getpid()


@app.tool()
def fail(secret: str = "") -> str:
    raise ToolError(f"no luck today {os.environ.get('TESTS_TOKEN', '')}{secret}")


@app.tool()
def picture() -> Image:
    return Image(data=b"\x89PNG" + bytes(4996), format="png")


@app.tool()
def flood(chars: int) -> str:
    return "x" * chars


@app.tool()
def environment() -> dict[str, str]:
    return dict(os.environ)


@app.tool()
def leave_a_daemon() -> int:
    """A process that leaves group and session, and does not mind a closed input."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True).pid


def main() -> None:
    if sys.argv[1:2] == ["http"]:
        app.run(transport="streamable-http", port=int(sys.argv[2]))
    app.run(transport="stdio")


if __name__ == "__main__":
    main()

"""The orchestrator as a tool for other agents: an MCP server with one tool, `ask`.

The official SDK speaks the protocol, over stdio or streamable HTTP. A cancelled call cancels its episode.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from studio.frame.sse import KEEP_ALIVE_S
from studio.model_server.chat_completions import answer_text
from studio.model_server.errors import ApiError, failure_of
from studio.model_server.progress import Progress
from studio.model_server.request import RequestLimits
from studio.model_server.service import Service


class Asked(BaseModel):
    """What a call returns."""

    answer: str
    trace: str = Field(description="The id of the trace: the studio opens it at /?episode=ID.")
    steps: int = Field(description="How many calls of workers it took.")
    tokens: int
    cost: float = Field(description="US dollars.")


def mcp_server(service: Callable[[], Service]) -> MCPServer[None]:
    """The server. `service` is asked for at each call, when the event loop runs."""
    server: MCPServer[None] = MCPServer(
        "podium",
        instructions="Podium answers a question with a whole pool of agents and tools. Use `ask`.",
        log_level="WARNING",
    )

    @server.tool()
    async def ask(query: str, context: Context[None]) -> Asked:
        """Ask the orchestrator: it decides which agents and tools of its pool to call, and answers."""
        try:
            running = service().start_episode(query, RequestLimits(), _user(context))
        except ApiError as error:
            raise ToolError(str(error)) from error
        progress = Progress()
        try:
            async for event in running.events(KEEP_ALIVE_S):
                line = progress.line(event) if event is not None else None
                if line is not None:
                    await context.report_progress(progress.done, progress.known or None, line.rstrip())
            episode, ended = await running.result()
        finally:
            running.stop()
        failure = failure_of(ended, running.id)
        if failure is not None:
            raise ToolError(f"{failure.code}: {failure}")
        if ended.outcome != "answered":
            raise ToolError(f"{ended.outcome}: {ended.reason} The trace is {running.id}.")
        usage = episode.usage
        return Asked(
            answer=answer_text(ended),
            trace=running.id,
            steps=len(episode.steps),
            tokens=usage.tokens,
            cost=usage.cost,
        )

    return server


def _user(context: Context[None]) -> str:
    """Whose token came with the HTTP request; "" over stdio."""
    request = context.request_context.request
    return str(getattr(getattr(request, "state", None), "user", "")) if request is not None else ""

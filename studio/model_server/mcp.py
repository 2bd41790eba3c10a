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
from studio.model_server.errors import ApiError, episode_error
from studio.model_server.progress import EpisodeProgress
from studio.model_server.request import RequestLimits
from studio.model_server.service import Service


class AskResult(BaseModel):
    """What the tool `ask` returns."""

    answer: str
    trace: str = Field(description="The id of the trace: the studio opens it at /?episode=ID.")
    steps: int = Field(description="How many calls of workers it took.")
    tokens: int
    cost: float = Field(description="US dollars.")


def create_mcp_server(service: Callable[[], Service]) -> MCPServer[None]:
    """Create the MCP server. `service` is called with each tool call: it exists only once the event loop runs."""
    server: MCPServer[None] = MCPServer(
        "podium",
        instructions="Podium answers a question with a whole pool of agents and tools. Use `ask`.",
        log_level="WARNING",
    )

    @server.tool()
    async def ask(query: str, context: Context[None]) -> AskResult:
        """Ask the orchestrator: it decides which agents and tools of its pool to call, and answers."""
        try:
            served = service().start_episode(query, RequestLimits(), _token_owner(context))
        except ApiError as refusal:
            raise ToolError(str(refusal)) from refusal
        progress = EpisodeProgress()
        try:
            async for event in served.events(KEEP_ALIVE_S):
                line = progress.describe(event) if event is not None else None
                if line is not None:
                    await context.report_progress(progress.done, progress.total or None, line.rstrip())
            episode, ended = await served.result()
        finally:
            served.stop()
        error = episode_error(ended, episode, served.pool)
        if error is not None:
            raise ToolError(f"{error.code}: {error}")
        if ended.outcome != "answered":
            raise ToolError(f"{ended.outcome}: {ended.reason} The trace is {served.id}.")
        usage = episode.usage
        return AskResult(
            answer=answer_text(ended),
            trace=served.id,
            steps=len(episode.steps),
            tokens=usage.tokens,
            cost=usage.cost,
        )

    return server


def _token_owner(context: Context[None]) -> str:
    """The owner of the HTTP request's token; "" over stdio."""
    request = context.request_context.request
    return str(getattr(getattr(request, "state", None), "user", "")) if request is not None else ""

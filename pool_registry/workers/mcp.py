"""Kind `mcp`: one tool of an MCP server, over stdio or streamable HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import WorkerFault
from pool_registry.mcp_client.copied_server import move_server
from pool_registry.mcp_client.listed_tools import read_input_schema
from pool_registry.mcp_client.server import McpServer
from pool_registry.mcp_client.session import Session, borrow, give_back
from pool_registry.schemas.argument_schema import ArgumentsSchema, SchemaNotes, describe_changes
from pool_registry.schemas.mend_schema import mend_schema
from pool_registry.schemas.result_outline import ResultSchema
from pool_registry.strict_model import StrictModel
from pool_registry.validation_words import drop_library_words
from pool_registry.worker import Call, Copier, Reply, Worker, WorkerSpec

if TYPE_CHECKING:
    import mcp_types

__all__ = ["Mcp", "McpConfig", "McpServer"]

MAX_SAID = 900


class McpConfig(StrictModel):
    server: McpServer
    tool: str = Field(min_length=1, max_length=256, description="The tool's name at the server.")
    parameters: ArgumentsSchema
    returns: ResultSchema
    mended: SchemaNotes


class Mcp(Worker[McpConfig]):
    """Calls share one session per server, which starts with the first of them."""

    label = "MCP tool"
    summary = "A tool of an MCP server: a program on this machine, or a URL."
    icon = "M9 3v5 M15 3v5 M6 8h12v4a6 6 0 0 1-12 0z M12 18v3"
    described_by = "name"
    Config = McpConfig
    remote = True

    def __init__(self, spec: WorkerSpec, config: McpConfig) -> None:
        super().__init__(spec, config)
        self.returns = config.returns
        self._session: Session | None = None

    @classmethod
    def runs(cls, config: McpConfig) -> str:
        return f"the program {config.server.starts}" if config.server.starts else ""

    @classmethod
    def move_state(cls, config: McpConfig, copier: Copier) -> Mapping[str, JsonValue] | None:
        """The files and folders that its command names. A server behind a URL has none."""
        server = move_server(config.server, copier)
        return None if server is None else {"server": server.model_dump(mode="json")}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    async def call(self, call: Call) -> Reply:
        from pool_registry.mcp_client.results import text_of, value_of

        session = await self._borrow_session()
        try:
            result = await session.call(self.config.tool, call.arguments)
        except WorkerFault as fault:
            if fault.code in ("bad_arguments", "not_found"):
                await self._refuse_if_vanished(session)
            raise
        if result.is_error:
            await self._refuse_if_vanished(session)
            message = drop_library_words(text_of(result) or as_text(value_of(result)))
            raise WorkerFault("tool_error", message[:MAX_SAID] or "the tool failed and did not say why")
        return Reply(value_of(result))

    async def check(self) -> str:
        tools = await (await self._borrow_session()).tools()
        tool = self._own(tools)
        changed = describe_changes(self.config.parameters, mend_schema(read_input_schema(tool)).schema)
        state = f"answers; {len(tools)} tools"
        return f"{state}; the arguments of {tool.name} have changed ({changed}): refresh it" if changed else state

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await give_back(self.config.server, session)

    async def _borrow_session(self) -> Session:
        if self._session is None:
            session = await borrow(self.config.server)
            if self._session is None:
                self._session = session
            else:  # another call was as quick
                await give_back(self.config.server, session)
        return self._session

    async def _refuse_if_vanished(self, session: Session) -> None:
        """Raise when the server no longer lists the tool: errors of the call itself do not say so reliably."""
        try:
            tools = await session.tools()
        except WorkerFault:
            return  # the first fault tells more
        self._own(tools)

    def _own(self, tools: list[mcp_types.Tool]) -> mcp_types.Tool:
        for tool in tools:
            if tool.name == self.config.tool:
                return tool
        has = ", ".join(tool.name for tool in tools[:12]) or "none"
        raise WorkerFault("not_found", f"the server no longer has a tool {self.config.tool!r}; it has: {has}")

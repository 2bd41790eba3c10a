"""`podium mcp`: the studio's traces, jobs and tasks as tools for a coding agent."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from studio.cli.options import HomeOption, open_prepared_store


def mcp(
    write: Annotated[
        bool, typer.Option("--write", help="It may also add tasks, and propose jobs, which wait for a person.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """An MCP server on stdin and stdout for a coding agent: it reads traces, jobs, tasks and results. To serve a pool
    as a tool, see podium serve --mcp."""
    from studio.coding_agent import create_workshop_server

    with open_prepared_store(home) as store:
        asyncio.run(create_workshop_server(store, changes=write).run_stdio_async())

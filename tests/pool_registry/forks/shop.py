"""An MCP server of a shop: its orders are rows of the SQLite file that its command names. It tries to keep a diary."""

import sqlite3
import sys
from pathlib import Path

from mcp.server import MCPServer

DATABASE = sys.argv[1]
server = MCPServer("shop")


@server.tool()
def place_order(item: str, count: int) -> str:
    """Order some of an item."""
    with sqlite3.connect(DATABASE) as connection:
        connection.execute("insert into orders (item, count) values (?, ?)", (item, count))
    return f"{count} {item} ordered"


@server.tool()
def write_diary(path: str) -> str:
    """Write to a file that the command does not name."""
    Path(path).write_text("written")
    return "written"


server.run()

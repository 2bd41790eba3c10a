"""An MCP server of this machine on copies of the files and folders that its command names.

It runs behind a fence (processes/write_fence.py) that lets it change the copies alone, whatever else it would write to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pool_registry.mcp_client.server import McpServer
from pool_registry.processes import write_fence
from pool_registry.secrets import REFERENCE
from pool_registry.worker import Copier

CODE = {
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".sh",
    ".jar",
    ".rb",
    ".exe",
    "",
}  # what a command runs and does not change


def move_server(server: McpServer, copier: Copier) -> McpServer | None:
    """The server on copies; None where its command names nothing that could be copied. Raises CannotFork."""
    state = list(_list_state(server)) if server.starts else []
    if not state:
        return None
    for path in state:
        copier.add(path)
    folder = Path(server.cwd).expanduser() if server.cwd else Path.cwd()
    args = [_point_at_copy(text, folder, copier) for text in server.args]
    env = {name: _point_at_copy(text, folder, copier) for name, text in server.env.items()}
    fenced = (write_fence.__file__, str(copier.folder), str(copier.scratch), "--", server.command, *args)
    return server.model_copy(
        update={
            "command": sys.executable,
            "args": tuple(fenced),
            "env": {**env, "TMPDIR": str(copier.scratch)},
            "cwd": str(copier.find(folder) or folder) if server.cwd else server.cwd,
        }
    )


def _list_state(server: McpServer) -> Iterator[Path]:
    """The folders and files of data that the command, its environment or its folder names."""
    folder = Path(server.cwd).expanduser() if server.cwd else Path.cwd()
    if server.cwd and folder.is_dir():
        yield folder
    for text in (*server.args, *server.env.values()):
        path = _read_path(text, folder)
        if path is not None and (path.is_dir() or path.suffix.lower() not in CODE):
            yield path


def _read_path(text: str, folder: Path) -> Path | None:
    """The file or folder that a text names, perhaps behind `--option=`; None where there is none."""
    value = _split(text)[1]
    if not value or REFERENCE.search(text) or len(value) > 4000:
        return None
    try:
        path = folder / Path(value.removeprefix("sqlite:///")).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # longer than a name may be, nobody's home, a NUL
        return None


def _point_at_copy(text: str, folder: Path, copier: Copier) -> str:
    """The text with the copy's path where it names something that was copied."""
    path = _read_path(text, folder)
    copy = copier.find(path) if path is not None else None
    if copy is None:
        return text
    option, value = _split(text)
    scheme = "sqlite:///" if value.startswith("sqlite:///") else ""
    return f"{option}{scheme}{copy}"


def _split(text: str) -> tuple[str, str]:
    """`--option=` and its value; "" and the whole text where there is no such option."""
    option, sign, value = text.partition("=")
    return (f"{option}=", value) if sign and option.startswith("-") else ("", text)

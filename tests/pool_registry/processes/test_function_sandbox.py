"""Python functions in the sandbox: they reach what their permissions name, and their packages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pool_registry.actions import Action, Observation
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import InvalidPool
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool
from pool_registry.processes.function_process import FunctionPermissions
from pool_registry.wants import list_wants
from pool_registry.worker import WorkerSpec
from tests.machine import missing

pytestmark = pytest.mark.medium
CODE = '''
import asyncio, os, socket
import beside

def add(a: int, b: int) -> int:
    """Adds."""
    return a + b

def name_beside() -> str:
    return beside.NAME

def mean(values: list[float]) -> float:
    import numpy
    return float(numpy.mean(numpy.array(values)))

async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"

async def wait_in_thread(seconds: float) -> str:
    import time
    await asyncio.to_thread(time.sleep, seconds)
    return "waited"

def read(path: str) -> str:
    with open(path) as file:
        return file.read()

def write(path: str, text: str) -> str:
    with open(path, "w") as file:
        file.write(text)
    return "written"

def variable(name: str) -> str:
    return os.environ.get(name, "nothing")

def connect(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
        return peer.recv(5).decode()

def run(program: str) -> str:
    import subprocess
    return subprocess.run([program], capture_output=True, text=True).stdout

def signal_parent() -> str:
    os.kill(os.getppid(), 0)
    return "signalled"

def unix_socket() -> str:
    socket.socket(socket.AF_UNIX)
    return "opened"
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    if not sys.platform.startswith("linux"):
        missing("Landlock")
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "beside.py").write_text("NAME = 'beside'\n")
    (folder / "tools.py").write_text(CODE)
    return folder / "tools.py"


def offer(tools: Path, name: str, permissions: FunctionPermissions | None) -> WorkerSpec:
    return asyncio.run(list_functions(f"{tools}:{name}", permissions=permissions))[0].spec


def call(
    tools: Path, function: str, permissions: FunctionPermissions | None = None, **arguments: object
) -> Observation:
    spec = offer(tools, function, permissions or FunctionPermissions())

    async def once(work: Callable[[LivePool], Awaitable[Observation]]) -> Observation:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await work(pool)

    return asyncio.run(once(lambda pool: pool.call(Action(function, arguments))))


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("add", {"a": 2, "b": 3}, 5),
        ("name_beside", {}, "beside"),
        ("mean", {"values": [1.0, 3.0]}, 2.0),
        ("wait", {"seconds": 0.01}, "waited"),
        ("wait_in_thread", {"seconds": 0.2}, "waited"),
        ("variable", {"name": "HOME"}, "nothing"),
    ],
)
def test_a_function_in_the_sandbox_computes_with_its_packages(tools, name, arguments, value):
    assert call(tools, name, **arguments).value == value


@pytest.mark.parametrize("name", ["read", "write", "run", "signal_parent", "unix_socket"])
def test_a_function_in_the_sandbox_reaches_nothing_of_yours(tools, name, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    arguments = {
        "read": {"path": str(secret)},
        "write": {"path": str(tmp_path / "new"), "text": "x"},
        "run": {"program": "/bin/true"},
    }
    seen = call(tools, name, **arguments.get(name, {}))
    assert seen.error is not None and seen.error.code == "function_raised"
    assert "Permission" in seen.error.message or "Operation not permitted" in seen.error.message
    assert not (tmp_path / "new").exists()


def test_a_function_reaches_what_its_permissions_name(tools, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("data")
    reading = FunctionPermissions(read=(tmp_path / "data",))
    assert call(tools, "read", reading, path=str(tmp_path / "data" / "a")).value == "data"
    assert call(tools, "write", reading, path=str(tmp_path / "data" / "b"), text="x").error is not None
    writing = FunctionPermissions(write=(tmp_path / "data",))
    assert call(tools, "write", writing, path=str(tmp_path / "data" / "b"), text="x").value == "written"


def test_only_a_permission_opens_the_network(tools):
    async def serve() -> tuple[Observation, Observation]:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return (
                await asyncio.to_thread(call, tools, "connect", None, port=port),
                await asyncio.to_thread(call, tools, "connect", FunctionPermissions(network=True), port=port),
            )

    refused, allowed = asyncio.run(serve())
    assert refused.error is not None and "not permitted" in refused.error.message
    assert allowed.value == "hello"
    network = FunctionPermissions(network=True)
    assert call(tools, "unix_socket", network).error is not None, "a socket of this machine is no network"


def test_a_file_that_wants_more_when_it_is_imported_is_not_offered(tools, tmp_path):
    (tmp_path / "secret").write_text("secret")
    tools.write_text(f"open({str(tmp_path / 'secret')!r}).read()\n" + CODE)
    with pytest.raises(InvalidPool, match="Permission"):
        offer(tools, "add", FunctionPermissions())
    assert offer(tools, "add", None).config.get("permissions") is None


def test_a_function_says_how_it_runs(tools):
    sandboxed, as_you = offer(tools, "add", FunctionPermissions()), offer(tools, "add", None)
    assert not any("with your rights" in want for want in list_wants(sandboxed))
    assert any("with your rights" in want for want in list_wants(as_you))
    network = offer(tools, "add", FunctionPermissions(network=True))
    assert any("any address" in want for want in list_wants(network))

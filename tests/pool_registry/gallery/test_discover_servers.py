"""Discovery: real servers on loopback, of every shape; what lies, hangs or is something else is left out."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from pool_registry.gallery.discover_servers import ServerPort, discover_servers, list_ports
from tests.studio.support.model_server import model_server

PATIENT_S = 60.0  # a busy machine is no failure


@pytest.mark.parametrize(
    ("kind", "server"),
    [("ollama", "Ollama"), ("vllm", "vLLM"), ("lmstudio", "LM Studio"), ("llamacpp", "llama.cpp")],
)
def test_a_server_is_told_by_what_it_lists_and_its_embedders_are_left_out(kind, server):
    with model_server(kind, ["acme/small-1", "text-embedding-nomic", "big:70b"]) as port:
        (found,) = asyncio.run(discover_servers([ServerPort(port)], PATIENT_S))
    assert (found.server, found.models) == (server, ("acme/small-1", "big:70b"))
    assert found.base_url == f"http://127.0.0.1:{port}/v1"


async def answering(body: bytes, status: str = "200 OK") -> tuple[asyncio.Server, int]:
    """A server that says the same to everything."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nlocation: http://127.0.0.1:1/\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>a web page</html>", "200 OK"),
        (b"[1, 2]", "200 OK"),
        (b"{}", "200 OK"),
        (b'{"data": [{"id": "m"}]}', "302 Found"),
        (b'{"data": [{"id": "m"}]}', "401 Unauthorized"),
        (b"\xff\xfe\x00", "200 OK"),
    ],
)
def test_what_is_no_model_server_is_not_offered(body, status):
    async def look() -> list[object]:
        server, port = await answering(body, status)
        async with server:
            return list(await discover_servers([ServerPort(port)], PATIENT_S))

    assert asyncio.run(look()) == []


def test_odd_entries_of_a_list_are_left_out_and_a_server_without_a_model_is_still_told():
    odd = [
        {"id": "good"},
        {"id": 3},
        "text",
        None,
        {"id": "x" * 500},
        {"id": "line\nbreak"},
        {"id": "good"},
        {"id": ""},
    ]

    async def look(data: object) -> tuple[str, ...]:
        server, port = await answering(json.dumps({"object": "list", "data": data}).encode())
        async with server:
            (found,) = await discover_servers([ServerPort(port, "Ollama")], PATIENT_S)
            return found.models

    assert asyncio.run(look(odd)) == ("good",)
    assert asyncio.run(look(None)) == ()


def test_a_port_that_accepts_and_says_nothing_is_given_up():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert asyncio.run(discover_servers([ServerPort(silent.getsockname()[1])], timeout_s=0.3)) == []


def test_more_ports_come_from_the_environment_and_nothing_but_ports():
    usual = list_ports({})
    extra = list_ports({"PODIUM_DISCOVER_PORTS": "8001, 9000 http://evil.example:70000 8001 0 8000"})
    assert [place.port for place in extra[len(usual) :]] == [8001, 9000]
    assert all(place.base_url.startswith("http://127.0.0.1:") for place in extra)


def test_a_pool_that_is_served_here_is_not_offered_to_itself():
    async def once() -> list:
        body = json.dumps({"data": [{"id": "podium-starter", "object": "model", "owned_by": "podium"}]}).encode()
        server, port = await answering(body)
        async with server:
            return await discover_servers([ServerPort(port)], PATIENT_S)

    assert asyncio.run(once()) == []

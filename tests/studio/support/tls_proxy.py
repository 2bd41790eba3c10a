"""A reverse proxy as docs/trust.md asks for: TLS towards the visitor, plain HTTP towards the studio, no buffering.

Like nginx with `$proxy_add_x_forwarded_for` it adds the visitor's address to what the visitor claims, which is the
harder case: what was made up stands in front.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HEAD_END = b"\r\n\r\n"


@contextmanager
def tls_proxy(folder: Path, studio_port: int) -> Iterator[int]:
    """Run a proxy in front of a studio; its port. `folder` gets its certificate, `cert.pem`."""
    make_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    loop = asyncio.new_event_loop()

    async def serve() -> asyncio.Server:
        return await asyncio.start_server(
            lambda reader, writer: forward(reader, writer, studio_port), "127.0.0.1", 0, ssl=context
        )

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(serve(), loop).result(20)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(cut_off(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def cut_off() -> None:
    """End the connections that are still open."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def make_certificate(folder: Path) -> None:
    """Write a certificate for 127.0.0.1 that nobody has signed."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip


async def forward(visitor: asyncio.StreamReader, back: asyncio.StreamWriter, studio_port: int) -> None:
    """Pass one request on, and its response back as it comes."""
    with suppress(OSError, asyncio.IncompleteReadError):
        head = await visitor.readuntil(HEAD_END)
        answer, studio = await asyncio.open_connection("127.0.0.1", studio_port)
        studio.write(add_headers(head, back.get_extra_info("peername")[0]))
        body = asyncio.ensure_future(copy(visitor, studio))
        await copy(answer, back)
        body.cancel()
        studio.close()
    back.close()


def add_headers(head: bytes, address: str) -> bytes:
    """The head of a request, with what the proxy knows of the visitor; one request a connection."""
    first, *lines = head.removesuffix(HEAD_END).split(b"\r\n")
    claimed = [line.partition(b":")[2].strip() for line in lines if line.lower().startswith(b"x-forwarded-for:")]
    dropped = (b"x-forwarded-for:", b"x-forwarded-proto:", b"connection:")
    kept = [line for line in lines if not line.lower().startswith(dropped)]
    forwarded = b", ".join([*claimed, address.encode()])
    added = [b"X-Forwarded-For: " + forwarded, b"X-Forwarded-Proto: https", b"Connection: close"]
    return b"\r\n".join([first, *kept, *added]) + HEAD_END


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy what comes, as it comes."""
    while part := await source.read(65536):
        target.write(part)
        await target.drain()

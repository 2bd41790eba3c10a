"""A chat model at the network's edge for tests of served pools: it does what the instruction's last line says.

`say TEXT` answers TEXT at once, `wait SECONDS` answers that much later and notes when the caller hung up first.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TOKENS_IN, TOKENS_OUT = 11, 3


class EdgeModel:
    """`url` is its base URL; `started` and `hung_up` list the instructions that it got and lost."""

    def __init__(self) -> None:
        self.url = ""
        self.started: list[str] = []
        self.hung_up: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                length = int(head.split("content-length:")[1].split("\r\n")[0])
                asked = json.loads(await reader.readexactly(length))["messages"][-1]["content"]
                await self._answer(asked, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        what, _, rest = asked.strip().splitlines()[-1].partition(" ")
        self.started.append(asked)
        if what == "wait":
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait((gone,), timeout=float(rest))
            if gone.done():
                self.hung_up.append(asked)
                raise ConnectionResetError
            gone.cancel()
            await asyncio.wait((gone,))  # until then the stream has a reader, and the next request could have none
        said = asked if what not in ("say", "wait") else rest
        document = {
            "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT},
        }
        body = json.dumps(document).encode()
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        )
        writer.write(body)
        await writer.drain()


@contextmanager
def edge_model() -> Iterator[EdgeModel]:
    """The model, listening in a thread of its own."""
    model, loop, ready = EdgeModel(), asyncio.new_event_loop(), threading.Event()

    async def listen() -> None:
        server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
        model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()

    def work() -> None:
        loop.create_task(listen())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(30)
    yield model
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)

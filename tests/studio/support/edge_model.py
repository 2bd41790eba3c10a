"""A chat model at the network's edge for tests of served pools: it does what the last line with a verb of its own says.

`say TEXT` answers TEXT at once, `wait SECONDS` answers that much later and notes when the caller hung up first,
`call NAME JSON` calls a function that it is offered. It answers a function's output with that, and where a prompt names
a JSON Schema it writes the smallest document of it. With `write_schema` it has structured outputs in place of that:
what this makes of a `response_format`, and prose without one.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TOKENS_IN, TOKENS_OUT = 11, 3
VERBS = ("say", "wait", "call")


class EdgeModel:
    """`url` is its base URL; `started` and `hung_up` list the instructions that it got and lost."""

    def __init__(self) -> None:
        self.url = ""
        self.started: list[str] = []
        self.hung_up: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.write_schema: Callable[[dict[str, Any]], str] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                length = int(head.split("content-length:")[1].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.bodies.append(body)
                await self._answer(body, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = body["messages"][-1]["content"]
        lines = asked.strip().splitlines()
        last = next((line for line in reversed(lines) if line.partition(" ")[0] in VERBS), lines[-1])
        what, _, rest = last.partition(" ")
        self.started.append(asked)
        if what == "wait":
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait((gone,), timeout=float(rest))
            if gone.done():
                self.hung_up.append(asked)
                raise ConnectionResetError
            gone.cancel()
            await asyncio.wait((gone,))  # until then the stream has a reader, and the next request could have none
        document = {
            "choices": [{"message": self._write_message(body, what, rest), "finish_reason": "stop"}],
            "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT},
        }
        answer = json.dumps(document).encode()
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n".encode()
        )
        writer.write(answer)
        await writer.drain()

    def _write_message(self, body: dict[str, Any], what: str, rest: str) -> dict[str, Any]:
        if self.write_schema is None:
            return _write_message(body, what, rest)
        form = body.get("response_format", {}).get("json_schema")
        return {"role": "assistant", "content": self.write_schema(form["schema"]) if form else "It is so."}


def _write_message(body: dict[str, Any], what: str, rest: str) -> dict[str, Any]:
    last = body["messages"][-1]
    name, _, arguments = rest.partition(" ")
    if last["role"] == "user" and what == "call" and body.get("tools"):
        function = {"name": name, "arguments": arguments or "{}"}
        call = {"id": "call_of_the_model", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    _, schema, text = last["content"].partition("JSON Schema:\n")
    if schema:
        smallest = _fill_schema(json.JSONDecoder().raw_decode(text)[0])
        return {"role": "assistant", "content": json.dumps(smallest)}
    return {"role": "assistant", "content": rest if what in ("say", "wait") else last["content"]}


def _fill_schema(schema: dict[str, Any]) -> object:
    """The smallest document of a plain JSON Schema."""
    kind = schema.get("type")
    if "enum" in schema:
        return next(iter(schema["enum"]), None)
    if kind == "object":
        return {name: _fill_schema(rule) for name, rule in schema.get("properties", {}).items()}
    values = {"array": [], "integer": 7, "number": 7.5, "boolean": True, "string": "word"}
    return values.get(str(kind))


@contextmanager
def edge_model() -> Iterator[EdgeModel]:
    """The model, listening in a thread of its own; its open connections end with it."""
    model, ready = EdgeModel(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    ended = asyncio.Event()

    async def listen() -> None:
        loops.append(asyncio.get_running_loop())
        server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
        model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await ended.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(listen(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    yield model
    loops[0].call_soon_threadsafe(ended.set)
    thread.join(timeout=5)

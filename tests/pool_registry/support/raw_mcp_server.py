"""An MCP server without the SDK: starts in milliseconds, and misbehaves on request. `python -I -S FILE MODE`."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
STATE = sys.argv[2] if len(sys.argv) > 2 else ""  # a file that says which tools there are
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object", "properties": {}}
VERSIONS = {"future": "2031-01-01", "older": "2024-11-05", "no-version": ""}
lock = threading.Lock()
cancelled: list[object] = []
waiting: dict[object, bool] = {}


def send(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    if STATE and Path(STATE).exists():
        described: list[dict[str, Any]] = json.loads(Path(STATE).read_text())
        return described
    names = {"echo": TEXT, "pid": NONE, "hang": NONE, "cancelled": NONE, "huge": NONE, "crash": NONE, "odd": NONE}
    return [{"name": name, "description": f"does {name}", "inputSchema": schema} for name, schema in names.items()]


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def call(number: object, name: str, arguments: dict[str, Any]) -> None:
    if name == "echo":
        send({"id": number, "result": text(arguments["text"])})
    elif name == "pid":
        send({"id": number, "result": text(str(os.getpid()))})
    elif name == "hang":
        waiting[number] = True
    elif name == "cancelled":
        send({"id": number, "result": {**text(""), "structuredContent": {"ids": cancelled, "hung": list(waiting)}}})
    elif name == "huge":
        send({"id": number, "result": text("x" * 9_000_000)})
    elif name == "crash":
        print("going down: disk on fire", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "odd":
        send({"id": number, "result": {"content": "not a list"}})
    else:
        send({"id": number, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def listed(params: dict[str, Any]) -> dict[str, Any]:
    if MODE == "endless":
        return {"tools": tools()[:1], "nextCursor": "again"}
    if MODE == "pages":
        at = int(params.get("cursor") or 0)
        page = {"tools": tools()[at : at + 2]}
        return {**page, "nextCursor": str(at + 2)} if at + 2 < len(tools()) else page
    return {"tools": tools(), **({"nextCursor": ""} if MODE == "empty-cursor" else {})}


def answer(request: dict[str, Any]) -> None:
    number, method, params = request.get("id"), request.get("method"), request.get("params") or {}
    if method == "initialize":
        info = {"name": "raw", "version": "1"}
        version = VERSIONS.get(MODE, params["protocolVersion"])
        send({"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": number, "result": listed(params)})
    elif method == "tools/call":
        call(number, params["name"], params.get("arguments") or {})
    elif method == "notifications/cancelled":
        cancelled.append(params.get("requestId"))
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    if "STARTS" in os.environ:
        with Path(os.environ["STARTS"]).open("a") as file:
            file.write("started\n")
    if MODE == "dies":
        print(f"cannot open the vault with {os.environ.get('VAULT_TOKEN')}", file=sys.stderr, flush=True)
        sys.exit(3)
    if MODE == "endless-line":
        while True:
            sys.stdout.write("x" * 65536)
    if MODE in ("noise", "noise-alone"):
        print("Welcome to the noisy server!\n[]\n{}\nnull", flush=True)
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        if MODE == "noise-alone":
            return
        if MODE != "mute":
            answer(json.loads(line))
    while MODE == "deaf":
        time.sleep(60)


main()

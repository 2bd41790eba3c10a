"""The recorded requests of clients (scripts/client_requests), and their replay against a served pool."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

FOLDER = Path(__file__).parent.parent / "model_server" / "client_requests"
END_S = 60.0
CODINGS: dict[str, Callable[[bytes], bytes]] = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}


@dataclass(frozen=True, slots=True)
class ClientRequests:
    """What a client sends for one feature, in order."""

    client: str
    feature: str
    requests: list[dict[str, Any]]


def read_client_requests() -> list[ClientRequests]:
    """All recorded sets, by client and feature."""
    documents = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return [ClientRequests(one["client"], one["feature"], one["requests"]) for one in documents]


def replay(client: TestClient, recorded: ClientRequests) -> list[Any]:
    """Send the requests; ids that an earlier answer gave are those of the answers now."""
    answers: list[Any] = []
    ids: dict[str, str] = {}
    for request in recorded.requests:
        text = json.dumps(request)
        for old, new in ids.items():
            text = text.replace(old, new)
        now = json.loads(text)
        answer = send(client, now)
        if now["method"] == "GET":  # clients ask until it has ended
            answer = wait_for_end(client, now["path"], answer)
        answers.append(answer)
        ids |= dict(zip(request["answer"], find_ids(read_documents(answer)), strict=False))
    return answers


def send(client: TestClient, request: dict[str, Any]) -> Any:
    """Send one request, with the headers that the client sends, and its body in their coding."""
    headers = {"content-type": "application/json", **request.get("headers", {})}
    body = json.dumps(request["body"]).encode() if "body" in request else b""
    packed = CODINGS[headers.get("content-encoding", "identity")](body)
    return client.request(request["method"], request["path"], content=packed, headers=headers)


def wait_for_end(client: TestClient, path: str, answer: Any) -> Any:
    """The answer to a request once it is no longer about a response that is being made."""
    end = time.monotonic() + END_S
    while answer.json().get("status") in ("queued", "in_progress") and time.monotonic() < end:
        time.sleep(0.05)
        answer = client.get(path)
    return answer


def read_documents(answer: Any) -> list[Any]:
    """The document of an answer, or those of its stream."""
    kind = answer.headers["content-type"]
    if kind.startswith("text/plain"):  # a browser asks whether it may send its request
        return []
    if not kind.startswith("text/event-stream"):
        return [answer.json()]
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def find_ids(answer: object) -> list[str]:
    """The ids of responses and calls in an answer, in order, each once (as record.py notes them)."""
    if isinstance(answer, dict):
        own = [value for name, value in answer.items() if name in ("id", "call_id") and isinstance(value, str)]
        names = [name for name in own if name.startswith(("call_", "resp_"))]
        names += [name for value in answer.values() for name in find_ids(value)]
    else:
        names = [name for value in answer for name in find_ids(value)] if isinstance(answer, list) else []
    return list(dict.fromkeys(names))

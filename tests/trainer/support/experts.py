"""A pool of agents behind one scripted OpenAI-compatible address: each knows its own fields, and one writes questions
about the field that it is shown."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

# What each expert knows. Every question of a field has the same answer for those who know the field.
FIELDS = {"law1": "law", "law2": "law", "med1": "medicine", "med2": "medicine", "novice": ""}
AUTHOR = "editor"
_ASKED = re.compile(r"Write (\d+) different questions")
_QUESTION = re.compile(r"How many pages has volume (\d+) on (\w+)\?")


def write_question(field_name: str, number: int) -> dict[str, object]:
    question = f"How many pages has volume {number} on {field_name}?"
    return {"question": question, "answer": count_pages(field_name, number)}


def count_pages(field_name: str, number: int) -> int:
    return 1000 * len(field_name) + number


@dataclass
class Script:
    """What the agents say, and what they were asked as (model, text). A test may put other functions in."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200
    written: int = 0
    write: Callable[[str, int], str] | None = None
    answer: Callable[[str, str], str] | None = None
    before: Callable[[str, str], None] = lambda model, text: None

    def reply(self, model: str, text: str) -> str:
        self.calls.append((model, text))
        self.before(model, text)
        asked = _ASKED.search(text)
        if asked:
            return (self.write or self.write_lines)(text, int(asked.group(1)))
        return (self.answer or answer_as_expert)(model, text)

    def write_lines(self, text: str, count: int) -> str:
        """Questions about the field of the card, with numbers that were not used before."""
        name = next(name for name in ("law", "medicine", "nothing", "letters") if name in text)
        self.written += count
        return "\n".join(json.dumps(write_question(name, self.written - place)) for place in range(count))

    def count_calls(self, model: str) -> int:
        return sum(called == model for called, _ in self.calls)


def answer_as_expert(model: str, text: str) -> str:
    match = _QUESTION.search(text)
    if match is None:
        return "I do not know."
    number, name = int(match.group(1)), match.group(2)
    wrong = 50_000 + 100 * sum(map(ord, model)) + number  # of its own: who does not know agrees with nobody
    return f"{count_pages(name, number):,}" if FIELDS.get(model) == name else str(wrong)


@contextmanager
def serve_script(script: Script) -> Iterator[str]:
    """The address of a server that answers by the script."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = script.reply(body["model"], body["messages"][-1]["content"])
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            data = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(script.status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # connections that come at the same time

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def build_experts(url: str, changes: Mapping[str, Mapping[str, object]] | None = None) -> Pool:
    """An editor who writes, two experts of law, two of medicine, and one who knows nothing. `changes` by worker."""
    fields = {AUTHOR: "letters", **{name: known or "nothing" for name, known in FIELDS.items()}}
    workers = [
        WorkerSpec.model_validate(
            {
                "name": name,
                "kind": "chat",
                "description": f"Knows all about {known}.",
                "config": {"base_url": url, "model": name, "max_tokens": 50},
                "retries": 0,
                **(changes or {}).get(name, {}),
            }
        )
        for name, known in fields.items()
    ]
    return Pool(name="experts", workers=tuple(workers))

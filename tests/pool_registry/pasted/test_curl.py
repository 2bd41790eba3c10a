"""A curl line is sent as curl would send it; what a call may change is an argument, and its keys are references."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import recognise
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def recorder() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that keeps what it is sent: its address, and the requests."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            requests.append({"method": self.command, "path": self.path, "headers": headers, "body": body})
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", requests
    server.shutdown()
    server.server_close()


def worker(line: str, **settings: Any) -> WorkerSpec:
    [offer] = recognise(line, ImportSettings(**settings)).recognition.offers
    assert not offer.problem, offer.problem
    return offer.spec


def problem(line: str) -> str:
    [offer] = recognise(line, ImportSettings()).recognition.offers
    return offer.problem


def send(recorder: tuple[str, list[dict[str, Any]]], line: str, **arguments: Any) -> dict[str, Any]:
    """What the worker of a line sends; URL in it is the recorder's address."""
    address, requests = recorder
    spec = worker(line.replace("URL", address))

    async def call() -> None:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            observation = await pool.call(Action(spec.name, arguments))
            assert observation.ok, observation.error

    asyncio.run(call())
    return requests[-1]


JSON, FORM = "application/json", "application/x-www-form-urlencoded"
LINES = {
    "get": ("curl 'URL/a?x=1&y=b%20c'", "GET", "/a?x=1&y=b%20c", None, ""),
    "short options": ("curl -sSL -XPOST URL/a -HX-Team:blue -d'{\"a\":1}'", "POST", "/a", JSON, '{"a": 1}'),
    "json": ("curl --json '{\"a\": [1, {\"b\": null}]}' URL/a", "POST", "/a", JSON, '{"a": [1, {"b": null}]}'),
    "continued": ("curl URL/a \\\n  -X PUT \\\n  --data-raw '{\"a\": \"it\"}'", "PUT", "/a", JSON, '{"a": "it"}'),
    "form": ("curl URL/a -d 'x=1&y=b+c' -d 'm[k]=v'", "POST", "/a", FORM, "x=1&y=b%20c&m%5Bk%5D=v"),
    "urlencode": ("curl URL/a --data-urlencode 'q=a&b'", "POST", "/a", FORM, "q=a%26b"),
    "get with data": ("curl -G URL/a -d x=1 --data-urlencode 'q=a b'", "GET", "/a?x=1&q=a%20b", None, ""),
    "text": ("curl URL/a -H 'Content-Type: text/plain' -d 'a, b'", "POST", "/a", "text/plain", "a, b"),
    "ansi": (r"curl URL/a --data-raw $'{\"q\":\"it\'s\"}' --compressed", "POST", "/a", JSON, '{"q": "it\'s"}'),
    "cmd": ('curl "URL/a" ^\n  -H "accept: */*"', "GET", "/a", None, ""),
    "delete": ("curl --request DELETE --url URL/a/7", "DELETE", "/a/7", None, ""),
    "piped": ("$ curl URL/a | jq '.b' > out.json", "GET", "/a", None, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_call_without_arguments_sends_the_pasted_request(recorder, name):
    line, method, path, content_type, body = LINES[name]
    request = send(recorder, line)
    assert (request["method"], request["path"]) == (method, path)
    assert (request["headers"].get("content-type") or "").partition(";")[0] == (content_type or "")
    try:
        assert json.loads(request["body"]) == json.loads(body)
    except ValueError:
        assert request["body"] == body


def test_fields_of_the_query_the_body_and_the_path_are_arguments(recorder):
    request = send(recorder, "curl 'URL/users/{id}/notes/:note?limit=5'", id="7", note="a/b", limit=2)
    assert request["path"] == "/users/7/notes/a%2Fb?limit=2"
    request = send(recorder, """curl URL/a -d '{"city": "Oslo", "days": 3}'""", days=1)
    assert json.loads(request["body"]) == {"city": "Oslo", "days": 1}


def test_keys_become_references_and_are_named(recorder, monkeypatch):
    line = f"curl https://api.acme.com/v1/x?appid={KEY} -H 'Authorization: Bearer {KEY}' -H 'X-API-Key: {KEY}'"
    text = recognise(line, ImportSettings())
    config = text.recognition.offers[0].spec.config
    assert config["headers"] == {
        "Authorization": "Bearer env:API_ACME_COM_TOKEN", "X-API-Key": "env:API_ACME_COM_X_API_KEY"
    }  # fmt: skip
    assert config["query"] == {"appid": "env:API_ACME_COM_APPID"}
    assert KEY not in repr(text) and len(text.recognition.notes) == 3
    monkeypatch.setenv("ACME", KEY)
    request = send(recorder, 'curl URL/a -H "Authorization: Bearer $ACME"')
    assert request["headers"]["authorization"] == f"Bearer {KEY}"


def test_a_user_and_password_are_one_reference():
    text = recognise("curl https://api.stripe.com/v1/customers -u sk_test_0123456789: -d name=Jenny", ImportSettings())
    assert text.recognition.offers[0].spec.config["headers"] == {"Authorization": "Basic env:API_STRIPE_COM_BASIC"}
    assert "base64" in text.recognition.notes[0] and "sk_test" not in repr(text)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("curl -F file=@x https://a.example.com", "multipart"),
        ("curl -d @body.json https://a.example.com", "in a file"),
        ("curl -k https://a.example.com", "certificates"),
        ("curl -X TRACE https://a.example.com", "method"),
        ("curl -d 'api_key=abcdefgh12345678' https://a.example.com", "body holds a key"),
        ("curl 'https://u:p4ssword@a.example.com'", "-u"),
        ("curl --frobnicate https://a.example.com", "--frobnicate"),
        ("curl 'https://a.example.com", "quotation marks"),
        ("curl -H 'a: b'", "no address"),
        ("curl https://a.example.com https://b.example.com", "two addresses"),
    ],
)
def test_what_cannot_be_sent_as_it_stands_says_why(line, why):
    assert why in problem(line)


def test_several_lines_become_several_workers():
    text = "# first\ncurl https://a.example.com/one\n\ncurl https://a.example.com/two \\\n  -d x=1\n"
    offers = recognise(text.removeprefix("# first\n"), ImportSettings()).recognition.offers
    assert [offer.spec.name for offer in offers] == ["example_one", "example_two"]


def test_a_line_that_asks_a_model_becomes_an_agent():
    body = {"model": "m-1", "messages": [{"role": "system", "content": "Be brief."}], "temperature": 0, "top_p": 0.5}
    line = (
        f"curl https://models.example.com/v1/chat/completions -H 'Authorization: Bearer {KEY}' -d '{json.dumps(body)}'"
    )
    spec = worker(line, name="brief")
    assert (spec.kind, spec.name) == ("chat", "brief")
    assert spec.config == {
        "base_url": "https://models.example.com/v1", "model": "m-1", "temperature": 0, "role": "Be brief.",
        "api_key": "env:MODELS_EXAMPLE_COM_KEY", "extra": {"top_p": 0.5},
    }  # fmt: skip
    local = worker("""curl http://localhost:11434/api/generate -d '{"model": "llama3.2", "prompt": "Why?"}'""")
    assert (local.config["base_url"], local.config["model"]) == ("http://localhost:11434/v1", "llama3.2")

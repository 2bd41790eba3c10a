"""Each case of table.py: shown on the input that was tried, through the door that a person or a client uses, and proven
by the tests that the table names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from orchestrator.traces.store import open_store
from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.imports.openapi.operations import list_operations
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import recognise
from pool_registry.storage.data_folder import find_home
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from tests.field import show_checkpoints, show_clients, show_servers
from tests.field.shows import CASES, SHOWN, Context, Show, shows
from tests.pool_registry.support.recorder import Recorder, call, record_requests
from tests.studio.support.edge_home import home, model
from trainer.__main__ import app
from trainer.demonstrations.lesson_files import load_lesson_file
from trainer.demonstrations.transcripts import BY_THE_LISTING
from trainer.errors import TrainerError
from trainer.recipe_sections import ModelSettings

__all__ = ["home", "model", "show_checkpoints", "show_clients", "show_servers"]

TESTS = Path(__file__).parents[1]
DATA = Path(__file__).with_name("data")
MODEL = "podium-edge"
HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "say hello"}]}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[TestClient]:
    """A served pool, as clients reach it."""
    served = create_model_app(open_store(find_home(home)), ServedModel("edge", "direct:agent"), loopback=True)
    with TestClient(served, base_url="http://127.0.0.1") as running:
        yield running


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with record_requests() as running:
        yield running


@pytest.mark.parametrize("case", CASES)
@pytest.mark.medium
def test_a_case_of_the_field(case: str, request: Context) -> None:
    proofs = CASES[case]
    assert proofs or case in SHOWN, "nothing shows that this case is right"
    for proof in proofs:
        file, _, name = proof.partition("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), f"there is no test {proof}"
    for show in SHOWN.get(case, []):
        show(request)


# OpenAPI documents and what they send


def list_wires(request: Context) -> tuple[Recorder, dict[str, Offer]]:
    """A server that records, and the operations of form_encoding.yaml on it."""
    record: Recorder = request.getfixturevalue("recorder")
    offers = list_operations((DATA / "form_encoding.yaml").read_bytes(), base_url=record.address, allow_private=True)
    return record, {offer.spec.name: offer for offer in offers}


def send(request: Context, worker: str, **arguments: Any) -> tuple[str, str]:
    """The target and the body of the request that a call sends."""
    record, offers = list_wires(request)
    seen = call(offers[worker], arguments)
    assert seen.ok, seen.error
    return record.targets[-1], record.bodies[-1].decode()


@shows("form body with encoding, explode false", "forms of Twilio")
def _show_forms(request: Context) -> None:
    assert send(request, "tags", ids=[1, 2])[1] == "ids=1,2"
    customer = {"name": "Ada", "metadata": {"order_id": "7"}}
    assert send(request, "create_customer", **customer)[1] == "name=Ada&metadata%5Border_id%5D=7"


@shows("nested deepObject in a query", "deepObject of one level")
def _show_deep_objects(request: Context) -> None:
    target, _ = send(request, "list_charges", created={"gte": 1}, filter={"price": {"gte": 10}})
    assert target == "/v1/charges?created%5Bgte%5D=1&filter%5Bprice%5D%5Bgte%5D=10"


@shows("path style label and matrix")
def _show_labels(request: Context) -> None:
    assert send(request, "get_label", id="a7")[0] == "/v1/label/.a7"


@shows("body of allOf")
def _show_joined_bodies(request: Context) -> None:
    _, offers = list_wires(request)
    assert {"name", "price"} <= offers["merge"].spec.config["parameters"]["properties"].keys()
    assert json.loads(send(request, "merge", name="tea", price=3.5)[1]) == {"name": "tea", "price": 3.5}


@shows("multipart/form-data and binary bodies")
def _show_parts(request: Context) -> None:
    assert '"note"\r\n' in send(request, "upload", note="hello")[1].replace("name=", "")


@shows("servers override, key reference, private address")
def _show_servers(_: Context) -> None:
    document = (DATA / "form_encoding.yaml").read_bytes()
    with pytest.raises(InvalidPool, match="allow_private"):
        list_operations(document, base_url="http://10.0.0.5/v1")
    outside = list_operations(document, base_url="https://api.example.com/v2")
    assert {offer.spec.config["base_url"] for offer in outside} == {"https://api.example.com/v2"}


@shows("3.1 webhooks without paths")
def _show_webhooks(_: Context) -> None:
    hook = {"post": {"operationId": "ping"}}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "webhooks": {"ping": hook}}
    with pytest.raises(InvalidPool, match="nothing to call"):
        list_operations(json.dumps(document))


# Texts that are pasted, and tools with odd schemas


def paste(text: str) -> Any:
    return recognise(text, ImportSettings()).recognition


@shows("settings of MCP clients")
def _show_client_settings(_: Context) -> None:
    servers = {
        source.name: source.fields["server"] for source in paste((DATA / "mcp_client_config.json").read_text()).sources
    }
    assert servers["memory"]["command"] == "npx" and servers["memory"]["env"] == {"MEMORY_FILE_PATH": "memory.jsonl"}
    assert servers["remote"]["headers"] == {"Authorization": "Bearer env:X"}


@shows("an OpenAI tools list as workers")
def _show_tools_list(_: Context) -> None:
    [offer] = paste((DATA / "openai_tools.json").read_text()).offers
    assert offer.spec.name == "get_stock" and not offer.problem


def offer_tool(name: str = "t", **properties: Any) -> Offer:
    schema = {"type": "object", "properties": properties}
    [offer] = paste(json.dumps([{"name": name, "description": "d", "parameters": schema}])).offers
    return offer


@shows("types from training data")
def _show_other_types(_: Context) -> None:
    kinds = {"a": "dict", "b": "float", "c": "any", "d": "String"}
    offer = offer_tool(**{name: {"type": kind} for name, kind in kinds.items()})
    properties = offer.spec.config["parameters"]["properties"]
    assert not offer.problem and properties["a"]["type"] == "object" and properties["b"]["type"] == "number"
    assert "type" not in properties["c"] and properties["d"]["type"] == "string"


@shows("names in other scripts")
def _show_other_scripts(_: Context) -> None:
    assert offer_tool("найти_заказ").spec.name == "nayti_zakaz"
    assert offer_tool("查询天气").spec.name.isascii()


@shows("names with dots, slashes, spaces and 128 characters")
def _show_long_names(_: Context) -> None:
    for name in ("shop.get_stock", "shop/get_stock", "shop get stock", "n" * 128):
        assert not offer_tool(name).problem


@shows("anyOf with null, lists of types and nested arrays", "drafts by $schema, $id, patterns and large defaults")
def _show_usual_schemas(_: Context) -> None:
    properties = {
        "a": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "b": {"type": ["integer", "string"]},
        "c": {"enum": ["x", 1, True]},
        "d": {"type": "array", "items": {"type": "array"}},
        "e": {"type": "object", "additionalProperties": {"type": "number"}},
        "f": {"type": "integer", "default": 2**63},
        "g": {"type": "string", "pattern": "^[a-z]+$"},
    }
    offer = offer_tool(**properties)
    assert not offer.problem and offer.spec.config["parameters"]["properties"].keys() == properties.keys()


# Data sets


def check_file(request: Context, name: str, *more: str) -> str:
    """What `tasks check` says of a file, in one line. Fails where it ends in anything but words."""
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    patch.setenv("PODIUM_HOME", str(request.getfixturevalue("tmp_path")))
    checked = CliRunner().invoke(app, ["tasks", "check", str(DATA / name), *more])
    if isinstance(checked.exception, TrainerError):
        return " ".join(str(checked.exception).split())
    assert checked.exception is None or isinstance(checked.exception, SystemExit), checked.exception
    return " ".join(checked.output.split())


DATA_SETS = {
    "GSM8K JSONL": ("gsm.jsonl", ("42", "3600")),
    "CSV with question,answer": ("qa.csv", ("Read as CSV", "Goethe")),
    "CSV with semicolons": ("qa_semicolon.csv", ("Read as CSV with semicolons", "11,90")),
    "Parquet question/answer": ("qa.parquet", ("Read as Parquet", "3600")),
    "JSON array of right lines": ("arr.json", ("What is 6 x 7?", "42")),
    "ShareGPT with function_call and observation": ("sharegpt.jsonl", ("Read as ShareGPT", "How much tea?", "12")),
    "Alpaca": ("alpaca.json", ("instruction", "output")),
    "TSV with query, answer": ("qa.tsv", ("What is 6 x 7?", "42")),
    "plain OpenAI fine-tuning messages": ("openai_finetune.jsonl", ("messages",)),
}


def _show_data_set(file: str, words: tuple[str, ...]) -> Show:
    def show(request: Context) -> None:
        text = check_file(request, file)
        assert all(word in text for word in words), text
        assert "Traceback" not in text

    return show


for data_case, (data_file, data_words) in DATA_SETS.items():
    shows(data_case)(_show_data_set(data_file, data_words))


@shows("BFCL v4")
def _show_suite(request: Context) -> None:
    text = check_file(request, "bfcl.json", "--answers", str(DATA / "bfcl_answer.json"))
    assert "Read as BFCL" in text and "How much tea and how much oil?" in text


@shows("a file without a usable line")
def _show_unusable_file(request: Context) -> None:
    file: Path = request.getfixturevalue("tmp_path") / "notes.jsonl"
    file.write_text('{"note": "buy tea"}\n[1, 2]\n')
    text = check_file(request, str(file))
    assert "has the columns note" in text and "rename it, or choose it" in text, text


@shows("weight 0 and content parts")
def _show_weights(request: Context) -> None:
    file: Path = request.getfixturevalue("tmp_path") / "chats.jsonl"
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "6 x 7?"}]
    answers = [{"role": "assistant", "content": "a lot", "weight": 0}, {"role": "user", "content": "Exactly?"}]
    messages = [{"role": "user", "content": parts}, *answers, {"role": "assistant", "content": "42", "weight": 1}]
    file.write_text(json.dumps({"messages": messages}) + "\n")
    (lesson,) = load_lesson_file(file, ModelSettings(dialect="plan"), BY_THE_LISTING)
    assert "".join(lesson.messages[0].content.split()) == "Whatis6x7?"
    assert [message.learn for message in lesson.messages if message.role == "assistant"] == [False, True]


# Clients of a served pool


def ask(request: Context, body: bytes | None = None, headers: dict[str, str] | None = None, **more: Any) -> Any:
    served: TestClient = request.getfixturevalue("client")
    sent = json.dumps({**HELLO, **more}).encode() if body is None else body
    return served.post("/v1/chat/completions", content=sent, headers=JSON if headers is None else headers)


def check_answer(reply: Any) -> None:
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["content"] == "hello"


@shows("requests with odd bodies and headers")
def _show_odd_requests(request: Context) -> None:
    body = json.dumps(HELLO).encode()
    check_answer(ask(request))
    check_answer(ask(request, b"\xef\xbb\xbf" + body))
    for headers in ({}, {"content-type": "text/plain"}, {**JSON, "x-stainless-lang": "js", "openai-beta": "x"}):
        check_answer(ask(request, body, headers))
    check_answer(ask(request, messages=[{"role": "developer", "content": "Be brief."}, *HELLO["messages"]]))
    nulls = dict.fromkeys(["tools", "tool_choice", "stop", "seed", "temperature", "response_format", "stream", "user"])
    check_answer(ask(request, **nulls))


@shows("130 tools", "tools with type dict and float")
def _show_tools(request: Context) -> None:
    odd = {"type": "dict", "properties": {"n": {"type": "float"}}}
    tools = [{"type": "function", "function": {"name": f"tool_{k}", "parameters": odd}} for k in range(130)]
    reply = ask(request, tools=tools, tool_choice="none")
    check_answer(reply)


@shows("legacy functions")
def _show_functions(request: Context) -> None:
    check_answer(ask(request, functions=[{"name": "f", "parameters": {"type": "object", "properties": {}}}]))


@shows("streams with and without usage")
def _show_streams(request: Context) -> None:
    for options in ({}, {"stream_options": {"include_usage": True}}):
        text = ask(request, stream=True, **options).text
        assert text.rstrip().endswith("data: [DONE]") and ('"total_tokens"' in text) == bool(options)


@shows("models and models/ID")
def _show_models(request: Context) -> None:
    served: TestClient = request.getfixturevalue("client")
    assert [row["id"] for row in served.get("/v1/models").json()["data"]] == [MODEL]
    assert served.get(f"/v1/models/{MODEL}").json()["id"] == MODEL


@shows("empty messages, unknown model")
def _show_refusals(request: Context) -> None:
    assert ask(request, messages=[]).status_code == 400
    unknown = ask(request, model="gpt-9")
    assert unknown.status_code == 404 and MODEL in unknown.text

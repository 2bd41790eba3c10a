"""Answers in the form that a client wants, by construction: 100 schemas, 100 answers that fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema_rs
import pytest
from fastapi.testclient import TestClient

from assets import asset
from orchestrator.traces.store import open_store
from pool_registry.language_models.batched_model import open_model
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from studio.model_server.answer_form import AnswerForm
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from studio.prepare import prepare_store
from tests.studio.support.edge_home import home, model
from tests.studio.support.random_schemas import Schema, make_schemas

__all__ = ["home", "model"]

SCHEMAS = make_schemas(100)
TINY = str(asset("starters") / "tiny-base")


@contextmanager
def serve_pool(home: Path, name: str, orchestrator: str) -> Iterator[TestClient]:
    app = create_model_app(open_store(find_home(home)), ServedModel(name, orchestrator), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as running:
        yield running


def save_pool(home: Path, name: str, *workers: WorkerSpec) -> None:
    store = prepare_store(str(home))
    store.pools.save(Pool(name=name, workers=workers))
    store.close()


@pytest.fixture(scope="module")
def local(home: Path) -> Iterator[TestClient]:
    """A pool of one local model, which knows nothing of the question."""
    config = {"model": TINY, "max_tokens": 16}
    save_pool(home, "local", WorkerSpec(name="small", kind="local_model", description="Answers.", config=config))
    with serve_pool(home, "local", "direct:small") as running:
        yield running


@pytest.fixture(scope="module")
def endpoint(home: Path) -> Iterator[TestClient]:
    with serve_pool(home, "edge", "direct:agent") as running:
        yield running


def ask(client: TestClient, question: str, schema: object, **more: object) -> object:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    name = client.get("/v1/models").json()["data"][0]["id"]
    body = {"model": name, "messages": [{"role": "user", "content": question}], "response_format": form, **more}
    return client.post("/v1/chat/completions", json=body)


@pytest.mark.medium
def test_some_schemas_have_valid_answers_of_a_local_model(local):
    check_answers(local, SCHEMAS[:12])


@pytest.mark.slow
def test_a_hundred_schemas_have_a_hundred_valid_answers_of_a_local_model(local):
    check_answers(local, SCHEMAS)


def check_answers(local: TestClient, schemas: list[Schema]) -> None:
    for index, schema in enumerate(schemas):
        answer = ask(local, f"Tell me about item {index}.", schema)
        assert answer.status_code == 200, (index, answer.text)
        document = json.loads(answer.json()["choices"][0]["message"]["content"])
        jsonschema_rs.validate(schema, document)


@pytest.mark.medium
def test_any_object_by_construction(local):
    body = {"messages": [{"role": "user", "content": "Anything."}], "response_format": {"type": "json_object"}}
    answer = local.post("/v1/chat/completions", json={"model": "podium-local", **body})
    assert isinstance(json.loads(answer.json()["choices"][0]["message"]["content"]), dict)


@pytest.mark.medium
def test_a_demanded_call_has_arguments_that_fit(local):
    for index, schema in enumerate(SCHEMAS[:5]):
        if "$ref" in schema:
            continue
        tool = {"type": "function", "function": {"name": "note", "parameters": schema}}
        body = {"messages": [{"role": "user", "content": f"Note {index}."}], "tools": [tool], "tool_choice": "required"}
        answer = local.post("/v1/chat/completions", json={"model": "podium-local", **body})
        call = answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]
        jsonschema_rs.validate(schema, json.loads(call["arguments"]))


@pytest.mark.medium
def test_a_hundred_schemas_reach_an_endpoint_as_its_structured_outputs(endpoint, model, monkeypatch):
    """The endpoint at the network's edge writes the shortest text of the schema that it is sent, and prose without."""
    monkeypatch.setattr(model, "write_schema", write_shortest)
    for index, schema in enumerate(SCHEMAS):
        answer = ask(endpoint, f"say item {index}", schema)
        assert answer.status_code == 200, (schema, answer.text)
        jsonschema_rs.validate(schema, json.loads(answer.json()["choices"][0]["message"]["content"]))
        assert model.bodies[-1]["response_format"]["json_schema"]["schema"] == schema


def write_shortest(schema: dict) -> str:
    """The shortest text of a schema, as a server with guided decoding would write it."""
    opened = open_model(Path(TINY), "cpu")
    compiler = opened.compiler()
    matcher = compiler.make_matcher(AnswerForm(schema).write_grammar())
    return str(opened.tokenizer.decode(compiler.close(matcher, [])))


def test_a_bare_value_is_wrapped_where_exactly_one_property_fits():
    town = {"city": {"type": "string"}, "degrees": {"type": "integer"}}
    assert AnswerForm({"type": "object", "properties": town}).fit("Paris") == {"city": "Paris"}
    assert AnswerForm({"type": "object", "properties": town, "required": ["degrees"]}).fit("21") == {"degrees": 21}
    listed = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}
    assert AnswerForm(listed).fit("[1, 2]") == {"items": [1, 2]}
    root = {"$ref": "#/$defs/Town", "$defs": {"Town": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    assert AnswerForm(root).fit("Rome") == {"city": "Rome"}


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, "which of the two"),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]}, "one alone"),
        ({"properties": {"city": {"type": "string"}}, "required": ["city"]}, '{"town": "Paris"}'),
        ({"properties": {"city": {"type": "string"}}, "required": ["city"]}, {"town": "Paris"}),
        ({"properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}, "warm"),
        ({}, "no field at all"),
    ],
)
def test_what_fits_no_property_or_several_is_an_error_in_words(schema, answer):
    with pytest.raises(ValueError, match=r"\w"):
        AnswerForm({"type": "object", "additionalProperties": False, **schema}).fit(answer)

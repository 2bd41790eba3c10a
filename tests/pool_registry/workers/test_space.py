"""Spaces: the endpoints of a real Gradio app become workers, called over its HTTP API."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.imports import Offer
from pool_registry.imports.space import list_endpoints
from pool_registry.kinds import load_config
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.pool_registry.support.peer import Peer, peer

pytestmark = pytest.mark.medium

if TYPE_CHECKING:
    import gradio as gr


def make_app(folder) -> gr.Blocks:
    import gradio as gr

    (folder / "report.txt").write_text("words")

    def add(a: float, b: float = 2, state: dict | None = None) -> str:
        """Adds two numbers."""
        if a < 0:
            raise gr.Error("no negative numbers")
        return f"{a + b:g}"

    with gr.Blocks() as app:
        a, b, state, out = gr.Number(label="First"), gr.Slider(0, 10, value=2), gr.State({}), gr.Textbox()
        gr.Button().click(add, [a, b, state], out, api_name="add")
        pick, file = gr.Dropdown(["x", "y"]), gr.File()
        gr.Button().click(lambda pick: (str(folder / "report.txt"), pick), [pick], [file, out], api_name="both")
        gr.Button().click(lambda files: "x", [gr.Files()], out, api_name="many")
        gr.Button().click(lambda file: "x", [gr.File()], out, api_name="one_file")
    return app


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space")
    app = make_app(folder)
    app.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", allowed_paths=[str(folder)])
    yield app.local_url.rstrip("/")
    app.close()


@pytest.fixture(scope="module")
def found(address) -> dict[str, Offer]:
    return {offer.spec.config["api_name"]: offer for offer in asyncio.run(list_endpoints(address))}


def call(spec: WorkerSpec, **arguments) -> Observation:
    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await pool.call(Action(spec.name, arguments))

    return asyncio.run(once())


def test_endpoints_are_offered_with_their_schemas(found):
    assert found.keys() == {"/add", "/both", "/many", "/one_file"}
    add = found["/add"].spec
    assert not found["/add"].problem and load_config(add)
    assert list(add.config["parameters"]["properties"]) == ["a", "b"] and add.config["parameters"]["required"] == ["a"]
    assert found["/both"].spec.config["parameters"]["properties"]["pick"]["enum"] == ["x", "y"]
    assert "not one file" in found["/many"].problem
    assert found["/one_file"].spec.config["parameters"]["properties"]["file"]["pattern"] == "^https?://"


def test_a_call_returns_the_outputs_and_notes_for_files(found):
    assert call(found["/add"].spec, a=1, b=4).value == "5"
    assert call(found["/add"].spec, a=1).value == "3"
    note, picked = call(found["/both"].spec, pick="y").value
    assert picked == "y" and note == "(file: report.txt, type not given, 5 bytes)"


def test_a_failing_endpoint_and_wrong_arguments(found):
    failed = call(found["/add"].spec, a=-1)
    assert (failed.status, failed.error.code) == (Status.EXEC_ERR, "tool_error")
    assert "no negative numbers" in failed.error.message
    assert call(found["/both"].spec, pick="z").status is Status.PARSE_ERR
    assert call(found["/one_file"].spec, file="/etc/passwd").status is Status.PARSE_ERR


def test_a_space_that_was_not_imported_takes_its_inputs_by_position(address):
    spec = WorkerSpec(name="s", kind="space", description="d", config={"space": address, "api_name": "add"})
    assert call(spec, inputs=[1, 1]).value == "2"
    unnamed = spec.model_copy(update={"config": {"space": address}})
    assert "/add, /both" in call(unnamed, inputs=[]).error.message


def test_check_names_what_is_missing(address, found):
    async def check(config: dict) -> str:
        spec = WorkerSpec(name="s", kind="space", description="d", config=config)
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await pool.workers["s"].worker.check()

    assert "answers" in asyncio.run(check(found["/add"].spec.config))
    with pytest.raises(WorkerFault, match="there is no /gone"):
        asyncio.run(check({"space": address, "api_name": "/gone"}))


def test_an_id_is_looked_up_at_the_hub_that_is_set_with_the_token(address, monkeypatch):
    seen = []

    def space_info(self):
        seen.append((self.path, self.headers.get("authorization")))
        self._json(200, {"id": "owner/name", "host": address})

    with peer() as hub:
        monkeypatch.setattr(Peer, "do_GET", space_info)
        monkeypatch.setenv("HF_ENDPOINT", hub)
        monkeypatch.setenv("PODIUM_HF", "hf_planted_1618")
        named = asyncio.run(list_endpoints("owner/name", token="env:PODIUM_HF"))
    assert seen == [("/api/spaces/owner/name", "Bearer hf_planted_1618")]
    assert named[0].spec.name == "name_add" and named[0].spec.config["token"] == "env:PODIUM_HF"


@pytest.mark.parametrize("space", ["", "no slash", "ftp://x/y", "a/b/c", "https://user:pw@example.com"])
def test_what_is_no_space_is_refused(space):
    with pytest.raises(InvalidPool):
        asyncio.run(list_endpoints(space))


@pytest.mark.parametrize("answer", [[], {}, {"version": "6", "api_prefix": 3}, {"version": "6", "named_endpoints": 1}])
def test_what_is_no_gradio_app_is_told(monkeypatch, answer):
    monkeypatch.setattr(Peer, "do_GET", lambda self: self._json(200, answer))
    with peer() as place, pytest.raises(WorkerFault) as told:
        asyncio.run(list_endpoints(place))
    assert told.value.code == "invalid_response"


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        ("", "invalid_response"),
        ("event: heartbeat\ndata: null\n\n", "invalid_response"),
        ("event: complete\ndata: [1,\n\n", "invalid_response"),
        ("event: complete\ndata: " + "[" * 100_000 + "\n\n", "invalid_response"),
        ("event: complete\ndata: " + "[" * 80 + "]" * 80 + "\n\n", "invalid_response"),
        ("event: error\ndata: null\n\n", "tool_error"),
        ('event: error\ndata: {"error": "GPU quota"}\n\n', "tool_error"),
    ],
)
def test_a_stream_without_a_result_is_a_fault(stream, code):
    from pool_registry.workers.space import _result

    with pytest.raises(WorkerFault) as told:
        _result(stream, "owner/name")
    assert told.value.code == code
    assert _result('event: generating\ndata: [1]\n\nevent: complete\ndata: [{"a": 2}]\n\n', "s") == {"a": 2}
    json.dumps(str(told.value))

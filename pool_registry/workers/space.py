"""Kind `space`: one endpoint of a Hugging Face Space, or of any Gradio app.

Gradio's documented HTTP API is called through http_client (three small requests), and not gradio_client: that
opens connections of its own, sends the machine's saved Hugging Face token to private and public Spaces
alike, and uploads a local file when an argument looks like one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.network import http_client
from pool_registry.network.address_policy import ALLOW_PRIVATE, AddressPolicy
from pool_registry.network.http_values import KeyReference, once, resolve_key
from pool_registry.schemas.argument_schema import stored_schema
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker

CHECK_S = 30.0  # a Space that sleeps answers late
SPACE_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
_BY_POSITION = {
    "type": "object",
    "properties": {"inputs": {"type": "array", "description": "The endpoint's inputs, in its order."}},
    "required": ["inputs"],
    "additionalProperties": False,
}


class Input(StrictModel):
    """One input of the endpoint, in order. A file is given as its URL; `default` is used when it is left out."""

    name: str
    is_file: bool = False
    default: Any = None


class SpaceConfig(StrictModel):
    space: str = Field(min_length=1, description="owner/name at Hugging Face, or the URL of a Gradio app.")
    api_name: str = Field(default="", description="The endpoint, such as /predict; empty when it has only one.")
    token: KeyReference = Field(default="", description="env:NAME or keyring:NAME, for a private Space.")
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)
    inputs: list[Input] = Field(default_factory=list, description="Its inputs, as recorded at import.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of its arguments, as recorded at import."
    )

    @field_validator("space")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        value = value.strip().rstrip("/")
        if "://" in value:
            return http_client.check_url(value, AddressPolicy(private=True, typed=True))
        if not SPACE_ID.fullmatch(value):
            raise ValueError("write owner/name, or a URL that starts with https://")
        return value

    @field_validator("parameters")
    @classmethod
    def _is_usable(cls, value: dict[str, Any]) -> dict[str, Any]:
        return stored_schema(value) if value else value


@dataclass(frozen=True, slots=True)
class App:
    """A running Gradio app: the base of its API, and its endpoints by name ("/predict")."""

    api: str
    endpoints: Mapping[str, Mapping[str, Any]]


class Space(Worker[SpaceConfig]):
    label = "Hugging Face Space"
    summary = "One endpoint of a Space, or of any Gradio app."
    icon = "M12 4l8 4.5v7L12 20l-8-4.5v-7z M4 8.500l8 4.500 8-4.500 M12 13v7"
    Config = SpaceConfig
    remote = True

    @classmethod
    def sends_to(cls, config: SpaceConfig) -> str:
        return f"the Hugging Face Space {config.space}"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters or _BY_POSITION

    async def call(self, call: Call) -> Reply:
        config, door = self.config, SpaceClient(self.config, self.spec.timeout_s)
        app = await door.app()
        name = choose_endpoint(app, config.api_name)
        with once("POST"):
            started = await door.json("POST", f"{app.api}/call/{quote(name[1:], safe='')}", {"data": self._data(call)})
            event = started.get("event_id") if isinstance(started, dict) else None
            if not isinstance(event, str) or not re.fullmatch(r"[\w-]{1,128}", event):
                raise WorkerFault("invalid_response", f"{config.space} did not say where its result will be")
            stream = await door.text(f"{app.api}/call/{quote(name[1:], safe='')}/{event}")
        return Reply(_result(stream, config.space))

    async def check(self) -> str:
        app = await SpaceClient(self.config, CHECK_S).app()
        name = choose_endpoint(app, self.config.api_name)
        return f"answers; {name} is one of {len(app.endpoints)} endpoints"

    def _data(self, call: Call) -> list[JsonValue]:
        if not self.config.parameters:
            inputs = call.arguments["inputs"]
            assert isinstance(inputs, list)
            return inputs
        return [_write_input(field, call.arguments.get(field.name, field.default)) for field in self.config.inputs]


class SpaceClient:
    """The client of one Space; it sends the token to the Space and to Hugging Face only."""

    def __init__(self, config: SpaceConfig, timeout_s: float) -> None:
        self._config, self._timeout_s = config, timeout_s
        self._headers = {"authorization": f"Bearer {resolve_key(config.token)}"} if config.token else {}
        self._policy = AddressPolicy(private=config.allow_private, typed=True)

    async def app(self) -> App:
        """Find the app and ask what it offers. Raises WorkerFault."""
        base = await self._address()
        config = await self.json("GET", f"{base}/config")
        if not isinstance(config, dict) or "version" not in config:
            raise WorkerFault("invalid_response", f"{self._config.space} is no Gradio app")
        prefix = config.get("api_prefix")
        api = base + (prefix if isinstance(prefix, str) and re.fullmatch(r"(/[\w-]+)*", prefix) else "")
        info = await self.json("GET", f"{api}/info")
        named = info.get("named_endpoints") if isinstance(info, dict) else None
        if not isinstance(named, dict):
            raise WorkerFault("invalid_response", f"{self._config.space} does not say what it offers")
        return App(
            api, {name: endpoint for name, endpoint in named.items() if isinstance(endpoint, dict) and name[:1] == "/"}
        )

    async def _address(self) -> str:
        space = self._config.space
        if "://" in space:
            return space
        hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        info = await self.json("GET", f"{hub}/api/spaces/{space}")
        host = info.get("host") if isinstance(info, dict) else None
        if not isinstance(host, str) or not urlsplit(host).hostname:
            raise WorkerFault("not_found", f"{space} has no address at {urlsplit(hub).netloc}; does it run?")
        return host.rstrip("/")

    async def json(self, method: str, url: str, body: JsonValue = None) -> Any:
        return await http_client.ask_json(method, url, self._headers, self._timeout_s, body, self._policy)

    async def text(self, url: str) -> str:
        answer = http_client.ask("GET", url, headers=self._headers, timeout_s=self._timeout_s, policy=self._policy)
        return http_client.demand(await answer).body.decode("utf-8", "replace")


def choose_endpoint(app: App, api_name: str) -> str:
    """Return the endpoint's name in the app. Raises WorkerFault naming the endpoints."""
    endpoint = f"/{api_name.lstrip('/')}" if api_name else ""
    if endpoint in app.endpoints:
        return endpoint
    if not endpoint and len(app.endpoints) == 1:
        return next(iter(app.endpoints))
    there = ", ".join(list(app.endpoints)[:12]) or "none"
    raise WorkerFault("not_found", f"{f'there is no {endpoint}; ' if endpoint else ''}set api_name to one of: {there}")


def _write_input(place: Input, value: Any) -> JsonValue:
    if place.is_file and isinstance(value, str):
        return {"path": value, "url": value, "meta": {"_type": "gradio.FileData"}}
    return value


def _result(stream: str, space: str) -> JsonValue:
    """Read the value from a stream of events: `complete` with a list of outputs, or `error`."""
    event = ""
    for line in stream.splitlines():
        field, _, value = line.partition(":")
        if field == "event":
            event = value.strip()
        elif field == "data" and event in ("complete", "error"):
            try:
                data = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise WorkerFault("invalid_response", f"{space} answered with what is no JSON: {error}") from error
            if event == "error":
                reason = data.get("error") if isinstance(data, dict) else data
                raise WorkerFault("tool_error", f"{space}: {reason or 'it failed and did not say why'}"[:500])
            shown = _note_files(data)
            return shown[0] if isinstance(shown, list) and len(shown) == 1 else shown
    raise WorkerFault("invalid_response", f"{space} ended without a result", retryable=True)


def _note_files(value: Any, depth: int = 0) -> JsonValue:
    """Replace every file in the outputs by a note."""
    if depth > 50:
        raise WorkerFault("invalid_response", "the result is nested too deep")
    if isinstance(value, list):
        return [_note_files(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    meta = value.get("meta")
    if isinstance(meta, dict) and meta.get("_type") == "gradio.FileData":
        size = f", {value['size']:,} bytes" if isinstance(value.get("size"), int) else ""
        name = value.get("orig_name") or str(value.get("path") or "").rpartition("/")[2]
        return f"(file: {name or 'without a name'}, {value.get('mime_type') or 'type not given'}{size})"
    return {name: _note_files(item, depth + 1) for name, item in value.items()}

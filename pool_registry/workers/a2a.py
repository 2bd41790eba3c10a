"""Kind `a2a`: an agent elsewhere that speaks the Agent2Agent protocol (https://a2a-protocol.org) over JSON-RPC.

A call sends one message and waits for what comes of it: a message, or a task, which is asked for until it ends.
Versions 0.3 and 1.0 differ in names alone; each is a row of DIALECTS.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.network import http_client
from pool_registry.network.address_policy import ALLOW_PRIVATE, AddressPolicy
from pool_registry.network.http_values import Auth, KeyReference, ServerUrl, authorize, once, reachable
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, one_string

MAX_MESSAGE = 900
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 5.0
RUNNING = frozenset({"submitted", "working", "unspecified", "unknown"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one version of the protocol."""

    send: str
    get: str
    role: str
    part: Mapping[str, JsonValue]  # what stands in a part beside its text
    headers: Mapping[str, str]


DIALECTS: Mapping[str, Dialect] = {
    "0.3": Dialect("message/send", "tasks/get", "user", {"kind": "text"}, {}),
    "1.0": Dialect("SendMessage", "GetTask", "ROLE_USER", {}, {"a2a-version": "1.0"}),
}


class A2aConfig(StrictModel):
    url: ServerUrl = Field(description="Where the agent takes JSON-RPC, as its card says.")
    version: Literal["0.3", "1.0"] = Field(default="0.3", description="The version of A2A that it speaks there.")
    api_key: KeyReference = Field(default="", description="env:NAME or keyring:NAME; the key itself is never stored.")
    auth: Auth = Field(default_factory=Auth, description="Where the key goes.")
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)


class A2a(Worker[A2aConfig]):
    label = "A2A agent"
    summary = "An agent elsewhere that speaks A2A."
    icon = "M4 6h9v7H8l-4 3z M11 16h5l4 3v-9h-4"
    Config = A2aConfig
    template = {"needs": "an address", "line": "An agent elsewhere; pasting its card is quicker."}
    remote = True
    sample = {"message": "Say hello in one word."}

    @classmethod
    def may_charge(cls, config: A2aConfig) -> bool:
        return bool(config.api_key)

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return one_string("message", "What it is asked to do, with all that it has to know.")

    async def call(self, call: Call) -> Reply:
        dialect = DIALECTS[self.config.version]
        message: dict[str, JsonValue] = {
            "messageId": uuid.uuid4().hex,
            "role": dialect.role,
            "parts": [{**dialect.part, "text": call.text("message")}],
        }
        if dialect.part:
            message["kind"] = "message"
        with once("POST"):
            result = await self._ask(dialect.send, {"message": message})
            return Reply(await self._wait(_unwrap(result)))

    async def check(self) -> str:
        authorize(self.config.url, {}, self.config.auth, self.config.api_key)
        return await reachable(self.config.url, AddressPolicy(private=self.config.allow_private, typed=True))

    async def _wait(self, result: Mapping[str, Any]) -> JsonValue:
        """The value of a message, or of a task once it has ended; the call's own time-out ends the wait."""
        wait_s = FIRST_WAIT_S
        while (state := _read_state(result)) in RUNNING:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            result = _unwrap(await self._ask(DIALECTS[self.config.version].get, {"id": str(result.get("id"))}))
        if state in ("", "completed"):
            return _read_value(result)
        reason = _write_text(_list_parts(_get_message(result))) or "it did not say why"
        raise WorkerFault("tool_error", f"the agent's task is {state.replace('_', ' ')}: {reason}"[:MAX_MESSAGE])

    async def _ask(self, method: str, params: JsonValue) -> Any:
        """The result of one request. Raises WorkerFault, also for an error in the answer."""
        config, dialect = self.config, DIALECTS[self.config.version]
        url, headers = authorize(config.url, dialect.headers, config.auth, config.api_key)
        body: JsonValue = {"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}
        policy = AddressPolicy(private=config.allow_private, typed=True)
        answer = await http_client.ask_json("POST", url, headers, self.spec.timeout_s, body, policy)
        if not isinstance(answer, dict):
            raise WorkerFault("invalid_response", "the agent's answer is no JSON-RPC response")
        error = answer.get("error")
        if error:
            message = error.get("message") if isinstance(error, dict) else error
            raise WorkerFault("tool_error", f"the agent refuses: {message or 'it did not say why'}"[:MAX_MESSAGE])
        return answer.get("result")


def _unwrap(result: Any) -> Mapping[str, Any]:
    """The message or task of a result: 1.0 names it. Raises WorkerFault."""
    if isinstance(result, dict):
        inner = result.get("task", result.get("message", result))
        if isinstance(inner, dict) and ("parts" in inner or "status" in inner):
            return inner
    raise WorkerFault("invalid_response", "the agent's answer holds neither a message nor a task")


def _read_state(result: Mapping[str, Any]) -> str:
    """The state of a task in the words of 0.3; "" for a message."""
    status = result.get("status")
    state = status.get("state") if isinstance(status, dict) else ""
    return str(state or "").lower().removeprefix("task_state_").replace("-", "_")


def _get_message(result: Mapping[str, Any]) -> Any:
    status = result.get("status")
    return status.get("message") if isinstance(status, dict) else None


def _list_parts(holder: Any) -> list[Mapping[str, Any]]:
    parts = holder.get("parts") if isinstance(holder, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _read_value(result: Mapping[str, Any]) -> JsonValue:
    """What a message or the artifacts of a task hold: the data where that is all, else the text."""
    artifacts = result.get("artifacts")
    holders = artifacts if isinstance(artifacts, list) and artifacts else [_get_message(result) or result]
    parts = [part for holder in holders for part in _list_parts(holder)]
    if len(parts) == 1 and "data" in parts[0]:
        value: JsonValue = parts[0]["data"]
        return value
    return _write_text(parts)


def _write_text(parts: list[Mapping[str, Any]]) -> str:
    return "\n".join(_list_texts(parts)).strip()


def _list_texts(parts: list[Mapping[str, Any]]) -> Iterator[str]:
    for part in parts:
        file = part.get("file")
        place = file.get("uri") if isinstance(file, dict) else part.get("url")
        if isinstance(part.get("text"), str):
            yield part["text"]
        elif "data" in part:
            yield json.dumps(part["data"], ensure_ascii=False)
        else:
            yield f"(a file: {place})" if isinstance(place, str) else "(a file)"

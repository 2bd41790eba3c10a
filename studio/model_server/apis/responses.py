"""`/v1/responses`: an episode as a response, whole or streamed.

EpisodeProgress is the summary of a reasoning item; after it come calls of the client's tools, or the answer as a
message item.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from pool_registry.actions import Usage
from studio.frame.sse import KEEP_ALIVE, KEEP_ALIVE_S, message
from studio.model_server.client_tools import ClientCall
from studio.model_server.errors import ApiError
from studio.model_server.request import ResponsesRequest
from studio.model_server.served_episode import ServedAnswer, ServedEpisode

Keep = Callable[[dict[str, Any]], None]


class ModelResponse:
    """Builds the response to one request of an episode; its id holds the trace's. `keep` is given each document that
    can be asked for later."""

    def __init__(self, model: str, served: ServedEpisode, body: ResponsesRequest, keep: Keep) -> None:
        number = "" if served.requests == 1 else f"-{served.requests}"
        self._served, self._keep = served, keep
        self._key = f"{served.id}{number}"
        self._sequence = -1
        self._head: dict[str, Any] = {
            "id": f"resp_{self._key}",
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            "instructions": body.instructions,
            "metadata": body.metadata or {},
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "tool_choice": body.tool_choice or "auto",
            "tools": list(body.tools or []),
            "text": body.text or {"format": {"type": "text"}},
            "reasoning": {"effort": None, "summary": None, **(body.reasoning or {})},
            "max_output_tokens": body.max_output_tokens,
            "previous_response_id": body.previous_response_id,
            "background": bool(body.background),
            "truncation": "disabled",
            "store": body.store is not False,
            "user": body.user,
        }

    @property
    def id(self) -> str:
        return str(self._head["id"])

    async def document(self) -> dict[str, Any]:
        """Wait for the episode and write the response. Raises ApiError where there is no answer."""
        reasoning, progress = "", self._served.progress
        async for event in self._served.events(KEEP_ALIVE_S):
            reasoning += progress.describe(event) or "" if event is not None else ""
        return self._finish(await self._served.answer(), reasoning)

    async def run_in_background(self) -> None:
        """Wait for the episode and keep its response, whatever becomes of the client."""
        try:
            await self.document()
        except ApiError as error:
            self._keep(self._error_document(error, ""))

    def queued_document(self) -> dict[str, Any]:
        """The response of an episode that has begun."""
        document = self._head_document("in_progress" if self._served.request.background else "queued")
        self._keep(document)
        return document

    def _finish(self, answer: ServedAnswer, reasoning: str) -> dict[str, Any]:
        """The response with its answer or calls."""
        output = [self._reasoning(reasoning)] if reasoning else []
        output += [self._call_item(index, call) for index, call in enumerate(answer.calls)]
        complete = answer.finish != "length"
        if not answer.calls and (complete or answer.text):
            output.append(self._message(answer.text, "completed" if complete else "incomplete"))
        document = {
            **self._head_document("completed" if complete else "incomplete", output),
            "incomplete_details": None if complete else {"reason": "max_output_tokens"},
            "usage": response_usage(answer.usage),
            "podium": answer.report(self._served.trace),
        }
        self._keep(document)
        return document

    async def stream(self) -> AsyncIterator[str]:
        """Yield the API's server-sent events. The episode is stopped when the client stops reading, unless it runs in
        the background."""
        served, progress, reasoning = self._served, self._served.progress, ""
        try:
            yield self._next_event("created", response=self._head_document("in_progress"))
            yield self._next_event("in_progress", response=self._head_document("in_progress"))
            async for event in served.events(KEEP_ALIVE_S):
                if event is None:
                    yield KEEP_ALIVE
                elif (line := progress.describe(event)) is not None:
                    if not reasoning:
                        yield self._item_event("added", 0, self._reasoning("", "in_progress"))
                        yield self._summary_event("part.added", part=_summary_text(""))
                    reasoning += line
                    yield self._summary_event("text.delta", delta=line)
            if reasoning:
                yield self._summary_event("text.done", text=reasoning)
                yield self._summary_event("part.done", part=_summary_text(reasoning))
                yield self._item_event("done", 0, self._reasoning(reasoning))
            try:
                response = self._finish(await served.answer(), reasoning)
            except ApiError as error:
                response = self._error_document(error, reasoning)
                self._keep(response)
                yield self._next_event("failed", response=response)
                return
            for index, item in enumerate(response["output"]):
                for text in self._list_item_events(item, index):
                    yield text
            yield self._next_event(response["status"], response=response)
        finally:
            if not served.request.background:
                served.release()

    def _list_item_events(self, item: dict[str, Any], index: int) -> list[str]:
        """The events of an item behind the reasoning, from its start to its end."""
        if item["type"] == "function_call":
            return self._list_call_events(item, index)
        return self._list_message_events(item, index) if item["type"] == "message" else []

    def _list_call_events(self, item: dict[str, Any], index: int) -> list[str]:
        where = {"item_id": item["id"], "output_index": index}
        arguments = item["arguments"]
        return [
            self._item_event("added", index, {**item, "arguments": "", "status": "in_progress"}),
            self._next_event("function_call_arguments.delta", **where, delta=arguments),
            self._next_event("function_call_arguments.done", **where, name=item["name"], arguments=arguments),
            self._item_event("done", index, item),
        ]

    def _list_message_events(self, item: dict[str, Any], index: int) -> list[str]:
        where = {"item_id": item["id"], "output_index": index, "content_index": 0}
        text = item["content"][0]["text"]
        return [
            self._item_event("added", index, {**item, "content": [], "status": "in_progress"}),
            self._next_event("content_part.added", **where, part=_output_text("")),
            self._next_event("output_text.delta", **where, delta=text, logprobs=[]),
            self._next_event("output_text.done", **where, text=text, logprobs=[]),
            self._next_event("content_part.done", **where, part=_output_text(text)),
            self._item_event("done", index, item),
        ]

    def _next_event(self, name: str, /, **fields: Any) -> str:
        self._sequence += 1
        kind = f"response.{name}"
        return message({"type": kind, "sequence_number": self._sequence, **fields}, kind)

    def _item_event(self, what: str, index: int, item: dict[str, Any]) -> str:
        return self._next_event(f"output_item.{what}", output_index=index, item=item)

    def _summary_event(self, what: str, **fields: Any) -> str:
        where = {"item_id": f"rs_{self._key}", "output_index": 0, "summary_index": 0}
        return self._next_event(f"reasoning_summary_{what}", **where, **fields)

    def _head_document(self, status: str, output: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        empty = {"error": None, "incomplete_details": None, "usage": None}
        return {**self._head, **empty, "status": status, "output": output or []}

    def _error_document(self, error: ApiError, reasoning: str) -> dict[str, Any]:
        output = [self._reasoning(reasoning)] if reasoning else []
        problem = {"code": "server_error", "message": f"{error.code}: {error}"}
        return {**self._head_document("failed", output), "error": problem}

    def _reasoning(self, text: str, status: str = "completed") -> dict[str, Any]:
        summary = [_summary_text(text)] if text else []
        return {"type": "reasoning", "id": f"rs_{self._key}", "status": status, "summary": summary}

    def _message(self, text: str, status: str) -> dict[str, Any]:
        head = {"type": "message", "id": f"msg_{self._key}", "role": "assistant", "status": status}
        return {**head, "content": [_output_text(text)]}

    def _call_item(self, index: int, call: ClientCall) -> dict[str, Any]:
        return {
            "type": "function_call",
            "id": f"fc_{self._key}_{index}",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
            "status": "completed",
        }


def response_usage(total: Usage) -> dict[str, Any]:
    """The usage of all turns and workers together. `cost` (US dollars) is not part of the API."""
    return {
        "input_tokens": total.tokens_in,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": total.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total.tokens,
        "cost": total.cost,
    }


def _summary_text(text: str) -> dict[str, str]:
    return {"type": "summary_text", "text": text}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

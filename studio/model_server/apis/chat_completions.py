"""`/v1/chat/completions`: an episode as a chat completion, whole or streamed.

EpisodeProgress is `reasoning_content`, as reasoning models send theirs; the answer is the content, and calls of the
client's tools are its `tool_calls`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from pool_registry.actions import Usage
from studio.frame.sse import KEEP_ALIVE, KEEP_ALIVE_S, message
from studio.model_server.client_tools import write_tool_call
from studio.model_server.errors import ApiError
from studio.model_server.served_episode import ServedAnswer, ServedEpisode


class ChatCompletion:
    """Builds the completion for one request of an episode; its id holds the trace's."""

    def __init__(self, model: str, fingerprint: str, served: ServedEpisode) -> None:
        number = "" if served.requests == 1 else f"-{served.requests}"
        self._served = served
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{served.id}{number}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def document(self, answer: ServedAnswer) -> dict[str, Any]:
        """The completion of an episode that has an answer or calls the client's tools."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.calls:
            message |= {"content": None, "tool_calls": [write_tool_call(call) for call in answer.calls]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": completion_usage(answer.usage),
            "podium": answer.report(self._served.trace),
        }

    async def stream(self) -> AsyncIterator[str]:
        """Yield server-sent chunks. The episode is stopped when the client stops reading."""
        served, progress = self._served, self._served.progress
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for event in served.events(KEEP_ALIVE_S):
                if event is None:
                    yield KEEP_ALIVE
                elif (line := progress.describe(event)) is not None:
                    yield self._chunk({"reasoning_content": line})
            try:
                answer = await served.answer()
            except ApiError as error:
                yield message(error.document)
                return
            if answer.calls:
                calls = [{"index": index, **write_tool_call(call)} for index, call in enumerate(answer.calls)]
                yield self._chunk({"tool_calls": calls})
            else:
                yield self._chunk({"content": answer.text})
            yield self._chunk({}, answer.finish, {"podium": answer.report(served.trace)})
            if served.request.include_usage:
                yield message({**self._chunk_head(), "choices": [], "usage": completion_usage(answer.usage)})
            yield "data: [DONE]\n\n"
        finally:
            served.release()

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, more: dict[str, Any] | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return message({**self._chunk_head(), "choices": [choice], **(more or {})})

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}


def completion_usage(total: Usage) -> dict[str, Any]:
    """The usage of all turns and workers together. `cost` (US dollars) is not part of the API."""
    return {
        "prompt_tokens": total.tokens_in,
        "completion_tokens": total.tokens_out,
        "total_tokens": total.tokens,
        "cost": total.cost,
    }

"""`/v1/responses`: an episode as a response, whole or streamed.

EpisodeProgress is the summary of a reasoning item, the answer a message item after it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded
from pool_registry.actions import Usage
from studio.frame.sse import KEEP_ALIVE, KEEP_ALIVE_S, message
from studio.model_server.chat_completions import answer_text
from studio.model_server.errors import ApiError, episode_error
from studio.model_server.progress import EpisodeProgress
from studio.model_server.service import ServedEpisode


class ModelResponse:
    """Builds the response of one episode; its id holds the trace's."""

    def __init__(self, model: str, episode: str, instructions: str | None) -> None:
        self._episode = episode
        self._sequence = -1
        self._head: dict[str, Any] = {
            "id": f"resp_{episode}",
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            "instructions": instructions,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "text": {"format": {"type": "text"}},
            "truncation": "disabled",
            "store": False,
        }

    def document(self, episode: Episode, ended: EpisodeEnded, reasoning: str = "") -> dict[str, Any]:
        """The response of an episode that has an answer, or ran out of tokens."""
        complete = ended.outcome == "answered"
        output = [self._reasoning(reasoning)] if reasoning else []
        if complete:
            output.append(self._message(answer_text(ended)))
        return {
            **self._head_document("completed" if complete else "incomplete", output),
            "incomplete_details": None if complete else {"reason": "max_output_tokens"},
            "usage": response_usage(episode.usage),
        }

    async def stream(self, served: ServedEpisode) -> AsyncIterator[str]:
        """Yield the API's server-sent events. The episode is stopped when the client stops reading."""
        progress, reasoning = EpisodeProgress(), ""
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
            episode, ended = await served.result()
            error = episode_error(ended, episode, served.pool)
            if error is not None:
                yield self._next_event("failed", response=self._error_document(error, reasoning))
                return
            if ended.outcome == "answered":
                for text in self._message_events(answer_text(ended), 1 if reasoning else 0):
                    yield text
            response = self.document(episode, ended, reasoning)
            yield self._next_event(response["status"], response=response)
        finally:
            served.stop()

    def _message_events(self, text: str, index: int) -> list[str]:
        """The events of the message item, from its start to its end."""
        where = {"item_id": f"msg_{self._episode}", "output_index": index, "content_index": 0}
        return [
            self._item_event("added", index, {**self._message(""), "content": [], "status": "in_progress"}),
            self._next_event("content_part.added", **where, part=_output_text("")),
            self._next_event("output_text.delta", **where, delta=text, logprobs=[]),
            self._next_event("output_text.done", **where, text=text, logprobs=[]),
            self._next_event("content_part.done", **where, part=_output_text(text)),
            self._item_event("done", index, self._message(text)),
        ]

    def _next_event(self, name: str, **fields: Any) -> str:
        self._sequence += 1
        kind = f"response.{name}"
        return message({"type": kind, "sequence_number": self._sequence, **fields}, kind)

    def _item_event(self, what: str, index: int, item: dict[str, Any]) -> str:
        return self._next_event(f"output_item.{what}", output_index=index, item=item)

    def _summary_event(self, what: str, **fields: Any) -> str:
        where = {"item_id": f"rs_{self._episode}", "output_index": 0, "summary_index": 0}
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
        return {"type": "reasoning", "id": f"rs_{self._episode}", "status": status, "summary": summary}

    def _message(self, text: str) -> dict[str, Any]:
        head = {"type": "message", "id": f"msg_{self._episode}", "role": "assistant", "status": "completed"}
        return {**head, "content": [_output_text(text)]}


def response_usage(total: Usage) -> dict[str, Any]:
    """The usage of all turns and workers together. `cost` (US dollars) is not part of the API."""
    return {
        "input_tokens": total.tokens_in,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": total.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total.tokens,
        "cost": total.cost,
    }


def _summary_text(text: str) -> dict[str, str]:
    return {"type": "summary_text", "text": text}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

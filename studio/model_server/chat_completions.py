"""`/v1/chat/completions`: an episode as a chat completion, whole or streamed.

EpisodeProgress is `reasoning_content`, as reasoning models send theirs; the answer is the content.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded
from pool_registry.actions import Usage, as_text
from studio.frame.sse import KEEP_ALIVE, KEEP_ALIVE_S, message
from studio.model_server.errors import episode_error
from studio.model_server.progress import EpisodeProgress
from studio.model_server.service import ServedEpisode


class ChatCompletion:
    """Builds the completion of one episode; its id holds the trace's."""

    def __init__(self, model: str, fingerprint: str, episode: str) -> None:
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{episode}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def document(self, episode: Episode, ended: EpisodeEnded) -> dict[str, Any]:
        """The completion of an episode that has an answer, or ran out of tokens."""
        message = {"role": "assistant", "content": answer_text(ended), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(ended)}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": completion_usage(episode.usage),
        }

    async def stream(self, served: ServedEpisode, include_usage: bool) -> AsyncIterator[str]:
        """Yield server-sent chunks. The episode is stopped when the client stops reading."""
        progress = EpisodeProgress()
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for event in served.events(KEEP_ALIVE_S):
                if event is None:
                    yield KEEP_ALIVE
                elif (line := progress.describe(event)) is not None:
                    yield self._chunk({"reasoning_content": line})
            episode, ended = await served.result()
            error = episode_error(ended, episode, served.pool)
            if error is not None:
                yield message(error.document)
                return
            yield self._chunk({"content": answer_text(ended)})
            yield self._chunk({}, finish_reason(ended))
            if include_usage:
                yield message({**self._chunk_head(), "choices": [], "usage": completion_usage(episode.usage)})
            yield "data: [DONE]\n\n"
        finally:
            served.stop()

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return message({**self._chunk_head(), "choices": [choice]})

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}


def answer_text(ended: EpisodeEnded) -> str:
    return "" if ended.answer is None else as_text(ended.answer)


def finish_reason(ended: EpisodeEnded) -> str:
    return "length" if ended.outcome == "max_tokens" else "stop"


def completion_usage(total: Usage) -> dict[str, Any]:
    """The usage of all turns and workers together. `cost` (US dollars) is not part of the API."""
    return {
        "prompt_tokens": total.tokens_in,
        "completion_tokens": total.tokens_out,
        "total_tokens": total.tokens,
        "cost": total.cost,
    }

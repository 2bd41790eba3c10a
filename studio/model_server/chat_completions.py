"""`/v1/chat/completions`: an episode as a chat completion, whole or streamed.

Progress is `reasoning_content`, as reasoning models send theirs; the answer is the content.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded
from pool_registry.actions import Usage, as_text
from studio.frame.sse import KEEP_ALIVE, KEEP_ALIVE_S, data
from studio.model_server.errors import failure_of
from studio.model_server.progress import Progress
from studio.model_server.service import ServedEpisode


class Completion:
    """One answer in the making; its id holds the trace's."""

    def __init__(self, model: str, fingerprint: str, episode: str) -> None:
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{episode}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def whole(self, episode: Episode, ended: EpisodeEnded) -> dict[str, Any]:
        """The completion of an episode that has an answer, or ran out of tokens."""
        message = {"role": "assistant", "content": answer_text(ended), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish(ended)}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage(episode.usage)}

    async def stream(self, running: ServedEpisode, include_usage: bool) -> AsyncIterator[str]:
        """Server-sent chunks; the episode is stopped when nobody reads them any more."""
        progress = Progress()
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for event in running.events(KEEP_ALIVE_S):
                if event is None:
                    yield KEEP_ALIVE
                elif (line := progress.line(event)) is not None:
                    yield self._chunk({"reasoning_content": line})
            episode, ended = await running.result()
            failure = failure_of(ended, running.id)
            if failure is not None:
                yield data(failure.document)
                return
            yield self._chunk({"content": answer_text(ended)})
            yield self._chunk({}, finish(ended))
            if include_usage:
                yield data({**self._chunk_head(), "choices": [], "usage": usage(episode.usage)})
            yield "data: [DONE]\n\n"
        finally:
            running.stop()

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return data({**self._chunk_head(), "choices": [choice]})

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}


def answer_text(ended: EpisodeEnded) -> str:
    return "" if ended.answer is None else as_text(ended.answer)


def finish(ended: EpisodeEnded) -> str:
    return "length" if ended.outcome == "max_tokens" else "stop"


def usage(total: Usage) -> dict[str, Any]:
    """What all turns and workers used together; `cost` (US dollars) is ours."""
    return {
        "prompt_tokens": total.tokens_in,
        "completion_tokens": total.tokens_out,
        "total_tokens": total.tokens,
        "cost": total.cost,
    }

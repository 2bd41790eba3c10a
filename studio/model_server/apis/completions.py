"""`/v1/completions`, the older API of plain prompts: each prompt is a question, and an episode of its own.

The prompts of a list are answered in their order, one at a time, so that one request takes one place among those that
are answered at once. A stream holds the text alone: the API has no field for what happens before it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field, StrictBool

from pool_registry.actions import NO_USAGE
from studio.frame.sse import KEEP_ALIVE, KEEP_ALIVE_S, message
from studio.model_server.apis.chat_completions import completion_usage
from studio.model_server.conversation import ConversationMessage, read_question
from studio.model_server.errors import TOO_LARGE, ApiError, invalid_value
from studio.model_server.parameters import explain_ignored
from studio.model_server.request import EpisodeRequest, RequestBase, StreamOptions, read_stops
from studio.model_server.served_episode import ServedAnswer, ServedEpisode

MAX_PROMPTS = 100
_NO_TOOLS = "this API calls no tools of the client; use /v1/chat/completions"
_TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")


class CompletionRequest(RequestBase):
    prompt: str | Sequence[object]
    echo: StrictBool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    stop: str | Sequence[str] | None = Field(default=None, max_length=1000)

    def episode_requests(self) -> list[EpisodeRequest]:
        """Check the request's content: one episode for each prompt. Raises ApiError naming what cannot be used."""
        ignored = explain_ignored(self.model_extra or {})
        ignored |= {name: _NO_TOOLS for name in _TOOL_FIELDS if getattr(self, name) is not None}
        return [self._request(prompt, where, ignored) for where, prompt in self._list_prompts()]

    def _list_prompts(self) -> list[tuple[str, str]]:
        if isinstance(self.prompt, str):
            return [("prompt", self.prompt)]
        if not self.prompt:
            raise invalid_value("prompt", "prompt is an empty list; write a question")
        if len(self.prompt) > MAX_PROMPTS:
            message = f"there are {len(self.prompt):,} prompts; {MAX_PROMPTS} can be answered in one request"
            raise ApiError(413, message, TOO_LARGE, "prompt")
        texts = [text for text in self.prompt if isinstance(text, str)]
        if len(texts) < len(self.prompt):
            raise invalid_value("prompt", "prompt must be a text or a list of texts; numbers of tokens are not read")
        return [(f"prompt[{index}]", text) for index, text in enumerate(texts)]

    def _request(self, prompt: str, where: str, ignored: Mapping[str, str]) -> EpisodeRequest:
        messages = (ConversationMessage("user", prompt),)
        return replace(
            self._draft(read_question(messages, where), messages),
            include_usage=self.stream_options is not None and self.stream_options.include_usage,
            stop=read_stops(self.stop),
            max_answer_tokens=self.max_tokens,
            ignored=ignored,
        )


class TextCompletion:
    """Builds the completion of one request. `start` starts an episode; the first is started here, so that what is wrong
    with the request is known before a stream begins. Raises what `start` raises."""

    def __init__(
        self,
        model: str,
        fingerprint: str,
        requests: Sequence[EpisodeRequest],
        echo: bool,
        start: Callable[[EpisodeRequest], ServedEpisode],
    ) -> None:
        self._requests, self._echo, self._start = requests, echo, start
        self._episode = start(requests[0])
        self.trace, self.ignored, self.headers = self._episode.trace, self._episode.ignored, self._episode.headers
        self._usage = NO_USAGE
        self._head: dict[str, Any] = {
            "id": f"cmpl-{self._episode.id}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def stop(self) -> None:
        """Stop the episode that runs."""
        self._episode.stop()

    def release(self) -> None:
        """The request is over."""
        self._episode.release()

    async def document(self) -> dict[str, Any]:
        """Wait for the answers to all prompts. Raises ApiError where one has none."""
        choices = [choice async for choice in self._write_choices() if choice is not None]
        return {**self._head, "choices": choices, "usage": completion_usage(self._usage)}

    async def stream(self) -> AsyncIterator[str]:
        """Yield server-sent chunks. The episode is stopped when the client stops reading."""
        try:
            async for choice in self._write_choices():
                if choice is None:
                    yield KEEP_ALIVE
                    continue
                ends = {"text": "", "finish_reason": choice["finish_reason"]}
                yield self._chunk([{**choice, "finish_reason": None}])
                yield self._chunk([{**choice, **ends}])
            if self._requests[0].include_usage:
                yield message({**self._head, "choices": [], "usage": completion_usage(self._usage)})
            yield "data: [DONE]\n\n"
        except ApiError as error:
            yield message(error.document)
        finally:
            self.release()

    async def _write_choices(self) -> AsyncIterator[dict[str, Any] | None]:
        """The choice of each prompt; None whenever there was no news for a while."""
        for index, request in enumerate(self._requests):
            if index:
                self._episode = self._start(request)
            async for event in self._episode.events(KEEP_ALIVE_S):
                if event is None:
                    yield None
            answer = await self._episode.answer()
            self._usage = self._usage + answer.usage
            yield self._choice(index, request, answer)

    def _choice(self, index: int, request: EpisodeRequest, answer: ServedAnswer) -> dict[str, Any]:
        return {
            "index": index,
            "text": f"{request.question}{answer.text}" if self._echo else answer.text,
            "logprobs": None,
            "finish_reason": answer.finish,
            "podium": answer.report(self._episode.trace),
        }

    def _chunk(self, choices: Sequence[Mapping[str, Any]]) -> str:
        return message({**self._head, "choices": choices})

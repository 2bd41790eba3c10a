"""What can go wrong with a served request, in the format that clients of the OpenAI API read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engine.events import EpisodeEnded

TRACE_HEADER = "x-podium-trace"
# An episode has cost time and money: official clients would start it twice more on their own.
ONCE = {"x-should-retry": "false"}
_STATUS = {"deadline": 504, "stopped": 503, "orchestrator_failed": 502, "max_cost": 422, "max_rounds": 422}


class ApiError(Exception):
    """A refusal or a failure: HTTP status, a sentence, and the fields of the API's error object."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param
        self.headers = dict(headers or {})

    @property
    def document(self) -> dict[str, Any]:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


def unsupported(param: str, message: str) -> ApiError:
    """A parameter or content that the pool cannot honour."""
    return ApiError(400, message, "unsupported_parameter", param)


def wrong(param: str, message: str) -> ApiError:
    """A parameter that is not what it should be."""
    return ApiError(400, message, "invalid_value", param)


def failure_of(ended: EpisodeEnded, episode: str) -> ApiError | None:
    """Why an episode has no answer to send, or None.

    `max_tokens` is no failure: the API has a word of its own for it (`length`, `incomplete`).
    """
    if ended.outcome in ("answered", "max_tokens"):
        return None
    message = ended.reason or ended.outcome
    headers = {TRACE_HEADER: episode, **ONCE}
    return ApiError(_STATUS[ended.outcome], f"{message} The trace is {episode}.", ended.outcome, headers=headers)

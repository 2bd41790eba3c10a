"""What can go wrong with a served request, in the format that clients of the OpenAI API read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded
from pool_registry.errors import StorageError
from pool_registry.pool import Pool
from studio.orchestrators.offers import format_offers, list_offers

TRACE_HEADER = "x-podium-trace"
IGNORED_HEADER = "x-podium-ignored"  # names of the parameters without effect; the document says why
FOLLOW_UP_HEADER = "x-podium-follow-up"  # how the last message was read
# Official clients repeat a failed request twice. An episode costs time and money, so they are told not to.
NO_RETRY = {"x-should-retry": "false"}
REQUIRES_APPROVAL = "requires_approval"
TOO_LARGE = "request_too_large"
_STATUS = {
    "deadline": 504,
    "stopped": 503,
    "orchestrator_failed": 502,
    "max_cost": 422,
    "max_rounds": 422,
    "gave_up": 422,
    "rejected": 403,
}


class ApiError(Exception):
    """An error response: HTTP status, message, and the fields of the API's error object."""

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


class ApprovalRequired(ApiError):
    """A run whose plan waits for a person; `plan` is what it would do."""

    def __init__(self, plan: dict[str, Any]) -> None:
        why = " ".join(reason["sentence"] for reason in plan["reasons"])
        message = f"The plan waits for approval. {why} Decide with POST /v1/approvals/{plan['id']}, or in the studio."
        super().__init__(409, message, REQUIRES_APPROVAL, headers={TRACE_HEADER: plan["id"], **NO_RETRY})
        self.plan = plan

    @property
    def document(self) -> dict[str, Any]:
        return {"error": {**super().document["error"], "type": REQUIRES_APPROVAL, "approval": self.plan}}


def not_supported(param: str, message: str) -> ApiError:
    """A parameter or content that the model server does not support."""
    return ApiError(400, message, "unsupported_parameter", param)


def invalid_value(param: str, message: str) -> ApiError:
    """A parameter with a wrong type or value."""
    return ApiError(400, message, "invalid_value", param)


def refuse_unrecorded(error: StorageError) -> ApiError:
    """An answer that is not sent because its trace is not on disk."""
    message = f"there is an answer, but it cannot be recorded, so it is not sent: {error}"
    return ApiError(503, message, "not_recorded", headers=NO_RETRY)


def unfit_answer(trace: str, problem: str, remark: str) -> ApiError:
    """An answer that does not fit the form which the request wants; `remark` says what hinders."""
    sentences = [f"the answer does not fit the response format: {problem}", remark, f"The trace is {trace}"]
    message = "".join(f"{sentence}. " for sentence in sentences if sentence).rstrip()
    return ApiError(422, message, "invalid_answer", "response_format", headers={TRACE_HEADER: trace, **NO_RETRY})


def episode_error(ended: EpisodeEnded, episode: Episode, pool: Pool) -> ApiError | None:
    """Why an episode has no answer to send and what can be tried next, or None.

    `max_tokens` is not an error: the API has its own term for it (`length`, `incomplete`).
    """
    if ended.outcome in ("answered", "max_tokens"):
        return None
    message = ended.reason or ended.outcome
    headers = {TRACE_HEADER: episode.id, **NO_RETRY}
    lines = [f"{message} The trace is {episode.id}.", format_offers(list_offers(episode, pool))]
    return ApiError(_STATUS[ended.outcome], "\n".join(filter(None, lines)), ended.outcome, headers=headers)

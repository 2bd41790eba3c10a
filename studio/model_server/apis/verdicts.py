"""Verdicts of clients: whether the answer of a completion or response is right, and which one is.

They are stored as those of the page are: a wrong answer is imitated nowhere, a judge is measured on both, and where the
pool wants it and may learn from what clients send, the question is tried once more.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.errors import EpisodeNotFound, OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.errors import PoolError
from pool_registry.kinds import field_problems
from studio.access.permissions import needs
from studio.model_server.errors import ApiError
from trainer.demonstrations.second_try import take_verdict
from trainer.errors import TrainerError

MAX_ANSWER_CHARS = 50_000


class ServedVerdict(BaseModel):
    """What a client says of an answer: whether it is right, or, instead, which one is."""

    model_config = ConfigDict(extra="forbid")

    right: bool | None = None
    answer: str = Field(default="", max_length=MAX_ANSWER_CHARS)

    @model_validator(mode="after")
    def _says_something(self) -> ServedVerdict:
        if self.right is None and not self.answer.strip():
            raise ValueError("say right: true or false, or the right answer")
        if self.right and self.answer.strip():
            raise ValueError("say right: true, or another answer, not both")
        return self


def verdict_routes() -> APIRouter:
    """The route below /v1/verdicts; `app.state.service` has the store."""
    router = APIRouter(prefix="/v1/verdicts")

    @router.post("/{name}")
    @needs("editor")
    async def judge(name: str, request: Request) -> JSONResponse:
        try:
            verdict = ServedVerdict.model_validate_json(await request.body())
        except ValidationError as error:
            where, what = field_problems(error)[0]
            raise ApiError(400, f"{where}: {what}" if where else what, "invalid_value", where) from error
        service = request.app.state.service
        document = await asyncio.to_thread(record_verdict, service.store, name, request.state.user, verdict)
        second = await asyncio.to_thread(take_verdict, service.store, document["trace"])
        if second is not None:
            service.try_again(second)
        return JSONResponse({**document, "retry": second.id if second else None})

    return router


def record_verdict(store: Store, name: str, user: str, verdict: ServedVerdict) -> dict[str, Any]:
    """Record the verdict on a completion, response or trace of this user. Raises ApiError."""
    from trainer.demonstrations.episode_task import Judgement, judge_run  # imports what training needs

    trace = find_trace(name)
    try:
        if store.traces.row(trace).user_name != user:
            raise EpisodeNotFound(trace)
        graded = judge_run(store, trace, Judgement(bool(verdict.right), verdict.answer, user, "client"))
    except EpisodeNotFound as error:
        raise ApiError(404, f"there is no completion {name[:80]!r} of yours", "not_found") from error
    except (PoolError, OrchestratorError, TrainerError) as error:
        raise ApiError(409, str(error), "not_judged") from error
    expected = graded.expected or None
    return {"object": "verdict", "id": name, "trace": trace, "right": graded.correct, "expected": expected}


def find_trace(name: str) -> str:
    """The trace that the id of a completion or a response holds; what is neither is taken for a trace's own."""
    return name.removeprefix("chatcmpl-").removeprefix("cmpl-").removeprefix("resp_").partition("-")[0]

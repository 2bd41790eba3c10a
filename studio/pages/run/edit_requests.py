"""Edits of a round as the page sends them, and how they are answered: of a recorded plan, and of one that waits."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.engine.edits import Edit
from orchestrator.errors import DamagedTrace, EpisodeNotFound, InvalidEdits, UnknownOrchestrator
from pool_registry.errors import PoolError
from studio.approvals import NotWaiting
from studio.frame.document import PageDocument
from studio.pages.run.what_if_documents import EditProblems

MAX_EDITS = 1000


class RoundEdits(BaseModel):
    """Edits of one round; steps by the numbers that they have in the run."""

    model_config = ConfigDict(extra="forbid")

    round: int
    edits: list[Edit] = Field(max_length=MAX_EDITS)


class VariedRound(RoundEdits):
    """Edits of a recorded round; `on_copies`: what its steps may change is copied first, and the copy is changed."""

    on_copies: bool = False


def respond_to_edits(work: Callable[[], PageDocument]) -> JSONResponse:
    """The document of `work`, or the problems of the edits. Raises HTTPException where the run cannot be read, and
    where nothing can be decided."""
    try:
        return JSONResponse(work().to_json())
    except InvalidEdits as error:
        return JSONResponse(EditProblems(problems=error.problems).to_json())
    except EpisodeNotFound as error:
        raise HTTPException(404, str(error)) from error
    except (DamagedTrace, NotWaiting, UnknownOrchestrator, PoolError) as error:
        raise HTTPException(409, str(error)) from error

"""The credit of a recorded run, for the Run page."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse

from orchestrator.errors import DamagedTrace, EpisodeNotFound, InvalidEdits
from pool_registry.errors import PoolError
from studio.access.permissions import needs
from studio.episode_documents.credit import measure_recorded_credit
from studio.runtime import Runtime


def credit_routes(runtime: Runtime) -> APIRouter:
    """The route below /api/episodes. It calls only workers without effects."""
    router = APIRouter()

    @router.post("/{episode_id}/credit")
    @needs("editor")
    def credit(episode_id: str) -> JSONResponse:
        try:
            document = runtime.run(measure_recorded_credit(runtime.store, episode_id))
        except EpisodeNotFound as error:
            raise HTTPException(404, str(error)) from error
        except InvalidEdits as error:
            raise HTTPException(409, error.problems[0][1]) from error
        except (DamagedTrace, PoolError) as error:
            raise HTTPException(409, str(error)) from error
        return JSONResponse(document.to_json())

    return router

"""Downloads: an episode as JSON Lines, session of the Hub, OpenTelemetry spans, picture, graph or page, and a pool with
an orchestrator as a plain Python file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from orchestrator.errors import DamagedTrace, EpisodeNotFound, OrchestratorError, TrackerRefused
from pool_registry.errors import PoolError
from studio.access.permissions import needs
from studio.access.roles import RoleRefused, UserRole, current_rights
from studio.export.formats import export_graphml, export_jsonl, export_otlp, export_page, export_svg
from studio.export.python_file import PROGRAM, list_export_files, zip_files
from studio.export.session_traces import export_session
from studio.runtime import Runtime


def export_routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api."""
    router = APIRouter(prefix="/api")
    store = runtime.store
    formats: dict[str, tuple[str, Callable[[str], str]]] = {
        "trace.jsonl": ("application/x-ndjson", lambda episode: export_jsonl(store, [episode])),
        "session.jsonl": ("application/x-ndjson", lambda episode: export_session(store, episode)),
        "otlp.json": ("application/json", lambda episode: json.dumps(export_otlp(store, [episode]), indent=1)),
        "graph.svg": ("image/svg+xml", lambda episode: export_svg(store, episode)),
        "graph.graphml": ("application/xml", lambda episode: export_graphml(store, episode)),
        "replay.html": ("text/html", lambda episode: export_page(store, episode)),
    }

    @router.get("/episodes/{episode_id}/export/{name}")
    @needs("viewer")
    def episode(episode_id: str, name: str) -> Response:
        if name not in formats:
            raise HTTPException(404, f"there is no format {name!r}; there are: {', '.join(formats)}")
        kind, write = formats[name]
        try:
            content = write(episode_id)
        except EpisodeNotFound as error:
            raise HTTPException(404, str(error)) from error
        except (DamagedTrace, TrackerRefused) as error:
            raise HTTPException(409, str(error)) from error
        headers = {"content-disposition": f'attachment; filename="podium-{episode_id}-{name}"'}
        return Response(content, media_type=kind, headers=headers)

    @router.get("/export/python")
    @needs("viewer")
    def python(pool: str, orchestrator: str, take: Annotated[list[str] | None, Query()] = None) -> Response:
        """The file; a zip file where workers go along with files of this machine."""
        try:
            if take:
                current_rights.get().require(UserRole.EDITOR, "let files of this machine go along")
            files = list_export_files(store.pools.latest(pool).pool, orchestrator, take=take or ())
        except RoleRefused as refusal:
            raise HTTPException(403, str(refusal)) from refusal
        except (PoolError, OrchestratorError) as error:
            raise HTTPException(400, str(error)) from error
        is_alone = len(files) == 1
        name, kind = (PROGRAM, "text/x-python") if is_alone else ("orchestrate.zip", "application/zip")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(files[PROGRAM] if is_alone else zip_files(files), media_type=kind, headers=headers)

    return router

"""The Pool page: worker cards, forms, versions. Drawn by assets/web/pool/page.js."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.pool import export_pool
from studio.access.permissions import needs
from studio.frame.commands import command_routes
from studio.frame.web_page import draw_web_page
from studio.pages.pool.commands import PoolCommands
from studio.runtime import Runtime


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("pool")


def routes(runtime: Runtime) -> APIRouter:
    """The page's commands, and pools as files."""
    router = command_routes("pool", PoolCommands(runtime))
    pools = runtime.store.pools

    @router.get("/api/pools/{name}")
    @needs("viewer")
    def pool(name: str, version: int | None = None) -> Response:
        try:
            stored = pools.get(name, version) if version else pools.latest(name)
            file = export_pool(stored.pool)
        except PoolNotFound as error:
            raise HTTPException(404, str(error)) from error
        except InvalidPool as error:
            raise HTTPException(409, str(error)) from error
        headers = {"content-disposition": f'attachment; filename="{stored.pool.name}-v{stored.version}.json"'}
        return Response(file, media_type="application/json", headers=headers)

    return router

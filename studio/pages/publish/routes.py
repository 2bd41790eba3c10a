"""The routes of the Publish page: how far publications are, and the plain page of a preview."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, JSONResponse

from studio.pages.publish.commands import PublishDesk
from studio.publish.request import PublishError
from studio.runtime import Runtime

_desks: WeakKeyDictionary[Runtime, PublishDesk] = WeakKeyDictionary()


def publish_desk(runtime: Runtime) -> PublishDesk:
    """The one desk of a studio: page and routes share its previews."""
    return _desks.setdefault(runtime, PublishDesk(runtime))


def publish_routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api."""
    router = APIRouter(prefix="/api")
    desk = publish_desk(runtime)

    @router.get("/publications")
    def publications() -> JSONResponse:
        return JSONResponse({"publications": desk.all()})

    @router.get("/publications/{key}")
    def progress(key: str) -> JSONResponse:
        try:
            return JSONResponse(desk.progress(key))
        except PublishError as error:
            raise HTTPException(404, str(error)) from error

    @router.get("/publications/previews/{preview}.html")
    def page(preview: str, download: bool = False) -> HTMLResponse:
        html = desk.page_of(preview)
        if html is None:
            raise HTTPException(404, "this preview is no longer kept; preview again")
        headers = {"content-disposition": 'attachment; filename="index.html"'} if download else {}
        return HTMLResponse(html, headers=headers)

    return router

"""The Publish page: what goes to the Hub, every file of it before it goes, and how far each publication is. Drawn by
assets/web/publish/page.js."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, JSONResponse

from studio.access.permissions import needs
from studio.frame.commands import command_routes
from studio.frame.web_page import draw_web_page
from studio.pages.publish.commands import PublishCommands
from studio.publish.request import PublishError
from studio.runtime import Runtime


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("publish")


def routes(runtime: Runtime) -> APIRouter:
    """The page's commands, how far publications are, and the plain page of a preview."""
    commands = PublishCommands(runtime)
    router = command_routes("publish", commands)

    @router.get("/api/publications")
    @needs("viewer")
    def publications() -> JSONResponse:
        return JSONResponse({"publications": [publication.to_json() for publication in commands.all()]})

    @router.get("/api/publications/{key}")
    @needs("viewer")
    def progress(key: str) -> JSONResponse:
        try:
            return JSONResponse(commands.progress(key).to_json())
        except PublishError as error:
            raise HTTPException(404, str(error)) from error

    @router.get("/api/publications/previews/{preview}.html")
    @needs("viewer")
    def preview_page(preview: str, download: bool = False) -> HTMLResponse:
        html = commands.preview_html(preview)
        if html is None:
            raise HTTPException(404, "this preview is no longer kept; preview again")
        headers = {"content-disposition": 'attachment; filename="index.html"'} if download else {}
        return HTMLResponse(html, headers=headers)

    return router

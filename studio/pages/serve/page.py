"""The Serve page: what is served, how clients reach it, who may use it. Drawn by assets/web/serve/page.js."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from studio.access.permissions import needs
from studio.frame.commands import command_routes
from studio.frame.web_page import draw_web_page
from studio.pages.serve.commands import ServeCommands
from studio.runtime import Runtime


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("serve")


def routes(runtime: Runtime) -> APIRouter:
    """The page's commands, and what it shows."""
    commands = ServeCommands(runtime)
    router = command_routes("serve", commands)

    @router.get("/api/serve")
    @needs("viewer")
    def state() -> JSONResponse:
        return JSONResponse(commands.document().to_json())

    return router

"""The Tasks page: what people asked and somebody judged, to be accepted as tasks. Drawn by assets/web/tasks/page.js."""

from __future__ import annotations

from fastapi import APIRouter

from studio.frame.commands import command_routes
from studio.frame.web_page import draw_web_page
from studio.pages.tasks.commands import CandidateCommands
from studio.runtime import Runtime


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("tasks")


def routes(runtime: Runtime) -> APIRouter:
    """The page's commands."""
    return command_routes("tasks", CandidateCommands(runtime))

"""Pages of other packages, kept apart: one that fails says so in its place, and the studio starts all the same."""

from __future__ import annotations

import logging
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

import gradio as gr
from fastapi.staticfiles import StaticFiles

from studio.frame.navigation import PAGES, Page, draw_frame

if TYPE_CHECKING:
    from fastapi import FastAPI

    from studio.runtime import Runtime

log = logging.getLogger(__name__)


def include_routes(app: FastAPI, page: Page, runtime: Runtime) -> str:
    """Serve the files and routes of a page. Returns why one of another package cannot be served, or ""."""

    def include() -> None:
        if page.folder is not None:
            app.mount(f"/podium/web/{page.name}", StaticFiles(directory=page.folder))
        app.include_router(page.load().routes(runtime))

    return _explain_failure(page, include)


def draw_page(page: Page, runtime: Runtime, problem: str = "") -> None:
    """Draw a page, or what is wrong with one of another package."""
    problem = problem or _explain_failure(page, lambda: page.load().build(runtime))
    if problem:
        with draw_frame(page.name):
            gr.HTML(f'<h1>{escape(page.title)}</h1><p role="alert">{escape(problem)}</p>', apply_default_css=False)


def _explain_failure(page: Page, action: Callable[[], None]) -> str:
    """Run a part of a page. Errors of our own pages are raised: a studio without them is none."""
    if page.name in PAGES.built_in:
        action()
        return ""
    try:
        action()
    except Exception as error:  # noqa: BLE001  whatever another package's code raises
        problem = (
            f"The page {page.title} of {PAGES.package_of(page.name)} cannot be shown: {type(error).__name__}: {error}. "
            "Update that package or remove it, and start the studio again."
        )
        log.warning("%s", problem)
        return problem
    return ""

"""The Train page: a recipe, what it needs, and the jobs. Drawn by assets/web/train/page.js."""

from __future__ import annotations

from studio.frame.web_page import draw_web_page
from studio.pages.train.routes import routes
from studio.runtime import Runtime

__all__ = ["build", "routes"]


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("train")

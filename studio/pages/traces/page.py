"""The Traces page: every past run, filtered on the server. Drawn by assets/web/traces/page.js."""

from __future__ import annotations

from studio.frame.web_page import draw_web_page
from studio.pages.traces.routes import routes
from studio.runtime import Runtime

__all__ = ["build", "routes"]


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("traces")

"""The Compare page: orchestrators side by side, on one query and on whole suites. Drawn by assets/web/compare/page.js.

What is chosen lives in the URL.
"""

from __future__ import annotations

from studio.frame.web_page import draw_web_page
from studio.pages.compare.routes import routes
from studio.runtime import Runtime

__all__ = ["build", "routes"]


def build(_runtime: Runtime) -> None:
    """Draw the page."""
    draw_web_page("compare")

"""The Serve page: what is served, how clients reach it, who may. Drawn by assets/web/serve/page.js."""

from __future__ import annotations

from studio.frame.web_page import web_page
from studio.runtime import Runtime


def build(_runtime: Runtime) -> None:
    """The page's one component; it reads /api/serve by itself."""
    web_page("serve")

"""The Traces page: every past run, filtered on the server. Drawn by assets/web/traces/page.js."""

from __future__ import annotations

from studio.frame.web_page import web_page
from studio.runtime import Runtime


def build(_runtime: Runtime) -> None:
    """The page's one component; it reads /api/traces by itself."""
    web_page("traces")

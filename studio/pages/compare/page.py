"""The Compare page: orchestrators side by side, on one query and on whole suites. Drawn by assets/web/compare/page.js.

Commands go to CompareDesk; what is shown comes over compare_api.py. Everything that is chosen lives in the URL.
"""

from __future__ import annotations

from studio.frame.web_page import web_page
from studio.pages.compare.commands import CompareDesk
from studio.runtime import Runtime


def build(runtime: Runtime) -> None:
    """The page's one component, and its commands."""
    web_page("compare", CompareDesk(runtime, runtime.jobs).handle)

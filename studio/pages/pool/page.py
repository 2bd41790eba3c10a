"""The Pool page: worker cards, forms, versions. Drawn by assets/web/pool/page.js; commands go to PoolDesk."""

from __future__ import annotations

from studio.frame.web_page import web_page
from studio.pages.pool.commands import PoolDesk
from studio.runtime import Runtime


def build(runtime: Runtime) -> None:
    """The page's one component, and its commands."""
    web_page("pool", PoolDesk(runtime).handle)

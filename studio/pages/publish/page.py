"""The Publish page: what goes to the Hub, every file of it before it goes, and how far it is. Drawn by
assets/web/publish/page.js; commands go to PublishDesk."""

from __future__ import annotations

from studio.frame.web_page import web_page
from studio.pages.publish.routes import publish_desk
from studio.runtime import Runtime


def build(runtime: Runtime) -> None:
    """The page's one component, and its commands."""
    web_page("publish", publish_desk(runtime).handle)

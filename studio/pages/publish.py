"""The Publish page: what goes to the Hub, every file of it before it goes, and how far it is. Drawn by
assets/web/publish_page.js; commands go to PublishDesk."""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.publish_api import publish_desk
from studio.reply import encode
from studio.runtime import Runtime
from studio.shell import shell

TEMPLATE = '<div class="pu-root"></div>'
SCRIPT = """
const root = element.querySelector('.pu-root');
import('/podium/web/publish_page.js').then((module) =>
  module.mount(root, async (request) => JSON.parse(await server.publish_command(request))));
"""


def build(runtime: Runtime) -> None:
    """The page's one component, whose commands are a server function."""
    desk = publish_desk(runtime)

    def publish_command(request: dict[str, Any]) -> str:
        return encode(desk.handle(request))

    with shell("publish"):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=SCRIPT,
            apply_default_css=False,
            server_functions=[publish_command],
            elem_id="publish-page",
        )

"""The Pool page: worker cards, forms, versions. Drawn by assets/web/pool_page.js; commands go to PoolDesk."""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.pool_desk import PoolDesk
from studio.reply import encode
from studio.runtime import Runtime
from studio.shell import shell

TEMPLATE = '<div class="pp-root"></div>'
SCRIPT = """
const root = element.querySelector('.pp-root');
import('/podium/web/pool_page.js').then((module) =>
  module.mount(root, async (request) => JSON.parse(await server.pool_command(request))));
"""


def build(runtime: Runtime) -> None:
    """The page's one component, whose commands are a server function."""
    desk = PoolDesk(runtime)

    def pool_command(request: dict[str, Any]) -> str:
        return encode(desk.handle(request))

    with shell("pool"):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=SCRIPT,
            apply_default_css=False,
            server_functions=[pool_command],
            elem_id="pool-page",
        )

"""The Compare page: orchestrators side by side, on one query and on whole suites. Drawn by assets/web/compare_page.js.

Commands go to CompareDesk; what is shown comes over compare_api.py. Everything that is chosen lives in the URL.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.compare_desk import CompareDesk
from studio.reply import encode
from studio.runtime import Runtime
from studio.shell import shell
from trainer.jobs import JobStore

TEMPLATE = '<div class="cp-root"></div>'
SCRIPT = """
const root = element.querySelector('.cp-root');
import('/podium/web/compare_page.js').then((module) =>
  module.mount(root, async (request) => JSON.parse(await server.compare_command(request))));
"""


def build(runtime: Runtime) -> None:
    """The page's one component, whose commands are a server function."""
    desk = CompareDesk(runtime, JobStore(runtime.store.engine, runtime.store.home))

    def compare_command(request: dict[str, Any]) -> str:
        return encode(desk.handle(request))

    with shell("compare"):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=SCRIPT,
            apply_default_css=False,
            server_functions=[compare_command],
            elem_id="compare-page",
        )

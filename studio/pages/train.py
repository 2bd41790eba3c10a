"""The Train page: a recipe, what it needs, and the jobs. Drawn by assets/web/train_page.js.

Commands go to TrainDesk; what a job does comes over its own stream (train_api.py).
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.reply import encode
from studio.runtime import Runtime
from studio.shell import shell
from studio.train_desk import TrainDesk

TEMPLATE = '<div class="tr-root"></div>'
SCRIPT = """
const root = element.querySelector('.tr-root');
import('/podium/web/train_page.js').then((module) =>
  module.mount(root, async (request) => JSON.parse(await server.train_command(request))));
"""


def build(runtime: Runtime) -> None:
    """The page's one component, whose commands are a server function."""
    desk = TrainDesk(runtime)

    def train_command(request: dict[str, Any]) -> str:
        return encode(desk.handle(request))

    with shell("train"):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=SCRIPT,
            apply_default_css=False,
            server_functions=[train_command],
            elem_id="train-page",
        )

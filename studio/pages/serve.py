"""The Serve page: what is served, how clients reach it, who may. Drawn by assets/web/serve_page.js."""

from __future__ import annotations

import gradio as gr

from studio.runtime import Runtime
from studio.shell import shell

TEMPLATE = '<div class="sv-root"></div>'
SCRIPT = """
const root = element.querySelector('.sv-root');
import('/podium/web/serve_page.js').then((module) => module.mount(root));
"""


def build(_runtime: Runtime) -> None:
    """The page's one component; it reads /api/serve by itself."""
    with shell("serve"):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=SCRIPT,
            apply_default_css=False,
            elem_id="serve-page",
        )

"""A page that a module of assets/web draws and fills by itself. Gradio carries its commands, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from studio.frame.commands import encode
from studio.frame.navigation import shell

TEMPLATE = '<div class="page-root"></div>'


def web_page(name: str, handle: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None) -> None:
    """Build the page called `name` from assets/web/NAME/page.js; `handle` answers its commands, if it has any."""
    with shell(name):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=_script(name),
            apply_default_css=False,
            server_functions=[] if handle is None else [_command(handle)],
            elem_id=f"{name}-page",
        )


def _script(name: str) -> str:
    return f"""
const root = element.querySelector('.page-root');
const send = async (request) => JSON.parse(await server.command(request));
import('/podium/web/{name}/page.js').then((module) => module.mount(root, send));
"""


def _command(handle: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Callable[[dict[str, Any]], str]:
    def command(request: dict[str, Any]) -> str:  # its name is the one that the script calls
        return encode(handle(request))

    return command

"""A page that a JavaScript module draws; it sends its commands and fetches its documents by itself."""

from __future__ import annotations

import gradio as gr

from studio.frame.navigation import draw_frame

TEMPLATE = '<div class="page-root"></div>'


def draw_web_page(name: str) -> None:
    """Build the page called `name`: page.js in its folder exports `mount(root)`."""
    address = f"/podium/web/{name}/page.js"
    with draw_frame(name):
        gr.HTML(
            value="",
            html_template=TEMPLATE,
            js_on_load=f"import('{address}').then((module) => module.mount(element.querySelector('.page-root')));",
            apply_default_css=False,
            elem_id=f"{name}-page",
            elem_classes="page-frame",
        )

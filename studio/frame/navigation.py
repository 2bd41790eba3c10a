"""The frame of every page: navigation on the left (on top on a phone), the page beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr

# name, address, title, icon path; a new page is one line here and one in app.py
PAGES = (
    ("run", "/", "Run", "M8 5l11 7-11 7z"),
    ("pool", "/pool", "Pool", "M4 7h16 M4 12h16 M4 17h10"),
    ("train", "/train", "Train", "M4 19V5 M4 19h16 M7 15l4-5 4 3 5-7"),
    ("compare", "/compare", "Compare", "M4 5h6v14H4z M14 5h6v14h-6z M7 9v.01 M17 13v.01"),
    ("serve", "/serve", "Serve", "M5 12.5a10 10 0 0 1 14 0 M8.5 16a5 5 0 0 1 7 0 M12 19.5h.01"),
    ("publish", "/publish", "Publish", "M12 15V4 M7 9l5-5 5 5 M5 14v6h14v-6"),
    ("traces", "/traces", "Traces", "M4 6h4 M11 6h9 M4 12h8 M15 12h5 M4 18h3 M10 18h10"),
)
MOON = "M20 14.5A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5z"


@contextmanager
def shell(active: str) -> Iterator[None]:
    """Draw the frame; what is built inside is the page called `active`."""
    with gr.Row(elem_id="shell"):
        gr.HTML(navigation(active), elem_id="nav", apply_default_css=False)
        with gr.Column(elem_id="page", elem_classes=f"page-{active}"):
            yield


def navigation(active: str) -> str:
    """The navigation as HTML. Everything in it is our own text."""
    links = "".join(_link(*page, current=page[0] == active) for page in PAGES)
    return (
        f'<a class="podium-skip" href="#page">Skip to the page</a>{_heading(active)}'
        '<a class="podium-brand" href="/"><img src="/podium/web/logo.svg" alt="" width="26" height="26">Podium</a>'
        f'<nav aria-label="Pages">{links}</nav>'
        '<button type="button" class="podium-nav-link podium-theme" aria-label="Dark or light"'
        ' onclick="podiumToggleTheme()">'
        f"{_icon(MOON)}<span>Dark or light</span></button>"
    )


def _heading(active: str) -> str:
    """The Run page shows no heading of its own; people who listen to it get one."""
    return '<h1 class="podium-offscreen">Run</h1>' if active == "run" else ""


def _link(name: str, address: str, title: str, path: str, *, current: bool) -> str:
    state = ' aria-current="page"' if current else ""
    return (
        f'<a class="podium-nav-link" data-page="{name}" href="{address}"{state}>{_icon(path)}<span>{title}</span></a>'
    )


def _icon(path: str) -> str:
    return f'<svg class="podium-icon" viewBox="0 0 24 24" aria-hidden="true"><path d="{path}"/></svg>'

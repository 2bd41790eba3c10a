"""The table of pages, and the frame around each: navigation on the left (on top on a phone), the page beside it.

A page is a row of PAGES. Another package adds one by an entry point in the group `podium.pages`, which names a Page
(docs/extend.md). A page's module has `build(runtime)`, which draws it inside `draw_frame(NAME)`, and
`routes(runtime)`, which returns the APIRouter of its commands and documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import gradio as gr

from assets import asset
from pool_registry.extensions.extension_table import ExtensionTable

if TYPE_CHECKING:
    from fastapi import APIRouter

    from studio.runtime import Runtime


class PageModule(Protocol):
    """What the module of a page has."""

    def build(self, runtime: Runtime, /) -> None: ...
    def routes(self, runtime: Runtime, /) -> APIRouter: ...


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `icon` is an SVG path in 24 x 24; `stylesheets` are paths below assets/web, where the files of
    `folder`, which a page of another package has, are served as NAME/..."""

    name: str
    title: str
    address: str
    icon: str
    module: str
    stylesheets: tuple[str, ...] = ()
    folder: Path | None = None

    def load(self) -> PageModule:
        """Import the page's module."""
        return cast(PageModule, import_module(self.module))


BUILT_IN = (
    Page(
        "run",
        "Run",
        "/",
        "M8 5l11 7-11 7z",
        "studio.pages.run.page",
        (
            "run/run_view.css",
            "run/composer.css",
            "run/keep_task.css",
            "run/follow_up.css",
            "run/share.css",
            "what_if/what_if.css",
            "approval/approval.css",
            "credit/credit.css",
        ),
    ),
    Page(
        "pool",
        "Pool",
        "/pool",
        "M4 7h16 M4 12h16 M4 17h10",
        "studio.pages.pool.page",
        (
            "pool/binding.css",
            "pool/evidence.css",
            "pool/memory.css",
            "pool/training.css",
            "lib/pages.css",
            "pool/pool.css",
            "pool/paste.css",
            "pool/table.css",
        ),
    ),
    Page(
        "train",
        "Train",
        "/train",
        "M4 19V5 M4 19h16 M7 15l4-5 4 3 5-7",
        "studio.pages.train.page",
        (
            "lib/pages.css",
            "train/train.css",
            "train/notices.css",
            "tasks/panel.css",
            "pool/training.css",
            "vendor/uplot/uPlot.min.css",
        ),
    ),
    Page(
        "compare",
        "Compare",
        "/compare",
        "M4 5h6v14H4z M14 5h6v14h-6z M7 9v.01 M17 13v.01",
        "studio.pages.compare.page",
        ("lib/pages.css", "vendor/uplot/uPlot.min.css", "compare/compare.css", "compare/regrade.css"),
    ),
    Page(
        "tasks",
        "Tasks",
        "/tasks",
        "M4 7l2 2 3-4 M4 16l2 2 3-4 M13 7h7 M13 17h7",
        "studio.pages.tasks.page",
        ("lib/pages.css", "tasks/page.css"),
    ),
    Page(
        "serve",
        "Serve",
        "/serve",
        "M5 12.5a10 10 0 0 1 14 0 M8.5 16a5 5 0 0 1 7 0 M12 19.5h.01",
        "studio.pages.serve.page",
        ("lib/pages.css", "serve/serve.css"),
    ),
    Page(
        "publish",
        "Publish",
        "/publish",
        "M12 15V4 M7 9l5-5 5 5 M5 14v6h14v-6",
        "studio.pages.publish.page",
        ("lib/pages.css", "publish/publish.css"),
    ),
    Page(
        "traces",
        "Traces",
        "/traces",
        "M4 6h4 M11 6h9 M4 12h8 M15 12h5 M4 18h3 M10 18h10",
        "studio.pages.traces.page",
        ("lib/pages.css",),
    ),
)


def _check_page(_entry: EntryPoint, page: object) -> object:
    """The page that an entry point names. Raises ValueError for one that would stand in the way of another."""
    if isinstance(page, Page):
        taken = {row.address for row in BUILT_IN}
        if page.address in taken or not re.fullmatch(r"/[a-z0-9-]+", page.address):
            raise ValueError(f"its address {page.address!r} is taken or is not of the form /name")
        # Below a page's name are its files and its commands.
        is_taken = page.name == "housekeeping" or asset(f"web/{page.name}").exists()
        if is_taken or not re.fullmatch(r"[a-z][a-z0-9_]*", page.name):
            raise ValueError(f"its name {page.name!r} is taken or is not a plain word")
        module = page.load()
        if missing := [name for name in ("build", "routes") if not callable(getattr(module, name, None))]:
            raise ValueError(f"its module {page.module} has no function {' and no '.join(missing)}")
    return page


PAGES = ExtensionTable("podium.pages", Page, BUILT_IN, _check_page)
FIND = "M10.5 4a6.5 6.5 0 1 0 .01 0 M15.500 15.500L20 20"
MOON = "M20 14.5A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5z"
GLOBE = "M12 3a9 9 0 1 0 .01 0z M3 12h18 M12 3c-5 5.500-5 12.500 0 18 M12 3c5 5.500 5 12.500 0 18"
LANGUAGES: dict[str, str] = json.loads(asset("web/languages/names.json").read_text(encoding="utf-8"))


def stylesheets() -> list[str]:
    """The addresses of the pages' stylesheets, each once, in the order of the table."""
    paths = dict.fromkeys(path for page in PAGES.values() for path in page.stylesheets)
    return [f"/podium/web/{path}" for path in paths]


@contextmanager
def draw_frame(active: str) -> Iterator[None]:
    """Draw the frame; what is built inside is the page called `active`."""
    with gr.Row(elem_id="shell"):
        gr.HTML(navigation(active), elem_id="nav", apply_default_css=False)
        with gr.Column(elem_id="page", elem_classes=f"page-{active}"):
            yield


def navigation(active: str) -> str:
    """The navigation as HTML. All of its text is ours or a page's own."""
    links = "".join(_link(page, current=page.name == active) for page in PAGES.values())
    languages = "".join(f'<option value="{code}" lang="{code}">{name}</option>' for code, name in LANGUAGES.items())
    return (
        f'<a class="podium-skip" href="#page">Skip to the page</a>{_heading(active)}'
        '<a class="podium-brand" href="/"><img src="/podium/web/logo.svg" alt="" width="26" height="26">Podium</a>'
        f'<button type="button" class="podium-nav-link podium-find" aria-label="Find" aria-keyshortcuts="Control+K">'
        f"{_icon(FIND)}<span>Find</span><kbd>Ctrl K</kbd></button>"
        f'<nav aria-label="Pages">{links}</nav>'
        '<button type="button" class="podium-nav-link podium-theme" aria-label="Dark or light"'
        ' onclick="podiumToggleTheme()">'
        f"{_icon(MOON)}<span>Dark or light</span></button>"
        f'<label class="podium-nav-link podium-language">{_icon(GLOBE)}'
        f'<select aria-label="Language">{languages}</select></label>'
    )


def _heading(active: str) -> str:
    """The Run page shows no heading; screen readers get one."""
    return '<h1 class="podium-offscreen">Run</h1>' if active == "run" else ""


def _link(page: Page, *, current: bool) -> str:
    state = ' aria-current="page"' if current else ""
    return (
        f'<a class="podium-nav-link" data-page="{page.name}" href="{page.address}"{state}>'
        f"{_icon(page.icon)}<span>{page.title}</span></a>"
    )


def _icon(path: str) -> str:
    return f'<svg class="podium-icon" viewBox="0 0 24 24" aria-hidden="true"><path d="{path}"/></svg>'

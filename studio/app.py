"""Assembles the web application: guards, static files, our routes, and the Gradio pages on top.

Our own FastAPI app with Gradio mounted, never `demo.launch()`: that gives us routes, middleware and stylesheets.
The pages are the rows of studio/frame/navigation.py's PAGES.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orchestrator  # noqa: F401  before Gradio's import of the Hub client, whose reporting it turns off

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read by Gradio when it is imported: no call home

import gradio as gr
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from assets import asset
from studio.access.accounts import Accounts
from studio.access.body_limit import DECISION, EVENT, PAGE, LimitedBody
from studio.access.login import LoginWall, login_routes, user_of
from studio.access.permissions import Need, Permissions
from studio.access.request_guards import GRADIO_ROUTES, LOOPBACK, GradioGate, SameOrigin
from studio.access.roles import UserRole
from studio.export.routes import export_routes
from studio.export.shared_page import shared_page_routes
from studio.frame.added_pages import draw_page, include_routes
from studio.frame.bad_requests import answer_bad_requests
from studio.frame.navigation import PAGES
from studio.frame.theme import head, theme
from studio.frame.uploads import upload_routes
from studio.housekeeping.routes import housekeeping_routes
from studio.runtime import Runtime
from studio.search.commands import search_routes

BODY_LIMITS = {"/api/documents": None, "/api/pages": PAGE, "/api/": DECISION, "/gradio_api": EVENT}


def create_app(runtime: Runtime, *, login: bool = False, loopback: bool = True) -> FastAPI:
    """Make the application, ready for uvicorn. Closing it closes the runtime.

    With `login` everything is behind the login page; without `loopback` other machines can reach it. Raises ValueError
    for the one without the other.
    """
    if not (login or loopback):
        raise ValueError("a studio that others can reach must have a login")

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        runtime.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    # Before the folder of all pages, whose address begins like theirs.
    problems = {page.name: include_routes(app, page, runtime) for page in PAGES.values()}
    for folder in ("web", "fonts"):  # not below /assets: that address is Gradio's own
        app.mount(f"/podium/{folder}", StaticFiles(directory=asset(folder)))
    app.include_router(export_routes(runtime))
    app.include_router(shared_page_routes(runtime))
    app.include_router(upload_routes())
    app.include_router(housekeeping_routes(runtime))
    app.include_router(search_routes(runtime))
    answer_bad_requests(app)
    app.add_middleware(LimitedBody, rows=BODY_LIMITS)
    app.add_middleware(GradioGate)
    blocks = pages(runtime, problems)
    if login:
        accounts = Accounts(runtime.store.engine)
        permissions = Permissions((row, Need(UserRole.VIEWER)) for row in GRADIO_ROUTES)
        app.include_router(login_routes(accounts, permissions))
        permissions.add_routes(app.routes)
        permissions.add_events(event.fn for event in blocks.fns.values())
        addresses = [page.address.rstrip("/") for page in PAGES.values()]
        app.add_middleware(LoginWall, accounts=accounts, permissions=permissions, pages=addresses)
    app.add_middleware(SameOrigin)
    if loopback:  # elsewhere a page that reaches us under a host name of its own has no session
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))
    # Gradio warns about every application with several pages, also without SSR.
    warnings.filterwarnings("ignore", message="SSR mode is not supported")
    application: FastAPI = gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        theme=theme(),
        head=head(login=login),
        auth_dependency=user_of if login else None,
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        enable_monitoring=False,
        show_error=False,
        max_file_size="50mb",
        allowed_paths=[],
        pwa=False,
    )
    return application


def pages(runtime: Runtime, problems: Mapping[str, str]) -> Any:
    """Every page of the studio; the first of the table is at /. `problems`: why a page cannot be shown, by its name."""
    first, *others = PAGES.values()
    with gr.Blocks(title="Podium") as demo:
        draw_page(first, runtime)
    for page in others:
        with demo.route(page.title, path=page.address.removeprefix("/")):
            draw_page(page, runtime, problems[page.name])
    return demo

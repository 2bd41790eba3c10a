"""Assembles the web application: guards, static files, our routes, and the Gradio pages on top.

Our own FastAPI app with Gradio mounted, never `demo.launch()`: that gives routes, middleware and our
own stylesheet. One page a module in pages/; a new page is a line in PAGES.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orchestrator  # noqa: F401  before Gradio's import of the Hub client, whose reporting it turns off

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read by Gradio when it is imported: no call home

import gradio as gr
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from assets import asset
from studio.access.accounts import Accounts
from studio.access.login import LoginWall, login_routes, user_of
from studio.access.request_guards import LOOPBACK, SameOrigin
from studio.export.routes import export_routes
from studio.frame.theme import HEAD, LOGGED_IN, theme
from studio.frame.uploads import upload_routes
from studio.orchestrators.choices import orchestrator_choices
from studio.pages.compare import page as compare
from studio.pages.compare.routes import compare_routes
from studio.pages.pool import page as pool
from studio.pages.publish import page as publish
from studio.pages.publish.routes import publish_routes
from studio.pages.run import page as run
from studio.pages.run.routes import routes
from studio.pages.run.what_if_routes import what_if_routes
from studio.pages.serve import page as serve
from studio.pages.serve.commands import ServeDesk, serve_routes
from studio.pages.traces import page as traces
from studio.pages.traces.routes import trace_routes
from studio.pages.train import page as train
from studio.pages.train.routes import train_routes
from studio.runtime import Runtime

# title, path below /, module with build(runtime)
PAGES = (
    ("Pool", "pool", pool),
    ("Train", "train", train),
    ("Compare", "compare", compare),
    ("Publish", "publish", publish),
    ("Traces", "traces", traces),
    ("Serve", "serve", serve),
)


def create_app(runtime: Runtime, *, login: bool = False, loopback: bool = True) -> FastAPI:
    """The application, ready for uvicorn. Closing it closes the runtime.

    With `login` everything stands behind the login page; without `loopback` others can reach it.
    """
    if not (login or loopback):
        raise ValueError("a studio that others can reach must have a login")

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        runtime.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    for part in ("web", "fonts"):  # not below /assets: that address is Gradio's own
        app.mount(f"/podium/{part}", StaticFiles(directory=asset(part)))
    app.include_router(routes(runtime))
    app.include_router(train_routes(runtime))
    app.include_router(compare_routes(runtime))
    app.include_router(publish_routes(runtime))
    app.include_router(export_routes(runtime))
    app.include_router(upload_routes())
    app.include_router(serve_routes(ServeDesk(runtime, orchestrator_choices)))
    app.include_router(what_if_routes(runtime))
    app.include_router(trace_routes(runtime))
    if login:
        accounts = Accounts(runtime.store.engine)
        app.include_router(login_routes(accounts))
        app.add_middleware(LoginWall, accounts=accounts)
    app.add_middleware(SameOrigin)
    if loopback:  # elsewhere a page that found its way here by a name of its own has no session
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))
    # Gradio says so of every application with several pages, also when nobody asked for SSR.
    warnings.filterwarnings("ignore", message="SSR mode is not supported")
    mounted: FastAPI = gr.mount_gradio_app(
        app,
        pages(runtime),
        path="/",
        theme=theme(),
        head=HEAD + LOGGED_IN if login else HEAD,
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
    return mounted


def pages(runtime: Runtime) -> gr.Blocks:
    """Every page of the studio; Run is the first."""
    demo = gr.Blocks(title="Podium")
    with demo:
        run.build(runtime)
    for title, path, module in PAGES:
        with demo.route(title, path=path):
            module.build(runtime)
    return demo

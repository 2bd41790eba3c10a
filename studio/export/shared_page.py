"""The page behind a link to a run (studio/access/shared_runs.py): one file that needs nothing else of the studio."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from orchestrator.errors import DamagedTrace, EpisodeNotFound
from studio.access.permissions import needs
from studio.access.shared_runs import PLACE, SharedRuns
from studio.export.formats import export_page
from studio.runtime import Runtime

# Scripts and styles stand in the page itself; it may load, send and show nothing else, nor stand in another page.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; font-src data:; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "x-robots-tag": "noindex, nofollow",
}
VOID = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>No such link</title>\n'
    "<style>:root { color-scheme: light dark } body { max-width: 36rem; margin: 20vh auto; padding: 0 1.5rem; "
    "font: 1rem/1.5 system-ui, sans-serif }</style>\n</head>\n<body>\n<h1>This link opens nothing</h1>\n"
    "<p>It was taken back, its time is over, or the run behind it was deleted. Ask whoever sent it for another one.</p>"
    "\n</body>\n</html>\n"
)


def shared_page_routes(runtime: Runtime) -> APIRouter:
    """The route of the page; it is open to everybody who has a link."""
    router = APIRouter()
    links = SharedRuns(runtime.store.engine)

    @router.get(PLACE + "{token}")
    @needs("viewer")
    def show_shared_run(token: str) -> HTMLResponse:
        episode = links.find_run(token)
        if episode is None:
            return HTMLResponse(VOID, 404, HEADERS)
        try:
            return HTMLResponse(export_page(runtime.store, episode), headers=HEADERS)
        except (EpisodeNotFound, DamagedTrace):
            return HTMLResponse(VOID, 404, HEADERS)

    return router

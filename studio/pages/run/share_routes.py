"""Links to a run for people without a login: made on its page, listed there and among a person's accesses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from studio.access.accounts import current_user
from studio.access.permissions import needs
from studio.access.roles import current_rights
from studio.access.shared_runs import DEFAULT_DAYS, MOST_DAYS, SharedRun, SharedRuns, ShareRefused
from studio.frame.document import PageDocument
from studio.runtime import Runtime


class SharedFor(BaseModel):
    """For how many days a link works."""

    model_config = ConfigDict(extra="forbid")

    days: float = Field(default=DEFAULT_DAYS, gt=0, le=MOST_DAYS)


class ShareLine(PageDocument):
    """A link that works, without its token; `mine`: the viewer may take it back."""

    id: str
    episode: str
    query: str
    user: str
    created_at: str
    expires_at: str
    mine: bool


class ShareList(PageDocument):
    """The links of a run, or all that a person may take back, the latest first."""

    links: list[ShareLine]


class NewShare(PageDocument):
    """The address of a new link, in this reply and nowhere else; else why there is none."""

    address: str = ""
    problem: str = ""


def share_routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api."""
    router = APIRouter(prefix="/api")
    links = SharedRuns(runtime.store.engine)

    @router.post("/episodes/{episode_id}/share")
    @needs("editor")
    def share(episode_id: str, how: SharedFor) -> JSONResponse:
        try:
            runtime.store.traces.flush()
            address = links.add(episode_id, how.days, current_user.get())
        except ShareRefused as refusal:
            return JSONResponse(NewShare(problem=str(refusal)).to_json())
        return JSONResponse(NewShare(address=address).to_json())

    @router.get("/episodes/{episode_id}/shares")
    @needs("viewer")
    def list_of_run(episode_id: str) -> JSONResponse:
        return JSONResponse(_list_lines(links.list(episode_id)).to_json())

    @router.get("/shares")
    @needs("viewer")
    def list_own() -> JSONResponse:
        return JSONResponse(_list_lines(links.list(user=_name_whose())).to_json())

    @router.post("/shares/{key}/revoke")
    @needs("editor")
    def revoke(key: str) -> JSONResponse:
        try:
            links.revoke(key, _name_whose())
        except ShareRefused as refusal:
            raise HTTPException(409, str(refusal)) from refusal
        return JSONResponse({"ok": True})

    return router


def _list_lines(links: Iterable[SharedRun]) -> ShareList:
    whose = _name_whose()
    return ShareList(links=[ShareLine(**asdict(link), mine=whose in (None, link.user)) for link in links])


def _name_whose() -> str | None:
    """Whose links a person may take back: their own, an owner everybody's."""
    return None if current_rights.get().is_owner else current_user.get()

"""Pools over HTTP, for programs: what `podium pool list | show | new | add | import | check | test` do.

Every request needs a token, also on this machine. What wants a key, a program, a file or a private address arrives
switched off and is not called: a person switches it on, on the Pool page or with `podium pool switch`.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response

from orchestrator.traces.store import Store
from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.kinds import kind_of, load_config
from pool_registry.pool import export_pool
from pool_registry.wants import list_wants
from pool_registry.worker import WorkerSpec
from studio.access.json_route import JsonRoute
from studio.access.permissions import needs
from studio.pages.pool.commands import PoolCommands
from studio.pages.pool.forms import parse_worker
from studio.runtime import Runtime

PREFIX = "/v1/pools"
SOURCES = ("openapi", "mcp", "space")  # a function's file is on the server's disk: its path is no business of clients
Document = dict[str, Any]
JSON_OBJECT = Body(default={})


class RefusedRequest(Exception):
    """A request that is not carried out: HTTP status, code, sentence, and problems by field."""

    def __init__(self, status: int, code: str, message: str, problems: object = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.problems = status, code, problems

    def respond(self) -> JSONResponse:
        kind = "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": None, "code": self.code, "problems": self.problems}
        return JSONResponse({"error": error}, self.status)


def build_pool_routes(store: Store) -> APIRouter:
    """The routes below /v1/pools."""
    runtime = Runtime(store)
    atexit.register(runtime.close)  # its pools may have started programs
    api = PoolApi(runtime)
    router = APIRouter(prefix=PREFIX, route_class=JsonRoute)

    @router.get("")
    @needs("viewer")
    def list_pools(request: Request) -> Response:
        return _answer(request, api.list_pools)

    @router.post("")
    @needs("editor")
    def new(request: Request, body: Document = JSON_OBJECT) -> Response:
        return _answer(request, lambda: api.new(body))

    @router.post("/import")
    @needs("editor")
    async def import_file(request: Request, name: str = "") -> Response:
        text = (await request.body()).decode("utf-8", "replace")
        return await _answer_in_thread(request, lambda: api.import_file(text, name))

    @router.get("/{pool}")
    @needs("viewer")
    def show(request: Request, pool: str, version: int | None = None) -> Response:
        return _answer(request, lambda: api.show(pool, version))

    @router.post("/{pool}/workers")
    @needs("editor")
    def add(request: Request, pool: str, body: Document = JSON_OBJECT) -> Response:
        return _answer(request, lambda: api.add(pool, body))

    @router.post("/{pool}/check")
    @needs("editor")
    def check(request: Request, pool: str) -> Response:
        return _answer(request, lambda: api.check(pool))

    @router.post("/{pool}/workers/{worker}/test")
    @needs("editor")
    def test(request: Request, pool: str, worker: str, body: Document = JSON_OBJECT) -> Response:
        return _answer(request, lambda: api.test(pool, worker, body))

    return router


def _answer(request: Request, work: Any) -> Response:
    try:
        if not getattr(request.state, "user", ""):
            raise RefusedRequest(
                401, "invalid_api_key", "pools are managed with a token only; make one with `podium tokens add NAME`"
            )
        document = work()
    except RefusedRequest as refused:
        return refused.respond()
    except PoolNotFound as error:
        return RefusedRequest(404, "not_found", str(error)).respond()
    except InvalidPool as error:
        return RefusedRequest(422, "invalid_pool", str(error), error.problems).respond()
    return document if isinstance(document, Response) else JSONResponse(document)


async def _answer_in_thread(request: Request, work: Any) -> Response:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(_answer, request, work)


class PoolApi:
    """What the routes do; each method returns the document of its response."""

    def __init__(self, runtime: Runtime) -> None:
        self._pools = runtime.store.pools
        self._page = PoolCommands(runtime)

    def list_pools(self) -> Document:
        stored = [self._pools.latest(name) for name in self._pools.names()]
        rows = [{"name": row.pool.name, "version": row.version, "workers": len(row.pool.workers)} for row in stored]
        return {"pools": rows}

    def show(self, pool: str, version: int | None) -> Response:
        """The pool's file, byte for byte what `podium pool show --json` writes."""
        stored = self._pools.get(pool, version) if version else self._pools.latest(pool)
        return Response(export_pool(stored.pool), media_type="application/json")

    def new(self, body: Document) -> Document:
        reply = self._send("create", name=body.get("name"), copy_of=body.get("copy_of"))
        return {"message": reply["message"]}

    def import_file(self, text: str, name: str) -> Document:
        return {"message": self._send("import", text=text, name=name)["message"]}

    def add(self, pool: str, body: Document) -> Document:
        """Add `worker`, or from `source` what it offers (`only` names one of it)."""
        self._pools.latest(pool)
        specs = [parse_worker(_read_object(body, "worker"))] if "worker" in body else self._look(pool, body)
        safe = [_disarm(spec) for spec in specs]
        notes = [note for _, note in safe if note]
        documents = [spec.model_dump(mode="json") for spec, _ in safe]
        if "worker" in body:
            reply = self._send("save_worker", pool=pool, worker=documents[0])
        else:
            reply = self._send("add_workers", pool=pool, workers=documents)
        names = [spec.name for spec, _ in safe]
        return {"message": reply["message"], "workers": names, "notes": notes}

    def check(self, pool: str) -> Document:
        """Probe the enabled workers, but not those that would start a program here."""
        specs = [spec for spec in self._pools.latest(pool).pool.switched_on if not _find_program(spec)]
        health = {spec.name: self._send("check_worker", pool=pool, name=spec.name)["health"] for spec in specs}
        return {"ok": all(row["ok"] for row in health.values()), "workers": health}

    def test(self, pool: str, worker: str, body: Document) -> Document:
        spec = self._pools.latest(pool).pool.worker(worker)
        wants = list_wants(spec)
        if wants and not spec.enabled:
            code = "starts_a_program" if _find_program(spec) else "not_confirmed"
            raise RefusedRequest(403, code, f"{worker} {wants[0]} and is off; a person must switch it on first")
        document = spec.model_dump(mode="json")
        arguments = body.get("arguments")
        if arguments is None:
            arguments = self._send("try_worker", pool=pool, worker=document)["sample"]
        seen = str(body.get("seen") or "")
        return dict(self._send("try_worker", pool=pool, worker=document, arguments=arguments, seen=seen)["observation"])

    def _look(self, pool: str, body: Document) -> list[WorkerSpec]:
        source = _read_object(body, "source")
        if source.get("source") not in SOURCES:
            raise InvalidPool([("source.source", f"choose one of: {', '.join(SOURCES)}; or send a `worker`")])
        if source["source"] == "mcp" and _read_object(source, "server").get("transport") != "http":
            raise InvalidPool([("source.server", "a client may name an MCP server by its URL only, not a program")])
        only = body.get("only")
        offers = self._send("look", pool=pool, **source)["offers"]
        chosen = [offer for offer in offers if not offer["problem"] and only in (None, "", offer["spec"]["name"])]
        if not chosen:
            names = ", ".join(offer["spec"]["name"] for offer in offers)
            raise InvalidPool([("source", f"it offers nothing that can be added; it has: {names or 'nothing'}")])
        return [parse_worker(offer["spec"]) for offer in chosen]

    def _send(self, action: str, **fields: Any) -> Document:
        reply = self._page.run(action, fields)
        if not reply["ok"]:
            raise InvalidPool([(where, what) for where, what in reply["problems"]])
        return reply


def _find_program(spec: WorkerSpec) -> str:
    """What a call of a worker starts on this machine; "" for nothing."""
    return kind_of(spec).load().runs(load_config(spec))


def _disarm(spec: WorkerSpec) -> tuple[WorkerSpec, str]:
    """The worker, off where it wants something of the server, with a sentence that says so."""
    wants = list_wants(spec)
    if not wants:
        return spec, ""
    note = f"{spec.name} {'; '.join(wants)}; it stays off until a person switches it on there"
    return spec.model_copy(update={"enabled": False}), note


def _read_object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if not isinstance(value, Mapping):
        raise InvalidPool([(name, "this must be an object")])
    return value

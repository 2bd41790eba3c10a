"""The routes of A2A: the card, which needs no token, and JSON-RPC at /a2a."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.metadata import version as package_version
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from pool_registry.kinds import field_problems
from studio.access.permissions import needs
from studio.frame import sse
from studio.model_server.apis.a2a.tasks import Task, Tasks, TaskStatus, write_conversation
from studio.model_server.apis.a2a.versions import METHODS, VERSIONS, Document, ObjectKind, Version
from studio.model_server.errors import ApiError
from studio.model_server.request import ChatRequest, check_document
from studio.model_server.service import Service

CARD_PATH = "/.well-known/agent-card.json"
PATH = "/a2a"
# Codes of JSON-RPC, and of A2A.
NO_JSON, NO_REQUEST, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NO_TASK, TASK_IS_OVER, UNSUPPORTED, UNREAD_CONTENT = -32001, -32002, -32004, -32005
TAKES_NONE = (
    "To ask on, leave out taskId and send contextId; a plan that waits is decided about with POST /v1/approvals/ID."
)

ParamsT = TypeVar("ParamsT", bound=BaseModel)


class RpcError(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


Id = Annotated[str, Field(max_length=1000)]  # each is written into every answer


class RpcRequest(BaseModel):
    id: Id | int | None = None
    method: str
    params: dict[str, Any] = Field(default_factory=dict)


class Message(BaseModel):
    parts: list[dict[str, Any]] = Field(min_length=1)
    context_id: Id | None = Field(default=None, alias="contextId")
    task_id: Id | None = Field(default=None, alias="taskId")


class SendParams(BaseModel):
    message: Message
    configuration: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether the client waits for the end: `blocking` in 0.3, `returnImmediately` in 1.0."""
        return self.configuration.get("blocking") is not False and not self.configuration.get("returnImmediately")


class TaskParams(BaseModel):
    id: Id


def a2a_routes(name: str, needs_token: Callable[[], bool]) -> APIRouter:
    """The routes of the served model `name`; `app.state.service` answers. The card says whether a token is needed."""
    router, tasks = APIRouter(), Tasks()

    @router.get(CARD_PATH)
    @needs("viewer")
    def card(request: Request) -> JSONResponse:
        return JSONResponse(write_card(name, str(request.base_url).rstrip("/") + PATH, needs_token=needs_token()))

    @router.post(PATH)
    @needs("editor")
    async def call(request: Request) -> Response:
        rpc: RpcRequest | None = None
        try:
            rpc = await _read_rpc(request)
            return await _answer(rpc, request, name, tasks)
        except RpcError as error:
            return JSONResponse(_write_error(rpc, error))
        except ApiError as error:
            return JSONResponse(_write_error(rpc, _translate(error)), headers=error.headers)

    return router


def write_card(name: str, url: str, *, needs_token: bool) -> Document:
    """The agent card in the words of both versions: fields that a version does not have, its readers leave out."""
    bearer = {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "Bearer"}}
    security = {
        "securitySchemes": {"bearer": bearer},
        "security": [{"bearer": []}],
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
    }
    about = "Answers a question with a whole pool of agents and tools: it plans, calls them, and answers."
    return {
        "protocolVersion": "0.3.0",
        "name": name,
        "description": about,
        "version": package_version("podium-studio"),
        "url": url,
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version.name}
            for version in reversed(VERSIONS)
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "ask", "name": "Ask", "description": about, "tags": ["orchestration"]}],
        **(security if needs_token else {}),
    }


async def _read_rpc(request: Request) -> RpcRequest:
    try:
        body = await request.body()
        return await run_in_threadpool(lambda: RpcRequest.model_validate(json.loads(body)))
    except ValidationError as error:
        where, what = field_problems(error)[0]
        raise RpcError(NO_REQUEST, f"{where}: {what}") from error
    except (ValueError, RecursionError) as error:
        raise RpcError(NO_JSON, f"the body is not JSON: {error}") from error


async def _answer(rpc: RpcRequest, request: Request, name: str, tasks: Tasks) -> Response:
    if rpc.method not in METHODS:
        names = ", ".join(METHODS)
        raise RpcError(NO_METHOD, f"the method {rpc.method[:80]!r} is not served here; these are: {names}")
    version, operation = METHODS[rpc.method]
    user = request.state.user
    if operation in ("send", "stream"):
        params = await run_in_threadpool(_check, SendParams, rpc.params)
        task = await _start_task(params, request, name, tasks)
        if operation == "stream":
            return sse.stream(_stream(rpc, version, task))
        if params.waits:
            async for _ in task.follow():
                pass
        return JSONResponse(_write_success(rpc, version.write_result("task", task.write(version))))
    task = await _find_task(_check(TaskParams, rpc.params).id, request, tasks, user)
    if operation == "follow":
        return sse.stream(_stream(rpc, version, task))
    if operation == "cancel":
        if task.status.state != "working":
            raise RpcError(TASK_IS_OVER, f"the task {task.id} is {task.status.state}; it cannot be canceled")
        task.stop()
        async for _ in task.follow():
            pass
    return JSONResponse(_write_success(rpc, version.write_object("task", task.write(version))))


async def _start_task(params: SendParams, request: Request, name: str, tasks: Tasks) -> Task:
    service: Service = request.app.state.service
    user, message = request.state.user, params.message
    if message.task_id:
        raise RpcError(UNSUPPORTED, f"the task {message.task_id[:80]} takes no further message. {TAKES_NONE}")
    context = message.context_id or uuid.uuid4().hex
    question = {"role": "user", "content": await run_in_threadpool(_read_parts, message.parts)}
    before = await _drop_forgotten(tasks.list_context(context, user), tasks, service)
    messages = [*write_conversation(before), question]
    document = {"model": name, "messages": messages, "podium": params.metadata.get("podium", {})}
    chat = await run_in_threadpool(lambda: check_document(ChatRequest, document).episode_request())
    await service.refresh()
    task = Task(service.start_episode(await service.read(chat, user), user), context)
    tasks.add(task)

    async def run() -> None:
        await task.run()
        if not task.is_recorded:
            tasks.forget(task)

    service.keep_running(run())
    return task


async def _find_task(task_id: str, request: Request, tasks: Tasks, user: str) -> Task:
    """The task, with what came of its plan if that waited for a person."""
    service: Service = request.app.state.service
    kept = tasks.find(task_id, user)
    (task,) = await _drop_forgotten([kept] if kept else [], tasks, service) or (None,)
    if task is None:
        raise RpcError(NO_TASK, f"there is no task {task_id[:80]!r} of yours, or it is no longer kept")
    if task.status.state == "input-required":
        shown = await run_in_threadpool(service.approvals.show, task.id, user)
        if shown.get("answer") is not None:
            task.end_with(shown["answer"])
        elif shown["status"] not in ("requires_approval", "in_progress"):
            task.end_without(shown["status"], shown["reason"] or "")
    return task


async def _drop_forgotten(some: Sequence[Task], tasks: Tasks, service: Service) -> list[Task]:
    """Those of some tasks whose runs were not deleted meanwhile; of the others nothing is kept here, either."""
    forgotten = await run_in_threadpool(lambda: [task for task in some if task.is_forgotten(service.store.traces)])
    for task in forgotten:
        tasks.forget(task)
    return [task for task in some if task not in forgotten]


def _read_parts(parts: Sequence[Mapping[str, Any]]) -> str:
    """The text of a message. Raises RpcError for a part that is neither text nor data, and without text."""
    texts = []
    for number, part in enumerate(parts, 1):
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif "data" in part:
            texts.append(json.dumps(part["data"], ensure_ascii=False))
        else:
            raise RpcError(UNREAD_CONTENT, f"part {number} is neither text nor data; send a file's text in its place")
    if not any(text.strip() for text in texts):
        raise RpcError(BAD_PARAMS, "the message has no text; write a question")
    return "\n\n".join(texts)


def _check(kind: type[ParamsT], params: Document) -> ParamsT:
    try:
        return kind.model_validate(params)
    except ValidationError as error:
        where, what = field_problems(error)[0]
        raise RpcError(BAD_PARAMS, f"{where}: {what}") from error


async def _stream(rpc: RpcRequest, version: Version, task: Task) -> AsyncIterator[str]:
    """Server-sent results: the task as it is, every status that it has had and gets, and the answer before the last."""
    yield sse.message(_write_success(rpc, version.write_result("task", task.write(version))))
    async for status in task.follow():
        if status is None:
            yield sse.KEEP_ALIVE
        else:
            for kind, document in _write_updates(version, task, status):
                yield sse.message(_write_success(rpc, version.write_result(kind, document)))


def _write_updates(version: Version, task: Task, status: TaskStatus) -> list[tuple[ObjectKind, Document]]:
    about = {"taskId": task.id, "contextId": task.context}
    end = {"final": status.state != "working"} if version.is_kind_inside else {}
    update = {**about, "status": task.write_status(version, status), **end}
    if status.state != "completed":
        return [("status-update", update)]
    artifact = {**about, "artifact": task.write_answer(version), "append": False, "lastChunk": True}
    return [("artifact-update", artifact), ("status-update", update)]


def _write_success(rpc: RpcRequest, result: Document) -> Document:
    return {"jsonrpc": "2.0", "id": rpc.id, "result": result}


def _write_error(rpc: RpcRequest | None, error: RpcError) -> Document:
    return {"jsonrpc": "2.0", "id": rpc.id if rpc else None, "error": {"code": error.code, "message": str(error)}}


def _translate(error: ApiError) -> RpcError:
    """What was wrong with the message, or why no run began."""
    return RpcError(BAD_PARAMS if error.status in (400, 404, 413, 422) else INTERNAL, str(error))

"""A2A both ways, with the protocol's own package: its client asks a served pool, and its server is a worker's agent."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import recognise
from pool_registry.pool import Pool
from tests.neighbours.conftest import require
from tests.studio.support.edge_home import home, model
from tests.studio.support.served import serving

require("a2a")
pytestmark = pytest.mark.slow
__all__ = ["home", "model"]
VERSIONS = ("0.3", "1.0")


@pytest.fixture(scope="module")
def url(home) -> Iterator[str]:
    with serving(home, "--pool", "edge", "--orchestrator", "direct:agent") as running:
        yield running


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("streams", [True, False])
def test_its_client_asks_a_served_pool(url, version, streams):
    from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
    from a2a.helpers import get_artifact_text, new_text_message
    from a2a.types import GetTaskRequest, SendMessageRequest, TaskState
    from a2a.types.a2a_pb2 import Role

    async def ask() -> None:
        async with httpx.AsyncClient(timeout=120, trust_env=False) as http:
            card = await A2ACardResolver(http, url).get_agent_card()
            places = [place for place in card.supported_interfaces if place.protocol_version == version]
            assert card.name and places
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(places)
            client = ClientFactory(ClientConfig(streaming=streams, httpx_client=http)).create(card)
            message = new_text_message("say hello", role=Role.ROLE_USER)
            events = [event async for event in client.send_message(SendMessageRequest(message=message))]
            kinds = [event.WhichOneof("payload") for event in events]
            assert kinds[0] == "task" and ("artifact_update" in kinds) == streams
            task = await client.get_task(GetTaskRequest(id=events[0].task.id))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            assert [get_artifact_text(artifact) for artifact in task.artifacts] == ["hello"]

    asyncio.run(ask())


@pytest.fixture(scope="module")
def agent() -> Iterator[str]:
    """The address of an agent of its package that answers in capitals, by a task with an artifact."""
    import uvicorn
    from a2a.helpers import new_task_from_user_message, new_text_part
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes.agent_card_routes import create_agent_card_routes
    from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
    from starlette.applications import Starlette

    class Shouting(AgentExecutor):
        async def execute(self, context, event_queue) -> None:
            task = context.current_task or new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            updater = TaskUpdater(event_queue, task.id, task.context_id)
            await updater.add_artifact([new_text_part(context.get_user_input().upper())])
            await updater.complete()

        async def cancel(self, context, event_queue) -> None:
            raise NotImplementedError

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = f"http://127.0.0.1:{port}/rpc"
    card = AgentCard(
        name="Shouting",
        description="Answers in capitals.",
        version="1",
        default_input_modes=["text"],
        default_output_modes=["text"],
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="shout", name="Shout", description="Capitals.", tags=["text"])],
        supported_interfaces=[
            AgentInterface(url=place, protocol_binding="JSONRPC", protocol_version=version) for version in VERSIONS
        ],
    )
    handler = DefaultRequestHandler(agent_executor=Shouting(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("version", VERSIONS)
def test_its_server_is_an_agent_of_a_pool(agent, version):
    card = httpx.get(f"{agent}/.well-known/agent-card.json").text
    text = recognise(card, ImportSettings(private=True))
    assert text.kind.name == "agent_card"
    (offer,) = text.recognition.offers
    spec = offer.spec.model_copy(update={"config": {**offer.spec.config, "version": version}})

    async def call() -> object:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await pool.call(Action(spec.name, {"message": "good morning"}))

    observation = asyncio.run(call())
    assert observation.ok and observation.value == "GOOD MORNING"

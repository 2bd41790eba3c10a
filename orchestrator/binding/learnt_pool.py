"""The learnt workers as an open pool that is only read: names and schemas for grammars, dialects and parsers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.binding.learnt_worker import LearntWorker
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.errors import WorkerFault
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Role, Worker, WorkerSpec

# One of each role, with few imports: their files travel with every Space.
ROLE_KINDS: Mapping[Role, str] = {"tool": "function", "agent": "chat", "recursion": "orchestrator"}


class LearntAdapter(Worker[NoConfig]):
    """A learnt worker without anything behind it."""

    def __init__(self, spec: WorkerSpec, parameters: Mapping[str, JsonValue]) -> None:
        super().__init__(spec, NoConfig())
        self._parameters = parameters

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self._parameters

    async def call(self, call: Call) -> Reply:  # noqa: ARG002
        raise WorkerFault("not_bound", f"{self.spec.name} is known by its description only and cannot be called")


def open_learnt_pool(learnt: Sequence[LearntWorker]) -> LivePool:
    """Open the pool of these workers."""
    workers = [_open(item) for item in learnt]
    pool = Pool(name="learnt", workers=tuple(worker.spec for worker in workers))
    return LivePool(pool, {worker.spec.name: worker for worker in workers})


def _open(learnt: LearntWorker) -> LiveWorker:
    spec = WorkerSpec(name=learnt.name, kind=ROLE_KINDS[learnt.role], description=learnt.description)
    return LiveWorker(spec, LearntAdapter(spec, learnt.parameters))

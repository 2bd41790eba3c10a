"""Kind `python`: runs a snippet in the sandbox and returns its last value, or what it printed."""

from __future__ import annotations

import math

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.sandbox.runner import Sandbox, isolation
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string


class Python(Worker[NoConfig]):
    label = "Python sandbox"
    summary = "Runs a snippet without network, files or processes."
    icon = "M8 8l-4 4 4 4 M16 8l4 4-4 4 M13.5 5l-3 14"
    cacheable = True
    sandboxed = True
    sample = {"code": "import math\nmath.lcm(212, 285, 246)"}
    parameters = one_string("code", "Python with the standard library; the last expression is the result.")

    def __init__(self, spec: WorkerSpec, config: NoConfig) -> None:
        super().__init__(spec, config)
        self._sandbox = Sandbox(cpu_s=max(1, int(spec.timeout_s) + 1))

    async def call(self, call: Call) -> Reply:
        result = await self._sandbox.run(call.text("code"))
        if result.error is not None:
            kind, message = result.error
            if kind == "syntax":
                raise BadCall(message, code="syntax_error")
            raise WorkerFault(kind, message)
        return Reply(result.value if result.value is not None else parse_output(result.stdout))

    async def check(self) -> str:
        state = await isolation()
        if state.level is None:
            raise WorkerFault("sandbox_unavailable", state.reason)
        return state.reason

    async def close(self) -> None:
        await self._sandbox.close()


def parse_output(stdout: str) -> JsonValue:
    """Return standard output without its last newline; a lone number as a number."""
    text = stdout.strip()
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text

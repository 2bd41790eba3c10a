"""`react`: one agent in a serial tool-calling loop over the whole pool (after ReAct, arXiv 2210.03629).

The same model, prompt and dialect as `model`, but one call in each turn: the agent sees its output before it makes the
next. The difference between the two policies is therefore what parallel plans are worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.dialects import find_dialect
from orchestrator.dialects.base import Dialect
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Step, Turn
from orchestrator.policies.model import ModelPolicy
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Draw

ONE_CALL = (
    "\nIn this conversation make exactly one call in each turn. Its output comes back before your next turn; "
    "any further call, and an answer beside a call, is left out."
)
WHOLE_WORKFLOWS = ("conductor", "conductor_paper")  # a whole workflow in one turn: there is no loop in it


class OneCall:
    """A dialect that keeps only the first call of a turn, so that the loop is serial whatever a model writes."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.name = dialect.name
        self.calls_tools = dialect.calls_tools

    def instructions(self, pool: LivePool) -> str:
        return self._dialect.instructions(pool) + ONE_CALL

    def system_prompt(self, pool: LivePool) -> str | None:
        return self._dialect.system_prompt(pool)

    def name_workers(self, pool: LivePool) -> Mapping[str, str]:
        return self._dialect.name_workers(pool)

    def tools(self, pool: LivePool) -> list[Mapping[str, JsonValue]] | None:
        return self._dialect.tools(pool)

    def call_arguments(self, step: Step) -> Mapping[str, JsonValue]:
        return self._dialect.call_arguments(step)

    def parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        """The turn cut to its first call. Its text is then that call alone: in later turns the model must not read
        calls that were never made."""
        turn = self._dialect.parse(text, first_id, workers)
        if not turn.steps or (len(turn.steps) == 1 and not turn.has_answer):
            return turn
        cut = Turn(turn.steps[:1])
        return replace(cut, text=self._dialect.format(cut, workers))

    def format(self, turn: Turn, workers: Sequence[str]) -> str:
        return self._dialect.format(turn, workers)


def react_policy(pool: LivePool, agent: str, dialect: str = "", draw: Draw | None = None) -> ModelPolicy:
    """A ReAct loop of an agent of the pool. Raises UnknownOrchestrator for a dialect without single calls."""
    written = find_dialect(dialect or _own_dialect(pool.workers[agent]))
    if written.name in WHOLE_WORKFLOWS:
        raise UnknownOrchestrator(
            f"react makes one call in each turn, and {written.name} writes whole workflows; use plan or tool_calls"
        )
    return ModelPolicy(f"react:{agent}:{written.name}", pool, pool.workers[agent], OneCall(written), draw=draw)


def _own_dialect(agent: LiveWorker) -> str:
    """The default dialect: endpoints have tool calling of their own, most small local models do not."""
    return "tool_calls" if agent.worker.remote else "plan"

"""The form in which a client wants its answer: JSON that fits a schema, or a call of one of its tools.

The answer of an episode often fits already, or holds JSON that does. Where it does not, an agent of the pool writes it
again; where the schema has one property, the answer is its value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Orchestrator
from orchestrator.plan import Step, Turn, escape, escape_value, fit_arguments
from orchestrator.policies.base import agent_step, write_turn
from orchestrator.policies.fallback import AUTO, choose_fallback_agent
from pool_registry.actions import JsonValue, as_text, storable
from pool_registry.calls.live_pool import LivePool
from pool_registry.schemas.schema_check import SchemaCheck
from studio.model_server.client_tools import ClientCalls

TRIES = 2  # of an agent that writes the answer again
ROUNDS = 2 * TRIES + 2  # beyond those of the orchestrator
MAX_ANSWER_CHARS = 20_000
ANY_OBJECT: Mapping[str, JsonValue] = {"type": "object"}


class AnswerForm:
    """A JSON Schema that the answer must fit. Raises ValueError where it is none."""

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self.schema = schema
        self._check = SchemaCheck(schema)

    def fit(self, answer: JsonValue) -> JsonValue:
        """The answer as a value that fits. Raises ValueError saying how it differs."""
        candidates = [answer, *_read_json(answer)]
        for candidate in [*candidates, *self._wrap(answer)]:
            if self._check.accepts(candidate):
                return candidate
        raise ValueError(self._check.explain(candidates[-1], "result"))

    def write_instruction(self) -> str:
        """What a model is told so that its answer fits."""
        if self.schema == ANY_OBJECT:
            return "Answer with one JSON object and nothing else."
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"Answer with JSON alone, without a fence, that fits this JSON Schema:\n{schema}"

    def _wrap(self, answer: JsonValue) -> list[JsonValue]:
        """The answer as the one property that the schema asks for."""
        properties = self.schema.get("properties")
        names = list(properties) if isinstance(properties, Mapping) else []
        required = self.schema.get("required")
        names = list(required) if isinstance(required, list) and required else names
        return [fit_arguments({str(names[0]): answer}, self.schema)] if len(names) == 1 else []


class AnswerFormPolicy(Orchestrator):
    """An orchestrator whose answer is brought into a form before it ends the episode.

    `tools` are the workers of the client's tools that must be called before the answer, where the client demands a
    call; with several of them the orchestrator is told once.
    """

    def __init__(
        self,
        inner: Orchestrator,
        pool: LivePool,
        form: AnswerForm | None,
        calls: ClientCalls,
        tools: Mapping[str, AnswerForm],
    ) -> None:
        self.inner = inner
        self.name = inner.name
        self.gives_up = inner.gives_up
        self._form, self._calls, self._tools = form, calls, tools
        self._agent = choose_fallback_agent(pool, AUTO)
        self._held: JsonValue = None
        self._problem = ""
        self._tries = 0
        self._reminded = False

    def accepts_answer(self, answer: JsonValue) -> bool:
        """Whether the answer has its form; one that has not is kept for the next turn."""
        form = self._pending_form()
        if form is None:
            return not self._must_remind()
        try:
            fitted = form.fit(answer)
        except ValueError as error:
            if self._tries >= TRIES or not self._agent:
                return True  # the request is answered with an error that says so
            self._held = answer if self._held is None else self._held
            self._problem = str(error)
            return False
        if form is self._form:
            return True
        self._held, self._problem = fitted, ""  # the arguments of the client's tool
        return False

    async def turn(self, episode: Episode) -> Turn:
        """Raises what the orchestrator raises."""
        if self._must_remind() and self._held_back(episode):
            self._reminded = True
            return Turn(error=f"call one of {', '.join(self._tools)} before you answer: the client demands it")
        if self._held is None:
            return await self.inner.turn(episode)
        return self._write_again(episode) if self._problem else self._call_tool(episode)

    def _pending_form(self) -> AnswerForm | None:
        """The form that the next answer must have."""
        if self._tools and not self._calls.made:
            return next(iter(self._tools.values())) if len(self._tools) == 1 else None
        return self._form

    def _must_remind(self) -> bool:
        return len(self._tools) > 1 and not self._calls.made and not self._reminded

    def _held_back(self, episode: Episode) -> bool:
        turns = [done.turn for done in episode.rounds if done.turn is not None]
        return bool(turns) and turns[-1].has_answer

    def _write_again(self, episode: Episode) -> Turn:
        form = self._pending_form()
        assert form is not None, "an answer is held back for a form"
        self._tries += 1
        step = episode.next_step_id
        instruction = (
            f"{form.write_instruction()}\n\nWrite this answer in that form; add nothing to what it says.\n"
            f"Question: {episode.query[:MAX_ANSWER_CHARS]}\n"
            f"Answer: {as_text(self._held)[:MAX_ANSWER_CHARS]}\nIt did not fit: {self._problem}"
        )
        return write_turn([agent_step(step, self._agent, escape(instruction))], f"${step}")

    def _call_tool(self, episode: Episode) -> Turn:
        arguments, self._held = self._held, None
        assert isinstance(arguments, Mapping), "the parameters of a function are an object"
        step = episode.next_step_id
        escaped = escape_value(arguments)
        assert isinstance(escaped, dict)
        return write_turn([Step(step, next(iter(self._tools)), escaped)], f"${step}")


def _read_json(answer: JsonValue) -> list[JsonValue]:
    """The JSON values that a text may stand for: itself, and the first object or list in it."""
    if not isinstance(answer, str):
        return []
    values = []
    for start in (0, *sorted(place for mark in "{[" if (place := answer.find(mark)) > 0)):
        try:
            value, _ = json.JSONDecoder().raw_decode(answer[start:].lstrip())
            values.append(storable(value))
        except (ValueError, RecursionError):
            continue
    return values

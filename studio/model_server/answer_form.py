"""The form in which a client wants its answer: JSON that fits a schema, or a call of one of its tools.

The answer of an episode often fits already, or holds JSON that does, or is the value of the one property that it fits.
Where it does not, an agent of the pool writes it again, held to the schema: a local model by a grammar, an endpoint by
its structured outputs. What comes of it is checked all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Orchestrator
from orchestrator.grammars.held_schema import hold_schema
from orchestrator.grammars.json_rules import resolve_local
from orchestrator.plan import Step, Turn, fit_arguments
from orchestrator.policies.base import agent_step, write_turn
from orchestrator.policies.fallback import AUTO, choose_fallback_agent
from orchestrator.quotes import escape, escape_value
from pool_registry.actions import JsonValue, as_text, storable
from pool_registry.language_models.completion import Grammar
from pool_registry.schemas.schema_check import SchemaCheck
from studio.model_server.client_tools import ClientCalls, RequestPool

TRIES = 3  # of an agent that writes the answer again
ROUNDS = 2 * TRIES + 2  # beyond those of the orchestrator
MAX_ANSWER_CHARS = 20_000
MAX_WRAPS = 50  # properties that a bare value is tried as
# Of llguidance: white space as everywhere in JSON here, and no error for a keyword that it does not know.
_GUIDANCE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
ANY_OBJECT: Mapping[str, JsonValue] = {"type": "object"}


class AnswerForm:
    """A JSON Schema that the answer must fit. Raises ValueError where it is none."""

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self.schema = schema
        self._check = SchemaCheck(schema)
        self._held = hold_schema(schema)

    def fit(self, answer: JsonValue) -> JsonValue:
        """The answer as a value that fits. Raises ValueError saying how it differs."""
        candidates = [answer, *_read_json(answer)]
        for candidate in candidates:
            if self._check.accepts(candidate):
                return candidate
        for candidate in candidates:
            unique = self._check.drop_repeats(candidate)
            if self._check.accepts(unique):
                return unique
        for candidate in candidates:
            wrapped = self._wrap(candidate)
            if len(wrapped) == 1:
                return wrapped[0]
        raise ValueError(self._check.explain(candidates[min(1, len(candidates) - 1)], "result"))

    @property
    def remark(self) -> str:
        """What of the schema no grammar can hold a model to, in a sentence; "" where there is nothing."""
        words = ", ".join(f"`{word}`" for word in self._held.unheld)
        return words and f"A model can be told of {words} in this schema, but not be held to it"

    def write_instruction(self) -> str:
        """What a model is told so that its answer fits."""
        if self.schema == ANY_OBJECT:
            return "Answer with one JSON object and nothing else."
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"Answer with JSON alone, without a fence, that fits this JSON Schema:\n{schema}"

    def write_grammar(self) -> Grammar:
        """The form for a model that can be held to it. What the grammar cannot say of a schema is left to the check,
        whose words the model is told before it tries again."""
        schema = {**self._held.schema, "x-guidance": _GUIDANCE}
        return Grammar(f"%llguidance {{}}\nstart: %json {json.dumps(schema)}\n", self.schema)

    def _wrap(self, value: JsonValue) -> list[JsonValue]:
        """The value as each property that is enough and that it fits. An object is none: it has its own names."""
        schema = resolve_local(self.schema, self.schema)
        if not isinstance(schema, Mapping) or _is_object(value):
            return []
        properties, required = schema.get("properties"), schema.get("required")
        names = list(properties) if isinstance(properties, Mapping) else []
        names = list(required) if isinstance(required, list) and required else names
        documents = [fit_arguments({str(name): value}, schema) for name in names[:MAX_WRAPS]]
        return [document for document in documents if self._check.accepts(document)]


class AnswerFormPolicy(Orchestrator):
    """An orchestrator whose answer is brought into a form before it ends the episode.

    `tools` are the workers of the client's tools that must be called before the answer, where the client demands a
    call; with several of them the orchestrator is told once.
    """

    def __init__(
        self,
        inner: Orchestrator,
        pool: RequestPool,
        form: AnswerForm | None,
        calls: ClientCalls,
        tools: Mapping[str, AnswerForm],
    ) -> None:
        self.inner = inner
        self.name = inner.name
        self.gives_up = inner.gives_up
        self._form, self._calls, self._tools = form, calls, tools
        self._pool, self._agent = pool, choose_fallback_agent(pool, AUTO)
        self._held: JsonValue = None
        self._attempt = ""  # of the agent, which did not fit
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
            self._attempt = as_text(answer) if self._tries else ""
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
        if not self._problem:
            return self._call_tool(episode)
        if self._tries >= TRIES:  # the agent failed; the answer as it is says why it does not fit
            return write_turn([], escape(as_text(self._held)))
        return self._write_again(episode)

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
        question = episode.query.removesuffix(f"\n\n{form.write_instruction()}")  # stands above
        attempt = f"\nYour try: {self._attempt[:MAX_ANSWER_CHARS]}" if self._attempt else ""
        instruction = (
            f"{form.write_instruction()}\n\nWrite this answer in that form; add nothing to what it says.\n"
            f"Question: {question[:MAX_ANSWER_CHARS]}\n"
            f"Answer: {as_text(self._held)[:MAX_ANSWER_CHARS]}{attempt}\nIt did not fit: {self._problem}"
        )
        self._pool.hold(self._agent, instruction, form.write_grammar())
        return write_turn([agent_step(step, self._agent, escape(instruction))], f"${step}")

    def _call_tool(self, episode: Episode) -> Turn:
        arguments, self._held = self._held, None
        assert isinstance(arguments, Mapping), "the parameters of a function are an object"
        step = episode.next_step_id
        escaped = escape_value(arguments)
        assert isinstance(escaped, dict)
        return write_turn([Step(step, next(iter(self._tools)), escaped)], f"${step}")


def _is_object(value: JsonValue) -> bool:
    """Whether a value is an object, or a text that holds one and nothing else."""
    if not isinstance(value, str):
        return isinstance(value, Mapping)
    try:
        return isinstance(json.loads(value), Mapping)
    except (ValueError, RecursionError):
        return False


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

"""Plans of one to four steps, made of calls that work: alone, side by side, one fed by another, summed up.

A call is fed with the output of another where the worker takes it: the call is really made. Numbers are fed to workers
that take nothing but numbers, so that nobody converts a number of customers into miles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from orchestrator.plan import Step, renumber_step
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, LiveWorker
from trainer.tasks.practice.calls import KnownCall, call_twice, can_be_asked
from trainer.tasks.practice.phrase import Phrase, ask_for, ask_for_both, ask_in_turn, describe_call, join_phrases

ADDERS = ("calculator",)  # kinds of workers that take an arithmetic expression
SHAPES = {1: ("single",), 2: ("chain", "pair"), 3: ("chain", "pair", "sum"), 4: ("sum",)}


@dataclass(frozen=True, slots=True)
class Part:
    """A plan in the making: steps with ids from 1, what its last step returned, and the words that ask for that."""

    steps: tuple[Step, ...]
    value: JsonValue
    phrase: Phrase
    opening: Phrase | None = None  # an action that comes before, whose result the last one works on

    @property
    def last(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class Draft:
    """A whole task: its query, its plan with the answer as it quotes the steps, and the values of the answer."""

    query: str
    steps: tuple[Step, ...]
    answer: JsonValue
    values: tuple[JsonValue, ...]


@dataclass(slots=True)
class Composer:
    """Makes drafts from the known calls of a pool."""

    pool: LivePool
    calls: Mapping[str, Sequence[KnownCall]]
    random: Random
    _results: dict[str, JsonValue] = field(default_factory=dict)  # of calls that were made to see whether they work

    def _list_askable(self) -> list[str]:
        """The workers whose calls tasks are made of: not those that calculate, which add up what others say."""
        others = sorted(name for name in self.calls if self.pool.workers[name].spec.kind not in ADDERS)
        return others or sorted(self.calls)

    async def draw(self, steps: int) -> Draft | None:
        """A task of so many steps; None where what was drawn does not fit together."""
        shape = self.random.choice(SHAPES[steps])
        if shape == "single":
            return self._ask(self._draw_call())
        if shape == "chain":
            part: Part | None = self._draw_call()
            for _ in range(steps - 1):
                part = await self._feed(part) if part is not None else None
            return self._ask(part) if part is not None else None
        first = await self._draw_part(steps - 1 - (shape == "sum"))
        second = self._draw_call()
        if first is None or first.opening is not None or first.phrase == second.phrase:
            return None
        return await self._add(first, second) if shape == "sum" else self._pair(first, second)

    async def _draw_part(self, steps: int) -> Part | None:
        part: Part | None = self._draw_call()
        for _ in range(steps - 1):
            part = await self._feed(part) if part is not None else None
        return part

    def _draw_call(self) -> Part:
        call = self.random.choice(self.calls[self.random.choice(self._list_askable())])
        phrase = Phrase(call.request) if call.request else self._describe(call.worker, call.arguments)
        return Part((Step(1, call.worker, escape_dollars(call.arguments)),), call.value, phrase)

    def _describe(self, worker: str, arguments: Mapping[str, JsonValue]) -> Phrase:
        return describe_call(self.pool.workers[worker].spec.description, arguments)

    async def _feed(self, part: Part) -> Part | None:
        """A call that takes the part's value in the place of one of its arguments; None where none does."""
        if part.opening is not None:
            return None  # "with the result" could mean two results
        called = {step.worker for step in part.steps}
        for call, name in self._list_inputs(part.value):
            if call.worker in called:
                continue
            arguments = {**call.arguments, name: part.value}
            value = await self._try(call.worker, arguments)
            if can_be_asked(value) and as_text(value) not in (as_text(part.value), as_text(call.value)):
                quoted = {**escape_dollars(call.arguments), name: f"${part.last}"}
                step = Step(part.last + 1, call.worker, quoted, (part.last,))
                inner = "the result" if part.phrase.is_action else part.phrase.text
                phrase = self._describe(call.worker, {**call.arguments, name: inner})
                opening = part.phrase if part.phrase.is_action else part.opening
                return Part((*part.steps, step), value, phrase, opening)
        return None

    def _list_inputs(self, value: JsonValue) -> list[tuple[KnownCall, str]]:
        """List calls with the name of an argument that could take a value, in a drawn order."""
        inputs = [
            (self.random.choice(calls), name)
            for worker, calls in self.calls.items()
            for name in _list_fitting(self.pool.workers[worker], value)
            if not calls[0].request  # its words hold the arguments already
        ]
        inputs = [(call, name) for call, name in inputs if name in call.arguments]
        self.random.shuffle(inputs)
        return inputs

    async def _try(self, worker: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        key = f"{worker} {json.dumps(arguments, sort_keys=True, default=str)}"
        if key not in self._results:
            self._results[key] = await call_twice(self.pool.workers[worker], arguments)
        return self._results[key]

    async def _add(self, first: Part, second: Part) -> Draft | None:
        """The sum or the difference of two numbers, by a worker of the pool that calculates."""
        adder = next((worker for worker in self.pool.workers.values() if worker.spec.kind in ADDERS), None)
        if adder is None or not (_is_number(first.value) and _is_number(second.value)):
            return None
        if first.phrase.is_action or second.phrase.is_action:
            return None
        operation = self.random.choice(("sum", "difference"))
        template = "{0} + {1}" if operation == "sum" else "abs({0} - {1})"
        name = next(iter(_list_rules(adder)))
        value = await self._try(adder.spec.name, {name: template.format(first.value, second.value)})
        if not can_be_asked(value):
            return None
        steps, places = _join(first, second)
        quoted = template.format(*(f"${place}" for place in places))
        steps = (*steps, Step(len(steps) + 1, adder.spec.name, {name: quoted}, places))
        query = join_phrases(operation, first.phrase, second.phrase, self.random)
        return Draft(query, steps, f"${len(steps)}", (value,))

    def _pair(self, first: Part, second: Part) -> Draft | None:
        if isinstance(first.value, list) or isinstance(second.value, list):
            return None
        steps, (one, other) = _join(first, second)
        query = ask_for_both(first.phrase, second.phrase, self.random)
        return Draft(query, steps, f"${one} and ${other}", (first.value, second.value))

    def _ask(self, part: Part) -> Draft:
        if part.opening is not None:
            query = ask_in_turn(part.opening, part.phrase, self.random)
        else:
            query = ask_for(part.phrase, self.random)
        return Draft(query, part.steps, f"${part.last}", (part.value,))


def _join(first: Part, second: Part) -> tuple[tuple[Step, ...], tuple[int, int]]:
    """The steps of both, and the ids of those that hold their values."""
    ids = {place: place + first.last for place in range(1, second.last + 1)}
    moved = tuple(renumber_step(step, ids) for step in second.steps)
    return (*first.steps, *moved), (first.last, first.last + second.last)


def _list_fitting(worker: LiveWorker, value: JsonValue) -> list[str]:
    """The parameters of a worker that take a value of this type."""
    rules = _list_rules(worker)
    if worker.spec.kind in ADDERS:
        return []
    kinds = {rule.get("type") for rule in rules.values()}
    if _is_number(value):
        return list(rules) if kinds <= {"number", "integer"} else []
    free = [name for name, rule in rules.items() if rule.get("type") == "string" and "enum" not in rule]
    return free if isinstance(value, str) else []


def _list_rules(worker: LiveWorker) -> dict[str, Mapping[str, JsonValue]]:
    """The schema of each parameter."""
    properties = worker.parameters.get("properties")
    rules = properties if isinstance(properties, Mapping) else {}
    return {name: rule for name, rule in rules.items() if isinstance(rule, Mapping)}


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def escape_dollars(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Write arguments as in a plan, where one dollar quotes a step's output and two stand for a dollar."""
    return {name: value.replace("$", "$$") if isinstance(value, str) else value for name, value in arguments.items()}

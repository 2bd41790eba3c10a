"""Plans of one to four steps, made of calls that work: alone, side by side, one fed by another, summed up.

A call is fed with the output of another where the worker takes it: the call is really made. Numbers are fed to workers
that take nothing but numbers, so that nobody converts a number of customers into miles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from orchestrator.plan import Step, renumber_step
from orchestrator.quotes import references, select_field
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, LiveWorker
from trainer.tasks.practice.calls import KnownCall, call_twice, can_be_asked
from trainer.tasks.practice.clauses import is_clause, name_thing
from trainer.tasks.practice.measures import list_input_measures, list_output_measures
from trainer.tasks.practice.phrase import (
    Phrase,
    ask_for,
    ask_for_both,
    ask_in_turn,
    describe_call,
    describe_field,
    drop_switched_off,
    join_phrases,
    share_end,
)

ADDERS = ("calculator",)  # kinds of workers that take an arithmetic expression
SHAPES = {1: ("single",), 2: ("chain", "pair"), 3: ("chain", "pair", "sum"), 4: ("sum",)}


@dataclass(frozen=True, slots=True)
class Part:
    """A plan in the making: steps with ids from 1, the value that it is for, and the words that ask for that. `path`
    leads to the value in what the last step `returned`."""

    steps: tuple[Step, ...]
    value: JsonValue
    phrase: Phrase
    path: str = ""
    returned: JsonValue = None
    opening: Phrase | None = None  # an action that comes before, whose result the last one works on

    @property
    def last(self) -> int:
        return len(self.steps)

    @property
    def quote(self) -> str:
        """The value as a later step or the answer quotes it."""
        return f"${self.last}{self.path}"


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
            part = self._draw_call()
            return self._ask(part) if part is not None else None
        if shape == "chain":
            part = await self._draw_part(steps)
            return self._ask(part) if part is not None else None
        first = await self._draw_part(steps - 1 - (shape == "sum"))
        if first is None or first.opening is not None:
            return None
        second = self._draw_call(lambda call: _is_same_kind(call, first) if shape == "sum" else _goes_with(call, first))
        if second is None or first.phrase == second.phrase:
            return None
        return await self._add(first, second) if shape == "sum" else self._pair(first, second)

    async def _draw_part(self, steps: int) -> Part | None:
        part: Part | None = self._draw_call()
        for _ in range(steps - 1):
            part = await self._feed(part) if part is not None else None
        return part

    def _draw_call(self, fits: Callable[[KnownCall], bool] = lambda _: True) -> Part | None:
        """A call alone, of those that fit; None where none does."""
        fitting = {name: [call for call in self.calls[name] if fits(call)] for name in self._list_askable()}
        workers = [name for name, calls in fitting.items() if calls]
        if not workers:
            return None
        call = self.random.choice(fitting[self.random.choice(workers)])
        phrase = Phrase(call.request) if call.request else self._describe(call, call.arguments)
        phrase = phrase.answered_by(call.value)
        return Part(
            (Step(1, call.worker, escape_dollars(call.arguments)),), call.value, phrase, call.path, call.returned
        )

    def _describe(self, call: KnownCall, arguments: Mapping[str, JsonValue]) -> Phrase:
        worker = self.pool.workers[call.worker]
        phrase = describe_call(drop_switched_off(worker.spec.description, _list_rules(worker)), arguments)
        return describe_field(phrase, call.path)

    async def _feed(self, part: Part) -> Part | None:
        """A call that takes the part's value in the place of one of its arguments; None where none does."""
        if part.opening is not None:
            return None  # "with the result" could mean two results
        called = {step.worker for step in part.steps}
        for call, name in self._list_inputs(part.value):
            if call.worker in called:
                continue
            literals = {**call.arguments, **_share_arguments(call, part)}
            arguments = {**literals, name: part.value}
            returned = await self._try(call.worker, arguments)
            value, missing = select_field(returned, call.path)
            if returned == part.returned or as_text(value) in _list_given(part):
                continue  # an earlier step would have been enough: the day after the day before
            if not missing and can_be_asked(value) and as_text(value) not in (as_text(part.value), as_text(call.value)):
                quoted = {**escape_dollars(literals), name: part.quote}
                step = Step(part.last + 1, call.worker, quoted, (part.last,))
                inner = "the result" if part.phrase.is_action else _name_as_thing(part.phrase.text)
                if not inner or (_is_number(part.value) and not self._measures_same(call, name, part)):
                    continue
                phrase = self._describe(call, {**literals, name: inner}).answered_by(value)
                opening = part.phrase if part.phrase.is_action else part.opening
                if opening is not None and not phrase.is_action:
                    continue  # "with the result, the price" says nothing
                if is_clause(part.phrase.text) and not phrase.text.endswith(inner):
                    continue  # "how many points the team Nadia is in has" is read twice
                return Part((*part.steps, step), value, phrase, call.path, returned, opening)
        return None

    def _measures_same(self, call: KnownCall, name: str, part: Part) -> bool:
        """Whether a parameter takes what a part's number measures: both name euros, or kilometres."""
        taker, giver = (self.pool.workers[worker].spec for worker in (call.worker, part.steps[-1].worker))
        return bool(list_input_measures(name, taker.description) & list_output_measures(giver.description))

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
        quoted = template.format(f"${places[0]}{first.path}", f"${places[1]}{second.path}")
        steps = (*steps, Step(len(steps) + 1, adder.spec.name, {name: quoted}, places))
        query = join_phrases(operation, first.phrase, second.phrase, self.random)
        return Draft(query, steps, f"${len(steps)}", (value,))

    def _pair(self, first: Part, second: Part) -> Draft | None:
        if isinstance(first.value, list | bool) or isinstance(second.value, list | bool):
            return None  # two lists in one answer run together, and two truths are easily guessed
        if second.phrase.is_action or not share_end(first.phrase, second.phrase):
            return None  # not one sentence
        steps, (one, other) = _join(first, second)
        query = ask_for_both(first.phrase, second.phrase, self.random)
        answer = f"${one}{first.path} and ${other}{second.path}"
        return Draft(query, steps, answer, (first.value, second.value))

    def _ask(self, part: Part) -> Draft:
        if part.opening is not None:
            query = ask_in_turn(part.opening, part.phrase, self.random)
        else:
            query = ask_for(part.phrase, self.random)
        return Draft(query, part.steps, part.quote, (part.value,))


def _share_arguments(call: KnownCall, part: Part) -> dict[str, JsonValue]:
    """The arguments that a call takes over from the last step of a part: one country for both."""
    last = part.steps[-1].arguments
    return {name: last[name] for name in call.arguments if name in last and not references(last[name])}


def _list_given(part: Part) -> set[str]:
    """The texts of the arguments of a part's steps."""
    return {as_text(value) for step in part.steps for value in step.arguments.values()}


def _is_same_kind(call: KnownCall, part: Part) -> bool:
    """Whether a call gives the same kind of number as a part: nobody adds a depth to a fee."""
    return call.worker == part.steps[-1].worker and call.path == part.path and not call.request


def _goes_with(call: KnownCall, part: Part) -> bool:
    """Whether a call says something else about the subject of a part, a name that both take."""
    if _is_same_kind(call, part) or part.phrase.is_action or is_clause(part.phrase.text) or len(part.steps) > 1:
        return False
    subjects = {as_text(value) for value in part.steps[-1].arguments.values() if isinstance(value, str)}
    return not call.request and any(value in subjects for value in call.arguments.values() if isinstance(value, str))


def _name_as_thing(text: str) -> str:
    """What is asked for as a part of another question; "" where it cannot be one."""
    return name_thing(text) if is_clause(text) else text


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

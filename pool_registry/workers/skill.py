"""Kind `skill`: a plan with parameters over other workers of its pool, which solved several similar tasks.

A call fills in the parameters and runs the plan as an episode inside the running one: its steps are checked, charged,
limited and recorded like those of any plan. `{name}` in an argument stands for a parameter: alone it is the value
itself, inside longer text its text. `$k` quotes the output of step k, as in every plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Self

from pydantic import Field, model_validator

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import WorkerFault
from pool_registry.strict_model import StrictModel
from pool_registry.text import count_of
from pool_registry.worker import Call, PlannedCall, Reply, Worker

_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")


class SkillStep(StrictModel):
    """One call of the plan; its number is its place in the list, from 1 on. `access`: the earlier steps it may see."""

    worker: str = Field(min_length=1)
    arguments: dict[str, JsonValue] = {}
    access: tuple[int, ...] = ()


class SkillRecord(StrictModel):
    """How a skill was tested: `right` of `tried` replays of solved questions gave the right answer; `at` (UTC) when.
    It was made of the runs with the ids `runs`, and of the pool's own tasks: `tasks` are digests of their questions."""

    right: int = Field(ge=0)
    tried: int = Field(ge=0)
    at: str = ""
    runs: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def describe(self) -> str:
        """One sentence for people: how it was tested, when, and what it was made of."""
        counts = (count_of(len(self.runs), "run"), count_of(len(self.tasks), "task"))
        made_of = " and ".join(text for text, kept in zip(counts, (self.runs, self.tasks), strict=True) if kept)
        day = f" on {self.at[:10]}" if self.at else ""
        return f"Right on {self.right} of {self.tried} solved questions{day}; made of {made_of or 'nothing recorded'}."


class SkillConfig(StrictModel):
    steps: tuple[SkillStep, ...] = Field(min_length=1, description="The calls of the plan, in their order.")
    answer: JsonValue = Field(description="What a call returns: $k is the output of step k, $k.name a field of it.")
    parameters: dict[str, JsonValue] = Field(description="JSON Schema of what the plan is filled in with.")
    record: SkillRecord | None = Field(default=None, description="How it was tested.")

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        properties = self.parameters.get("properties")
        names = set(properties) if isinstance(properties, Mapping) else set()
        used = {name for step in self.steps for name in list_places(step.arguments)}
        if unused := names - used:
            raise ValueError(f"no step uses the parameter {', '.join(sorted(unused))}; take it out")
        for number, step in enumerate(self.steps, start=1):
            if any(not 0 < k < number for k in step.access):
                raise ValueError(f"step {number} may see earlier steps alone; correct its access")
        return self


class Skill(Worker[SkillConfig]):
    role = "recursion"
    label = "Plan skill"
    summary = "A plan with parameters that solved several similar tasks."
    icon = "M13 2 4 14h7l-1 8 9-12h-7l1-8z"
    template = None
    Config = SkillConfig

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    @property
    def called_workers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.worker for step in self.config.steps))

    async def call(self, call: Call) -> Reply:
        if call.scope is None:
            raise WorkerFault("no_episode", "a skill runs inside an episode only; use it in a plan")
        return await call.scope.follow(self.spec.name, self.fill(call.arguments), self.config.answer, call)

    def fill(self, arguments: Mapping[str, JsonValue]) -> tuple[PlannedCall, ...]:
        """The calls of the plan with these arguments. Steps that use one which was left out do without that argument
        of theirs."""
        properties = self.config.parameters.get("properties")
        names = frozenset(properties) if isinstance(properties, Mapping) else frozenset()
        left_out = names - arguments.keys()
        values = {name: double_dollars(value) for name, value in arguments.items()}
        return tuple(
            PlannedCall(
                step.worker,
                {
                    name: _fill(value, values)
                    for name, value in step.arguments.items()
                    if left_out.isdisjoint(list_places(value))
                },
                step.access,
            )
            for step in self.config.steps
        )


def list_places(value: JsonValue) -> Iterator[str]:
    """The names in braces in the texts of a JSON value."""
    if isinstance(value, str):
        yield from _PLACE.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from list_places(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from list_places(item)


def double_dollars(value: JsonValue) -> JsonValue:
    """A JSON value whose texts quote no step: what a caller passes is no part of the plan."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, Mapping):
        return {key: double_dollars(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [double_dollars(item) for item in value]
    return value


def _fill(value: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return _PLACE.sub(lambda place: as_text(values[place[1]]) if place[1] in values else place[0], value)
    if isinstance(value, Mapping):
        return {key: _fill(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(item, values) for item in value]
    return value

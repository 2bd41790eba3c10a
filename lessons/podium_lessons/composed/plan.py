"""Writes the plan of a composed question: look-ups in a domain's functions, and what puts their values together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.quotes import select_field, substitute
from podium_lessons.composed.functions import DomainFunction
from podium_lessons.composed.worker import run_function
from podium_lessons.everyday.step_writer import StepWriter
from pool_registry.actions import JsonValue


@dataclass(slots=True, kw_only=True)
class ComposedPlan(StepWriter):
    """The plan of one question. A call that stands in it already is not made again."""

    cut: Sequence[DomainFunction]
    calls: dict[tuple[str, str], str] = field(default_factory=dict)  # the quotes of calls that were made

    def look_up(self, kind: str, thing: str, name: str, need: str) -> str:
        """The quote of a field of a thing, which is a name or a quote."""
        function = self._find("record", kind, name)
        quote = self._call(function, {"thing": thing}, need)
        return quote if function.config.bare else f"{quote}.{name}"

    def list_group(self, kind: str, shared: str, thing: str, need: str) -> str:
        """The quote of the list of things of a kind that share a thing."""
        function = next(
            function
            for function in self.cut
            if (function.config.form, function.config.about, function.config.field) == ("group", kind, shared)
        )
        return self._call(function, {"thing": thing}, need)

    def calculate(self, calculation: str, name: str, parts: Mapping[str, JsonValue], need: str) -> str:
        """The quote of a value of a calculation."""
        function = self._find("calculation", calculation, name)
        quote = self._call(function, parts, need)
        return quote if function.config.bare else f"{quote}.{name}"

    def read(self, quote: str) -> JsonValue:
        """The value behind a quote."""
        return substitute(quote, self.values)

    def _find(self, form: str, about: str, name: str) -> DomainFunction:
        return next(
            function
            for function in self.cut
            if function.config.form == form and function.config.about == about and name in function.config.fields
        )

    def _call(self, function: DomainFunction, parts: Mapping[str, JsonValue], need: str) -> str:
        key = (function.spec.name, repr(sorted(parts.items())))
        if key not in self.calls:
            self.add(function.spec.name, parts, need)
            exact = {part: substitute(value, self.values) for part, value in parts.items()}
            self.values[len(self.steps)] = run_function(function.config, exact)
            self.calls[key] = f"${len(self.steps)}"
        return self.calls[key]


def select_all(rows: JsonValue, name: str) -> list[JsonValue]:
    """A field of all rows."""
    value, _ = select_field(rows, f"[*].{name}")
    return value if isinstance(value, list) else []

"""Grammars of a reader's two passes: the needs of a plan, and the arguments of the workers that serve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.grammars.json_rules import OPTIONS, JsonRules, join_choices, write_text
from pool_registry.actions import JsonValue
from pool_registry.language_models.completion import Grammar

_WORD = r"[^\s()$\x00-\x1f\x7f]+"


def needs_grammar(max_steps: int, refusal: str = "") -> Grammar:
    """One to `max_steps` lines: the number of the line, a dot, words, and in brackets the numbers of earlier lines.

    1. distance between two airports
    2. convert kilometers to miles (1)

    Or `refusal` alone, where there is one.
    """
    rest = ""
    for number in range(max_steps, 0, -1):
        line = rf"{number}\. {_WORD}( {_WORD})*{_bracket(number)}"
        rest = line + (rf"(\n{rest})?" if rest else "")
    other = f" | {write_text(refusal)}" if refusal else ""
    return Grammar(f"{OPTIONS}\nstart: /{rest}/{other}\n")


def choice_grammar(texts: Sequence[str]) -> Grammar:
    """One of some texts."""
    return Grammar(f"{OPTIONS}\nstart: {join_choices([write_text(text) for text in texts])}\n")


def fill_grammar(schemas: Sequence[Mapping[str, JsonValue]], refusals: Sequence[str] = ()) -> Grammar:
    """A line for each schema, in order: its number, a dot, and an object of it; last the answer. A value may quote
    the lines before its own, the answer all of them.

        1. {"route": "LHR to JFK"}
        2. {"value": "$1", "from_unit": "km", "to_unit": "mile"}
        = $2

    Or one of `refusals` alone, without the mark of an answer: so a reader learns to write it.
    """
    rules = JsonRules()
    lines = []
    for number, schema in enumerate(schemas, 1):
        arguments = rules.add_object(schema, tuple(range(1, number)), schema)
        lines.append(rf'"{number}. " {rules.define(f"line_{number}", arguments)} "\n"')
    answer = rules.add_line(tuple(range(1, len(schemas) + 1)))
    plan = " ".join([*lines, '"= "', answer])
    return Grammar(rules.write(join_choices([plan, *map(write_text, refusals)])))


def _bracket(number: int) -> str:
    """A pattern for the numbers of lines before this one, or for nothing."""
    earlier = "|".join(map(str, range(1, number)))
    return rf"( \(({earlier})(, ({earlier})){{0,{number - 1}}}\))?" if earlier else ""

"""Arguments that a worker may take: what its schema and its description spell out, and values that occur elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice, product
from random import Random
from types import MappingProxyType

import yaml

from assets import asset
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LiveWorker
from pool_registry.strict_model import FrozenModel

MAX_OPTIONS = 24  # of one parameter
MAX_COMBINATIONS = 2000
MAX_VALUE_CHARS = 60
_QUOTED = re.compile(r"(?<!\w)['\"`]([^'\"`]{1,60})['\"`](?!\w)")
_NAMED = re.compile(r"\b(?:e\.g\.|such as|for example|like|as in)[:,]?\s+([^;.()\n]{1,80})", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]\w*(?:[-_][\w]+)*")


def guess_arguments(
    worker: LiveWorker,
    values: Sequence[JsonValue],
    count: int,
    random: Random,
    named: Mapping[str, Sequence[JsonValue]] = MappingProxyType({}),
) -> list[dict[str, JsonValue]]:
    """Guess at most `count` sets of arguments with all required parameters; none where one has no option.

    `values` are what the parameters may take that name no options of their own; those that fields of the parameter's
    name had elsewhere (`named`) come in their place.
    """
    schema = worker.parameters
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    required = schema.get("required")
    names = [name for name in properties if isinstance(required, list | tuple) and name in required]
    whole = worker.spec.description
    hints = [whole if len(names) == 1 else find_parameter_hint(whole, name) for name in names]
    options = [
        list_options(properties[name], f"{name}: {hint}", named.get(name.casefold(), values))
        for name, hint in zip(names, hints, strict=True)
    ]
    if not names or not all(options):
        return []
    for choices in options:
        random.shuffle(choices)
    combinations = list(islice(product(*options), MAX_COMBINATIONS))
    random.shuffle(combinations)
    chosen = [combination for combination in combinations if not _repeats_text(combination)][:count]
    return [dict(zip(names, values, strict=True)) for values in chosen]


def _repeats_text(values: Sequence[JsonValue]) -> bool:
    """Whether a text occurs twice: nobody asks for the time from noon to noon."""
    texts = [value for value in values if isinstance(value, str)]
    return len(set(texts)) < len(texts)


def list_options(rule: JsonValue, description: str, values: Sequence[JsonValue]) -> list[JsonValue]:
    """What a parameter may be: its choices, else its examples and what parameters of its kind usually take, else
    `values` of its type. `description` is what is said of it besides its schema."""
    if not isinstance(rule, Mapping):
        return []
    if "const" in rule:
        return [rule["const"]]
    if isinstance(choices := rule.get("enum"), list | tuple) and choices:
        return list(choices)[:MAX_OPTIONS]
    kind = rule.get("type")
    if kind == "boolean":
        return [True, False]
    examples = rule.get("examples")
    shown: list[JsonValue] = list(examples) if isinstance(examples, list | tuple) else []
    if "default" in rule:
        shown.append(rule["default"])
    about = f"{rule.get('description', '')} {description}"
    shown += list_usual_values(str(rule.get("format", "")), about, is_text=kind == "string")
    if kind in ("integer", "number"):
        return _list_numbers(rule, kind == "integer", shown, values)
    texts = [*shown, *list_quoted(about)]
    return _keep_distinct([*texts, *(value for value in values if isinstance(value, str))] if kind == "string" else [])


class UsualValues(FrozenModel):
    """One entry of assets/tasks/practice_values.yaml."""

    format: str = ""
    words: str
    values: tuple[str | int | float, ...]


@cache
def load_usual_values() -> tuple[UsualValues, ...]:
    entries = yaml.safe_load(asset("tasks/practice_values.yaml").read_text(encoding="utf-8"))
    return tuple(map(UsualValues.model_validate, entries))


def list_usual_values(form: str, about: str, *, is_text: bool) -> list[JsonValue]:
    """What parameters of a well-known kind take, such as dates and country codes: texts, or numbers."""
    for entry in load_usual_values():
        values: list[JsonValue] = [value for value in entry.values if isinstance(value, str) == is_text]
        if values and ((form and form == entry.format) or re.search(entry.words, about, re.IGNORECASE)):
            return values
    return []


def find_parameter_hint(description: str, name: str) -> str:
    """What a docstring says of one parameter: the lines of its entry, up to that of the next one."""
    entry = re.search(
        rf"^[ \t]*`?{re.escape(name)}`?(?: \([^)\n]*\))?:(.*(?:\n(?![ \t]*`?\w+`?(?: \([^)\n]*\))?:).+)*)",
        description,
        re.M,
    )
    return " ".join(entry[1].split()) if entry else ""


def _list_numbers(
    rule: Mapping[str, JsonValue], whole: bool, shown: Sequence[JsonValue], values: Sequence[JsonValue]
) -> list[JsonValue]:
    low, high = rule.get("minimum"), rule.get("maximum")
    numbers: list[JsonValue] = [value for value in shown if _is_number(value)]
    numbers += [value for value in values if _is_number(value) and (not whole or isinstance(value, int))]
    if isinstance(low, int | float) and isinstance(high, int | float):
        numbers += [round(low + (high - low) * part) if whole else low + (high - low) * part for part in (0.25, 0.5, 1)]
    return _keep_distinct(numbers or [2, 3, 5, 8, 12])


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def list_quoted(text: str) -> list[str]:
    """What a description quotes or names as an example: 'LIS to GRU', "such as Paris, Rome"."""
    quoted: list[str] = _QUOTED.findall(text)
    named = [part.strip() for match in _NAMED.findall(text) for part in re.split(r",| or | and ", match)]
    return [item for item in dict.fromkeys([*quoted, *named]) if item and "'" not in item]


def list_occurring_values(outputs: Iterable[JsonValue], random: Random) -> list[JsonValue]:
    """List short values in what workers returned, and names in their texts, in a drawn order."""
    kept: list[JsonValue] = []
    for output in outputs:
        kept += _list_parts(output)
    kept = _keep_distinct(kept)
    random.shuffle(kept)
    return kept


def _list_parts(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, Mapping):
        return [part for item in value.values() for part in _list_parts(item)]
    if isinstance(value, list | tuple):
        return [part for item in value for part in _list_parts(item)]
    if _is_number(value):
        return [value]
    if not isinstance(value, str):
        return []
    names = [word for word in _WORD.findall(value) if word[:1].isupper() or any(letter.isdigit() for letter in word)]
    whole = [value] if 0 < len(value) <= MAX_VALUE_CHARS else []
    return [*whole, *names]


def _keep_distinct(values: Iterable[JsonValue]) -> list[JsonValue]:
    """Keep each value once, at most MAX_OPTIONS."""
    return list({(type(value).__name__, as_text(value)): value for value in values}.values())[:MAX_OPTIONS]

"""Which parameter of one worker stands for which of another: the same types, then the likest name and description."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.retrieval.likeness import choose_pairs, compare_texts
from pool_registry.actions import JsonValue

_WORD = re.compile(r"[^\W_]+")
Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    type: str
    required: bool
    choices: frozenset[str]
    about: str

    def can_stand_for(self, other: _Parameter) -> bool:
        """Whether a value made for `other` may fit: the same type, and choices in common where both have some."""
        shared = not self.choices or not other.choices or bool(self.choices & other.choices)
        return self.type == other.type and shared


def take_same_arguments(learnt: Schema, at_hand: Schema) -> bool:
    """Whether two schemas ask for the same kind of arguments: as many required ones of each type."""
    needed, there = _list_required(learnt), _list_required(at_hand)
    if sorted(item.type for item in needed) != sorted(item.type for item in there):
        return False
    return all(any(other.can_stand_for(item) for other in there) for item in needed)


def match_parameters(learnt: Schema, at_hand: Schema) -> dict[str, str]:
    """The new names of the parameters that are called otherwise at hand, as {learnt: at hand}."""
    needed, there = _list_parameters(learnt), _list_parameters(at_hand)
    own = {item.name: item for item in there}
    same = {item.name for item in needed if item.name in own and own[item.name].can_stand_for(item)}
    rest = [item for item in needed if item.name not in same]
    free = [item for item in there if item.name not in same]
    return {old: new for required in (True, False) for old, new in _match(rest, free, required).items()}


def _match(learnt: Sequence[_Parameter], at_hand: Sequence[_Parameter], required: bool) -> dict[str, str]:
    old = [item for item in learnt if item.required == required]
    new = [item for item in at_hand if item.required == required]
    if not old or not new:
        return {}
    allowed = [[other.can_stand_for(item) for other in new] for item in old]
    if len(old) == len(new) == 1:
        return {old[0].name: new[0].name} if allowed[0][0] else {}
    likeness = compare_texts([item.about for item in old], [item.about for item in new]).scores
    # 2: above every likeness, so that a pair which is allowed always beats leaving a parameter out
    scores = [
        [like + 2 if fits else 0.0 for like, fits in zip(*row, strict=True)]
        for row in zip(likeness, allowed, strict=True)
    ]
    return {old[i].name: new[j].name for i, j in choose_pairs(scores)}


def _list_required(schema: Schema) -> list[_Parameter]:
    return [item for item in _list_parameters(schema) if item.required]


def _list_parameters(schema: Schema) -> list[_Parameter]:
    properties = schema.get("properties")
    required = schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    rules = properties if isinstance(properties, Mapping) else {}
    return [_read_parameter(name, rule, name in needed) for name, rule in rules.items()]


def _read_parameter(name: str, rule: JsonValue, required: bool) -> _Parameter:
    rule = rule if isinstance(rule, Mapping) else {}
    choices = rule.get("enum")
    texts = frozenset(map(str, choices)) if isinstance(choices, list | tuple) else frozenset()
    words = " ".join(_WORD.findall(name))
    return _Parameter(name, _read_type(rule), required, texts, f"{words}: {rule.get('description', '')}")


def _read_type(rule: Mapping[str, JsonValue]) -> str:
    """The type of a parameter; whole numbers are numbers, and null beside another type says nothing."""
    kinds = rule.get("type", "any")
    names = sorted(map(str, kinds)) if isinstance(kinds, list | tuple) else [str(kinds)]
    names = ["number" if name == "integer" else name for name in names if name != "null"]
    return "|".join(dict.fromkeys(names)) or "any"

"""Random JSON Schemas of objects, as clients write them for `response_format`: each can be fulfilled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]
WORDS = ("name", "city", "count", "price", "tags", "status", "when", "inner", "größe", "is_open", "a b", "x-1")
MAX_LEVELS = 3


def make_schemas(count: int, seed: int = 0) -> list[Schema]:
    """The same schemas for the same seed."""
    return [_Maker(random.Random(f"{seed}-{index}")).make_root() for index in range(count)]


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def make_root(self) -> Schema:
        schema = self._object(MAX_LEVELS)
        match self._chance.randrange(4):
            case 0:  # as pydantic writes a model inside another one
                schema["$defs"] = {"Part": self._object(1)}
                schema["properties"]["part"] = {"$ref": "#/$defs/Part"}
                schema["required"] = [*schema["required"], "part"]
            case 1:
                return {"$ref": "#/$defs/Root", "$defs": {"Root": schema}}
            case 2:
                schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        return schema

    def _object(self, levels: int) -> Schema:
        names = self._chance.sample(WORDS, self._chance.randint(2, 5))
        properties = {name: self._any(levels - 1) for name in names}
        required = names if self._chance.random() < 0.6 else names[: self._chance.randint(2, len(names))]
        closed = {"additionalProperties": False} if self._chance.random() < 0.7 else {}
        return {"type": "object", "properties": properties, "required": list(required), **closed}

    def _any(self, levels: int) -> Schema:
        flat: list[Callable[[], Schema]] = [self._string, self._number, self._integer, self._enum, self._flag]
        deep: list[Callable[[], Schema]] = [
            lambda: self._object(levels),
            lambda: self._array(levels),
            lambda: {"anyOf": [self._any(levels - 1), {"type": "null"}]},
        ]
        return self._chance.choice(flat + deep if levels > 0 else flat)()

    def _string(self) -> Schema:
        rules: list[Schema] = [
            {}, {}, {"minLength": 3}, {"maxLength": 12}, {"pattern": "^[A-Z]{2}[0-9]{3}$"},
            {"format": "date"}, {"format": "date-time"}, {"format": "email"}, {"format": "uuid"},
            {"description": "Say it in a few words."},
        ]  # fmt: skip
        return {"type": "string", **self._chance.choice(rules)}

    def _number(self) -> Schema:
        return {"type": "number", **self._chance.choice([{}, {"minimum": 0}, {"minimum": -2.5, "maximum": 7.25}])}

    def _integer(self) -> Schema:
        low = self._chance.randint(-50, 50)
        bounds = self._chance.choice([{}, {"minimum": low, "maximum": low + 20}, {"multipleOf": 5}])
        return {"type": "integer", **bounds}

    def _enum(self) -> Schema:
        return self._chance.choice([{"enum": ["low", "high", "größer"]}, {"const": "fixed"}, {"enum": [1, 2, None]}])

    def _flag(self) -> Schema:
        return {"type": ["boolean", "null"] if self._chance.random() < 0.3 else "boolean"}

    def _array(self, levels: int) -> Schema:
        bounds = self._chance.choice([{}, {"minItems": 1}, {"maxItems": 2}, {"minItems": 2, "maxItems": 3}])
        return {"type": "array", "items": self._any(levels - 1), **bounds}

"""Kind `units`: converts a value between units of measure, through pint."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall
from pool_registry.worker import Call, NoConfig, Reply, Worker

# What people and atlases write, in pint's words.
ALIASES = {
    "sq km": "km**2",
    "sq m": "m**2",
    "sq mi": "mile**2",
    "sq ft": "foot**2",
    "cu m": "m**3",
    "cu km": "km**3",
}


class Units(Worker[NoConfig]):
    sample = {"value": 59910, "from_unit": "square kilometer", "to_unit": "acre"}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {
            "type": "object",
            "properties": {
                "value": {"type": "number", "description": "How many of from_unit."},
                "from_unit": {"type": "string", "minLength": 1, "maxLength": 80},
                "to_unit": {"type": "string", "minLength": 1, "maxLength": 80},
            },
            "required": ["value", "from_unit", "to_unit"],
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        value = call.arguments["value"]
        assert isinstance(value, int | float), "the schema says number"
        return Reply(convert(float(value), call.text("from_unit"), call.text("to_unit")))

    async def check(self) -> str:
        convert(1.0, "kilometer", "mile")
        return "ready"


def convert(value: float, from_unit: str, to_unit: str) -> float:
    """`value` from one unit in another. Raises BadCall for unknown units or another dimension."""
    quantity = _registry().Quantity(value, _unit(from_unit))
    target = _unit(to_unit)
    try:
        return float(quantity.to(target).magnitude)
    except Exception as error:
        raise BadCall(f"{from_unit} cannot be converted to {to_unit}: {error}") from error


def _unit(name: str) -> Any:
    text = ALIASES.get(name.strip().lower(), name.strip())
    for spelling in dict.fromkeys((text.replace(" ", "_"), text)):  # nautical_mile, but square kilometer
        try:
            return _registry().parse_units(spelling)
        except Exception as error:  # noqa: BLE001  as above; the text is a model's
            problem = error
    raise BadCall(f"{name!r} is not a unit that is known here: {problem}") from problem


@cache
def _registry() -> Any:
    from pint import UnitRegistry

    return UnitRegistry(autoconvert_offset_to_baseunit=True, cache_folder=None)

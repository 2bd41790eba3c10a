"""Kind `units`: converts a value between units of measure, through pint.

A unit's text comes from a model and pint evaluates it, so that only words, small powers and * / ( ) get
as far as pint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.load_once import LoadOnce
from pool_registry.worker import Call, NoConfig, Reply, Worker

# What people and atlases write, in pint's words.
_WRITTEN = (
    (re.compile(r"\bsq\b\.?", re.IGNORECASE), "square"),
    (re.compile(r"\bcu\b\.?", re.IGNORECASE), "cubic"),
    (re.compile(r"\b(?:deg(?:ree)?s?\.? ?|° ?)?(?:celsius|celcius|centigrade)\b", re.IGNORECASE), "degC"),
    (re.compile(r"\b(?:deg(?:ree)?s?\.? ?)?fah?renh?eit\b", re.IGNORECASE), "degF"),
    (re.compile(r"\bdeg(?:ree)?s?\.? ?kelvins?\b", re.IGNORECASE), "kelvin"),
    (re.compile(r"(?:\bdeg(?:ree)?s?\.? |° )([CF])\b", re.IGNORECASE), r"deg\1"),
    (re.compile(r"\bdeg([cf])\b"), lambda match: f"deg{match[1].upper()}"),
    (re.compile(r"\bsq(ft|m|km|mi|yd|in)\b", re.IGNORECASE), r"square \1"),
    (re.compile(r"\b(?:fl(?:uid)?\.? ?oz|fluid ounces?)\b\.?", re.IGNORECASE), "fluid_ounce"),
    (re.compile(r"\bkm(?:/?hr?|ph)\b", re.IGNORECASE), "km/hour"),
    (re.compile(r"\b(kg|km|cm|mm|lb|oz|ml|yd)s\b", re.IGNORECASE), lambda match: match[1].lower()),
    (re.compile(r"\bkilos\b", re.IGNORECASE), "kilograms"),
    (re.compile(r"\bmetric tons?\b", re.IGNORECASE), "tonne"),
    (re.compile(r"\b(?:US|U\.S\.|statute) ", re.IGNORECASE), ""),
    (re.compile(r"([a-z])([23])\b", re.IGNORECASE), r"\1**\2"),  # km2
    (re.compile(r"(?<=[a-z])-(?=[a-z])", re.IGNORECASE), " "),  # kilowatt-hour
)
_SCALE = re.compile(r"[FCK]|(?:DEG.*|°) ?[FC]|.*(?:CELSIUS|CELCIUS|CENTIGRADE|RENH?EIT|KELVINS?)")
# Words, 1, powers of one digit that are not powers themselves, and * / ( ). Possessive: no backtracking.
_WRITABLE = re.compile(r"(?:[^\W\d]\w*+|1\b|(?:\*\*|\^)\s*-?\d\b(?!\s*(?:\*\*|\^))|[*/()·⋅°%\s])++")


class Units(Worker[NoConfig]):
    label = "Units"
    summary = "Converts between units of measure."
    icon = "M3 16L16 3l5 5L8 21z M7 12l2 2 M10 9l2 2 M13 6l2 2"
    cacheable = True
    sample = {"value": 59910, "from_unit": "square kilometer", "to_unit": "acre"}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        unit = {"type": "string", "minLength": 1, "maxLength": 80}
        return {
            "type": "object",
            "properties": {
                "value": {"type": "number", "description": "How many of from_unit."},
                "from_unit": {**unit, "description": "Such as square kilometer, mi, lbs, °F or mile/hour."},
                "to_unit": {**unit, "description": "Such as acre, km**2, degF or knot."},
            },
            "required": ["value", "from_unit", "to_unit"],
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        await _registry.ready()
        value = call.arguments["value"]
        assert isinstance(value, int | float), "the schema says number"
        return Reply(convert(value, call.text("from_unit"), call.text("to_unit")))

    async def check(self) -> str:
        await _registry.ready()
        convert(1.0, "kilometer", "mile")
        return "ready"


def convert(value: float, from_unit: str, to_unit: str) -> float:
    """Convert `value` from one unit to another. Raises BadCall for unknown units or another dimension."""
    source, target = map(_unit, _as_temperatures(from_unit, to_unit))
    try:
        result = float(_registry().Quantity(float(value), source).to(target).magnitude)
    except Exception as error:
        raise BadCall(f"{from_unit} cannot be converted to {to_unit}: {error}") from error
    if not math.isfinite(result):
        raise WorkerFault("math_error", f"{value:g} {from_unit} is too large a number in {to_unit}")
    return result


def _as_temperatures(*names: str) -> tuple[str, ...]:
    """The units themselves; where a bare F or C stands beside another letter of a thermometer, degrees are meant."""
    letters = [name.strip().upper() for name in names]
    if set(letters) & {"F", "C"} and all(_SCALE.fullmatch(letter) for letter in letters):
        return tuple(
            f"deg{letter}" if letter in ("F", "C") else name for letter, name in zip(letters, names, strict=True)
        )
    return names


def _unit(name: str) -> Any:
    text = name.strip()
    for pattern, replacement in _WRITTEN:
        text = pattern.sub(replacement, text)
    if not _WRITABLE.fullmatch(text):
        raise BadCall(f"{name!r} is not a unit; write words such as square kilometer, or km**2, or mile/hour")
    problem: Exception | None = None
    for spelling in dict.fromkeys((text, text.replace(" ", "_"), text.lower())):  # nautical mile, Acre
        try:
            return _registry().parse_units(spelling)
        except Exception as error:  # noqa: BLE001  the text is a model's, and pint's parser raises anything
            problem = problem or error
    raise BadCall(f"{name!r} is not a unit that is known here: {problem}") from problem


@LoadOnce  # 0.3 s; two registries must not be made, because their units do not mix
def _registry() -> Any:
    from pint import UnitRegistry

    return UnitRegistry(autoconvert_offset_to_baseunit=True, cache_folder=None)

"""Makes data/tasks/catalog.json, the tools of the source `catalog`, from the tools of Seal-Tools (Apache-2.0).

    python -m podium_lessons.scripts.build_catalog --tools tools.jsonl

Kept is a tool whose every required parameter has values to draw: numbers, dates, years, ids, places and people by rule,
other texts from the examples in the descriptions of parameters of that name.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podium_lessons.catalog.values import TEXT_RULES, find_text_rule
from podium_lessons.lesson_data import FOLDER

OUT = FOLDER / "tasks" / "catalog.json"
MAX_VALUES = 10  # of a parameter
MAX_VALUE_CHARS = 32
MIN_VALUES = 3
TOOLS_OF_A_FIELD = 14
MAX_DESCRIPTION_CHARS = 90
NUMBER_TYPES = {"int": "integer", "float": "number"}
VAGUE_PARAMETERS = frozenset(
    {"data", "parameters", "input_data", "params", "options", "settings", "dataset", "content"}
)
_EXAMPLES = re.compile(r"\((?:e\.g\.|for example|such as),?\s*([^()]*)\)", re.IGNORECASE)
_NO_VALUE = re.compile(
    r"\b(?:etc|or|and|any|other|specific|number of|yyyy|hh:mm|id|code|name|url)\b|[^\x20-\x7e]|[{}\[\]\"$]"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_VERB = re.compile(r"[A-Z][a-z]+ (?:[a-z]|[A-Z])")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, required=True, help="tools.jsonl of Seal-Tools")
    rows = [json.loads(line) for line in parser.parse_args().tools.read_text(encoding="utf-8").splitlines()]
    values = _collect_values(rows)
    fields: dict[str, list[dict[str, Any]]] = defaultdict(list)
    names: set[str] = set()
    descriptions: set[str] = set()
    for row in rows:
        tool = _read_tool(row, values)
        field = row["field"].split("/")[0]
        known = tool is None or tool["name"] in names or tool["description"] in descriptions
        if tool is not None and not known and len(fields[field]) < TOOLS_OF_A_FIELD:
            fields[field].append(tool)
            names.add(tool["name"])
            descriptions.add(tool["description"])
    kept = {field: tools for field, tools in sorted(fields.items()) if len(tools) > 2}
    OUT.write_text(_dump(kept), encoding="utf-8")
    print(f"{sum(map(len, kept.values())):,} tools of {len(kept)} fields, {OUT.stat().st_size:,} bytes")


def _collect_values(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The examples that descriptions give, by the name of the parameter."""
    values: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for name, parameter in row["parameters"].items():
            values[name] += _read_examples(parameter)
    return {name: list(dict.fromkeys(found)) for name, found in values.items()}


def _read_examples(parameter: Mapping[str, Any]) -> list[str]:
    match = _EXAMPLES.search(parameter["description"])
    parts = [part.strip(" .'") for part in match[1].split(",")] if match else []
    if parameter["type"] in NUMBER_TYPES:
        return [number[0] for part in parts if (number := _NUMBER.search(part))]
    return [part for part in parts if part and len(part) <= MAX_VALUE_CHARS and not _NO_VALUE.search(part.lower())]


def _read_tool(row: Mapping[str, Any], values: Mapping[str, Sequence[str]]) -> dict[str, Any] | None:
    """A tool as the data file holds it; None where it is of no use."""
    description = row["api_description"].strip().rstrip(".")
    outputs = {
        name: "number" if output["type"] in NUMBER_TYPES else "string"
        for name, output in row["responses"].items()
        if output["type"] != "bool" and _NAME.fullmatch(name)
    }
    parameters = {}
    for name, parameter in row["parameters"].items():
        needed = name in row["required"]
        read = _read_parameter(name, parameter, needed, values)
        if read is not None:
            parameters[name] = read
        elif needed:
            return None
    usable = any(parameter["required"] for parameter in parameters.values()) and outputs
    if not usable or len(description) > MAX_DESCRIPTION_CHARS or not _VERB.match(description):
        return None
    return {
        "name": re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", row["api_name"]).lower(),
        "description": description,
        "parameters": parameters,
        "outputs": outputs,
    }


def _read_parameter(
    name: str, parameter: Mapping[str, Any], needed: bool, values: Mapping[str, Sequence[str]]
) -> dict[str, Any] | None:
    """A parameter with what it may hold; None where nothing can be drawn."""
    if not _NAME.fullmatch(name) or name in VAGUE_PARAMETERS or parameter["type"] == "bool":
        return None
    hint = re.sub(r"\s+", " ", parameter["description"]).strip()
    base: dict[str, Any] = {"hint": hint, "required": needed}
    own = _read_examples(parameter)
    if parameter["type"] in NUMBER_TYPES:
        numbers = sorted({float(number) for number in own})[:MAX_VALUES] if len(own) > 1 else []
        return base | {"type": NUMBER_TYPES[parameter["type"]], "range": [numbers[0], numbers[-1]] if numbers else []}
    if (rule := find_text_rule(name)) in TEXT_RULES:
        return base | {"type": "string", "rule": rule}
    found = list(dict.fromkeys(own if len(own) >= MIN_VALUES else [*own, *values.get(name, ())]))[:MAX_VALUES]
    return base | {"type": "string", "values": found} if len(found) >= MIN_VALUES else None


def _dump(fields: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The text of the data file, a line for each tool."""
    blocks = (
        f"{json.dumps(field)}: [\n" + ",\n".join(json.dumps(tool) for tool in tools) + "\n]"
        for field, tools in sorted(fields.items())
    )
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    main()

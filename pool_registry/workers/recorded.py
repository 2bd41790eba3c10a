"""Kind `recorded`: a tool of a data set, which replays the answers that its calls had there.

The tool itself is not here. A call that the data set holds gets the answer that was recorded. Any other
fails, or, where the data set has calls without answers, returns itself with a label.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import Field

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.schemas.argument_schema import ArgumentsSchema, SchemaNotes
from pool_registry.strict_model import StrictModel
from pool_registry.text import count_of
from pool_registry.worker import Call, Reply, SampleCall, Worker, WorkerSpec

SHOWN_CALLS = 3
SHOWN_CHARS = 300


class RecordedReply(StrictModel):
    """The answer to one call."""

    arguments: dict[str, JsonValue]
    output: JsonValue


class RecordedConfig(StrictModel):
    tool: str = Field(min_length=1, max_length=256, description="The tool's name in the data set.")
    parameters: ArgumentsSchema
    mended: SchemaNotes
    replies: tuple[RecordedReply, ...] = Field(default=(), description="The calls of the data set and their answers.")
    echoes: bool = Field(
        default=False,
        description='A call without a recorded answer returns itself, labelled "recorded call". Off: it fails.',
    )


class Recorded(Worker[RecordedConfig]):
    label = "Recorded tool"
    summary = "Replays the answers that a data set holds for the calls of a tool."
    icon = "M12 3a9 9 0 1 0 9 9 M12 7v5l3 2 M21 4v5h-5"
    template = None
    Config = RecordedConfig
    cacheable = True

    def __init__(self, spec: WorkerSpec, config: RecordedConfig) -> None:
        super().__init__(spec, config)
        rows = reversed(config.replies)  # of two answers to equal calls the first one counts
        self._outputs = {make_call_key(row.arguments, config.parameters): row.output for row in rows}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    async def call(self, call: Call) -> Reply:
        key = make_call_key(call.arguments, self.config.parameters)
        if key in self._outputs:
            return Reply(self._outputs[key])
        if self.config.echoes:
            return Reply(write_echo(self.config.tool, call.arguments, self.config.parameters))
        first = [json.dumps(row.arguments, ensure_ascii=False) for row in self.config.replies[:SHOWN_CALLS]]
        calls = "; ".join(first)[:SHOWN_CHARS] or "none"
        raise WorkerFault("not_recorded", f"no answer was recorded for these arguments; there is one for: {calls}")

    async def check(self) -> str:
        if not self.config.replies:
            return "no answer was recorded: it returns the call itself"
        return f"replays {count_of(len(self.config.replies), 'recorded answer')}"

    async def list_sample_calls(self, count: int) -> Sequence[SampleCall]:
        return [SampleCall(row.arguments) for row in self.config.replies[:count]]


def write_echo(tool: str, arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> str:
    """A call as the labelled text that stands for the answer that nobody recorded."""
    written = json.dumps(_leave_out_defaults(arguments, schema), ensure_ascii=False, sort_keys=True)
    return f"recorded call {tool} {written}"


def make_call_key(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> str:
    """What equal calls have in common: their arguments without case, white space around texts, and defaults."""
    return json.dumps(_fold(_leave_out_defaults(arguments, schema)), ensure_ascii=False, sort_keys=True)


def _leave_out_defaults(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The arguments without those that are null or as they would be without them."""
    properties = schema.get("properties")
    rules = properties if isinstance(properties, Mapping) else {}
    written = {name: _write_whole(value) for name, value in arguments.items() if value is not None}
    return {name: value for name, value in written.items() if not _is_default(value, rules.get(name))}


def _is_default(value: JsonValue, rule: object) -> bool:
    return isinstance(rule, Mapping) and "default" in rule and rule["default"] == value


def _write_whole(value: JsonValue) -> JsonValue:
    """A number without the fraction that it does not have."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _fold(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, Mapping):
        return {name: _fold(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fold(item) for item in value]
    return _write_whole(value)

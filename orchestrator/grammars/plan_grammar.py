"""The grammar of one turn in dialect `plan`, made from the workers of the pool at hand.

Whatever it accepts can be read: the names of workers and parameters are the pool's, values have the types of the
schemas, access lists hold ids of earlier steps, and the answer quotes steps that are there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.grammars.json_rules import QUOTE, JsonRules, Quotes, join_choices, write_text
from orchestrator.plan import Step, Turn
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Grammar


def plan_grammar(pool: LivePool, first_id: int, earlier_ids: Sequence[int], max_steps: int) -> Grammar:
    """The grammar of a turn of at most `max_steps` steps, numbered from `first_id`. `earlier_ids` are the steps of
    earlier rounds, which every step may see and quote."""
    rules = JsonRules()
    before = tuple(earlier_ids)
    workers = list(pool.workers.values())
    answer_only = rf'"{{\"answer\": " {rules.add_any(before)} "}}"'
    if not workers or max_steps < 1:
        return Grammar(rules.write(answer_only), _write_schema(workers))
    for number in range(max_steps, 0, -1):
        quotes = (*before, *range(first_id, first_id + number - 1))
        step = rules.define(f"step_{number}", join_choices([_add_step(rules, worker, quotes) for worker in workers]))
        answer = rules.add_any((*quotes, first_id + number - 1))
        ends = [rf'"]" (", \"answer\": " {answer})? "}}"']
        more = [rf'", " steps_{number + 1}'] if number < max_steps else []
        rules.define(f"steps_{number}", f"{step} ({' | '.join([*more, *ends])})")
    return Grammar(rules.write(rf'"{{\"steps\": [" steps_1 | {answer_only}'), _write_schema(workers))


def _add_step(rules: JsonRules, worker: LiveWorker, quotes: Quotes) -> str:
    """An expression for a step of this worker, written as it is in demonstrations or with all arguments."""
    schema = worker.parameters
    actions = [rf'"\"arguments\": " {rules.add_object(schema, quotes, schema)}']
    if worker.instruction_parameter is not None:
        properties = schema.get("properties")
        rule = properties.get(worker.instruction_parameter) if isinstance(properties, Mapping) else None
        actions.append(rf'"\"instruction\": " {rules.add_value(rule, quotes, schema)}')
    name = write_text(f'{{"worker": {json.dumps(worker.spec.name, ensure_ascii=False)}, ')
    return rf'{name} {join_choices(actions)} ", \"access\": " {rules.add_access(quotes)} "}}"'


def _write_schema(workers: Sequence[LiveWorker]) -> Mapping[str, JsonValue]:
    """A JSON Schema for turns, as far as endpoints take one: which ids are those of earlier steps it cannot say.

    Every property is required, as strict endpoints want it: null stands for an optional one that is left out
    (`drop_nulls` takes it away).
    """
    steps: list[JsonValue] = [_write_step_schema(worker) for worker in workers]
    return _make_object_rule({
        "steps": {"type": "array", "items": {"anyOf": steps} if steps else {"type": "null"}},
        "answer": {"type": ["string", "number", "boolean", "null"]},
    })  # fmt: skip


def _write_step_schema(worker: LiveWorker) -> JsonValue:
    properties, required = worker.parameters.get("properties"), worker.parameters.get("required")
    needed = required if isinstance(required, list) else []
    rules = properties if isinstance(properties, Mapping) else {}
    arguments: dict[str, JsonValue] = {name: _write_value_schema(rule, name in needed) for name, rule in rules.items()}
    return _make_object_rule({
        "worker": {"type": "string", "enum": [worker.spec.name]},
        "arguments": _make_object_rule(arguments),
        "access": {"type": "array", "items": {"type": "integer"}},
    })  # fmt: skip


def _write_value_schema(rule: object, required: bool) -> JsonValue:
    """The types of a parameter and a string, which may quote a step; an enum's values with the string beside them."""
    rule = rule if isinstance(rule, Mapping) else {}
    null: list[JsonValue] = [] if required else [{"type": "null"}]
    values = rule.get("enum")
    if isinstance(values, list) and values:
        return {"anyOf": [{"enum": values}, {"type": "string", "pattern": QUOTE}, *null]}
    scalars = [name for name in ("number", "integer", "boolean") if name in (rule.get("type"), *_list_types(rule))]
    return {"type": ["string", *scalars, *([] if required else ["null"])]}


def _list_types(rule: Mapping[str, JsonValue]) -> list[JsonValue]:
    types = rule.get("type")
    return types if isinstance(types, list) else []


def _make_object_rule(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def drop_nulls(turn: Turn, pool: LivePool) -> Turn:
    """The turn without the nulls that stand for optional arguments where a JSON Schema asks for all of them."""
    return replace(turn, steps=tuple(_drop_step_nulls(step, pool) for step in turn.steps))


def _drop_step_nulls(step: Step, pool: LivePool) -> Step:
    worker = pool.workers.get(step.worker)
    required = worker.parameters.get("required") if worker is not None else None
    needed = required if isinstance(required, list) else []
    kept = {name: value for name, value in step.arguments.items() if value is not None or name in needed}
    return step if len(kept) == len(step.arguments) else replace(step, arguments=kept)

"""Steps, turns and the rules they obey: what may see what, and what `$k` means.

A turn is what an orchestrator emits: steps (a DAG whose edges are the access lists) and/or an answer.
A rule that one step breaks marks that step as malformed (PARSE_ERR) and never the turn: one bad
step does not sink a round. Only text that holds no turn at all, or an answer that quotes what does
not exist, is an error of the whole turn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pool_registry.actions import NO_USAGE, JsonValue, Usage, as_text
from pool_registry.live import LivePool, LiveWorker

# `$$` is a dollar, `$12` quotes step 12; a `$` before anything else stands for itself.
_REFERENCE = re.compile(r"\$(\$|[1-9][0-9]{0,5})")


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a plan and its access list: ids of earlier steps whose observation it may see.

    `problem` says why the step is malformed; such a step is recorded as PARSE_ERR and never run.
    """

    id: int
    worker: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    access: tuple[int, ...] = ()
    problem: str | None = None

    @property
    def references(self) -> frozenset[int]:
        """Ids of the steps that the arguments quote as `$k`."""
        return frozenset(references(self.arguments))

    def malformed(self, problem: str) -> Step:
        """This step marked as PARSE_ERR; the first problem found is the one to tell."""
        return self if self.problem else replace(self, problem=problem)


@dataclass(frozen=True, slots=True)
class Turn:
    """What an orchestrator emitted: `steps` and/or `answer`, or `error` when it is no turn at all.

    `text` is the raw output, `prompt` what the orchestrating model was sent. `failed` says that the
    orchestrator itself could not answer (its endpoint is down ...): there is no point in asking again.
    """

    steps: tuple[Step, ...] = ()
    answer: JsonValue = None
    error: str | None = None
    text: str = ""
    prompt: str | None = None
    usage: Usage = NO_USAGE
    failed: bool = False

    @property
    def has_answer(self) -> bool:
        return self.answer is not None


def references(value: JsonValue) -> set[int]:
    """Every step that a JSON value quotes as `$k`, in strings at any depth."""
    if isinstance(value, str):
        return {int(found) for found in _REFERENCE.findall(value) if found != "$"} if "$" in value else set()
    if isinstance(value, Mapping):
        return set().union(*map(references, value.values())) if value else set()
    if isinstance(value, list | tuple):
        return set().union(*map(references, value)) if value else set()
    return set()


def substitute(value: JsonValue, values: Mapping[int, JsonValue]) -> JsonValue:
    """`value` with every `$k` replaced. A string that is nothing but `$k` becomes the value itself
    (a number stays a number); inside longer text it becomes the value's text. KeyError if k is missing."""
    if isinstance(value, str):
        return _substitute_text(value, values) if "$" in value else value
    if isinstance(value, Mapping):
        return {key: substitute(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, values) for item in value]
    return value


def _substitute_text(text: str, values: Mapping[int, JsonValue]) -> JsonValue:
    whole = _REFERENCE.fullmatch(text)
    if whole is not None and whole.group(1) != "$":
        return values[int(whole.group(1))]
    return _REFERENCE.sub(
        lambda found: "$" if found.group(1) == "$" else as_text(values[int(found.group(1))]), text
    )


def check_turn(turn: Turn, pool: LivePool, earlier: Collection[int]) -> Turn:
    """`turn` with every malformed step marked, judged against the pool and the ids of earlier rounds.

    The answer is checked too: one that quotes an unknown step makes the whole turn an error.
    """
    if turn.error is not None:
        return turn
    known = set(earlier)
    steps = []
    for step in turn.steps:
        steps.append(check_step(step, pool, known))
        known.add(step.id)
    unknown = references(turn.answer) - known
    if unknown:
        quoted = ", ".join(f"${k}" for k in sorted(unknown))
        return replace(
            turn, steps=tuple(steps), error=f"the answer quotes {quoted}, but there is no such step"
        )
    return replace(turn, steps=tuple(steps))


def check_step(step: Step, pool: LivePool, known: Collection[int]) -> Step:
    """`step`, marked when it breaks a rule that is decidable before it runs."""
    worker = pool.workers.get(step.worker)
    if worker is None:
        return step.malformed(pool.unknown_worker(step.worker))
    step = with_shorthand(step, worker)
    for k in step.access:
        if k not in known:
            what = "itself" if k == step.id else f"step {k}, which is not an earlier step"
            return step.malformed(f"step {step.id} may not see {what}; access takes ids of earlier steps")
    hidden = step.references - set(step.access)
    if hidden:
        quoted, ids = _list(hidden, "$"), _list(hidden)
        return step.malformed(f"{quoted} is used but not in access; add {ids} to access")
    if not step.references:
        problem = worker.argument_problem(step.arguments)
        return step.malformed(problem) if problem else step
    return step


def with_shorthand(step: Step, worker: LiveWorker) -> Step:
    """`instruction` stands for the worker's one required string parameter, whatever its name."""
    name = worker.instruction_parameter
    if name is None or name == "instruction" or set(step.arguments) != {"instruction"}:
        return step
    return replace(step, arguments={name: step.arguments["instruction"]})


def fit_arguments(
    arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Arguments after `$k` was replaced, in the types the schema asks for where that loses nothing:
    a value quoted into a string parameter becomes its text, "42.5" into a number parameter 42.5."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return {name: _fit(value, known.get(name, {}).get("type")) for name, value in arguments.items()}


def _fit(value: JsonValue, wanted: object) -> JsonValue:
    if wanted == "string" and not isinstance(value, str):
        return as_text(value)
    if wanted in ("number", "integer") and isinstance(value, str):
        try:
            number = float(value.replace(",", ""))
        except ValueError:
            return value
        return int(number) if number.is_integer() else number
    return value


def _list(ids: Collection[int], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{k}" for k in sorted(ids))


def escape(text: str) -> str:
    """`text` written so that no `$` in it quotes a step: for queries that policies put into instructions."""
    return text.replace("$", "$$")

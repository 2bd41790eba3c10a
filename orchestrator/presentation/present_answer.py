"""The answer of an episode for a person, from what its plan answers and what its steps returned.

An output is named after what was called for it, not after what was asked: "Disk usage (bruno): 38 GB" shows that
nobody looked at the memory. A plan that answers `$1 and $2` answers two wishes, a line each; what failed in its last
round is named. Words of a plan or a model stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.presentation.units import find_chosen_unit, find_described_unit, is_target, split_unit, split_words
from orchestrator.presentation.values import (
    is_number,
    is_scalar,
    read_printed,
    write_field,
    write_inline,
    write_lines,
    write_number,
    write_scalar,
)
from orchestrator.quotes import REFERENCE, references, select_field
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.text import one_line

MAX_SUBJECT = 80  # characters of the arguments that stand before an output
_BETWEEN = re.compile(r"[^\d$]{0,5}")  # what only joins quotes: " and ", " und ", ", "


@dataclass(frozen=True, slots=True)
class _Output:
    """What a step returned, how a person calls that ("" where nothing says it), and the unit of its number."""

    value: JsonValue
    name: str
    unit: str
    arguments: Mapping[str, JsonValue]


def present_answer(episode: Episode, answer: JsonValue, pool: LivePool) -> str:
    """What a person reads for the `answer` that the last turn of an episode has come to. Never raises on any JSON."""
    turn = episode.rounds[-1].turn if episode.rounds else None
    template = turn.answer if turn is not None else answer
    quotes = _list_quotes(template, episode)
    if quotes:
        lines = [_write_quote(_read_output(run, pool), path) for run, path in quotes]
        return "\n".join([*lines, *_list_failed(episode, template)])
    if isinstance(template, str) and references(template):
        return REFERENCE.sub(lambda match: _write_inside(match, episode), template)
    return answer if isinstance(answer, str) else "\n".join(write_lines(answer))


def _list_quotes(template: JsonValue, episode: Episode) -> list[tuple[StepRun, str]]:
    """The steps and paths that an answer quotes which is nothing but quotes; none of any other answer."""
    if not isinstance(template, str) or not references(template):
        return []
    first, *between, last = REFERENCE.split(template)[:: REFERENCE.groups + 1]
    if first.strip() or last.strip(". \n") or not all(map(_BETWEEN.fullmatch, between)):
        return []
    quotes = [(episode.steps.get(int(match[1])), match[2]) for match in REFERENCE.finditer(template) if match[1] != "$"]
    runs = [(run, path) for run, path in quotes if run is not None and _leads_somewhere(run, path)]
    return runs if len(runs) == len(quotes) else []


def _leads_somewhere(run: StepRun, path: str) -> bool:
    return run.state == "OK" and run.observation is not None and not select_field(run.observation.value, path)[1]


def _write_inside(match: re.Match[str], episode: Episode) -> str:
    """A quote inside a plan's own sentence, which says what it is."""
    run = episode.steps.get(int(match[1])) if match[1] != "$" else None
    if run is None or run.observation is None:
        return match[0].replace("$$", "$", 1)
    value, rest = select_field(run.observation.value, match[2])
    return f"{value if isinstance(value, str) else write_inline(value)}{rest}"


def _write_quote(output: _Output, path: str) -> str:
    value = select_field(output.value, path)[0]
    field = re.search(r"\.(\w+)$", path)
    if field is not None and is_scalar(value):
        return _head(output.name, [_name_field(output, field[1], value)], ", ")
    rest = value
    if isinstance(value, Mapping):  # what repeats the call stands in the name already
        arguments = {as_text(argument).casefold() for argument in output.arguments.values()} if output.name else set()
        rest = {key: item for key, item in value.items() if as_text(item).casefold() not in arguments} or value
    return _head(output.name, [write_scalar(value, output.unit)] if is_scalar(value) else write_lines(rest))


def _name_field(output: _Output, name: str, value: JsonValue) -> str:
    text = write_field(name, value)
    return text if output.name else text.partition(": ")[2] or text


def _head(name: str, lines: list[str], joint: str = ": ") -> str:
    """What lines are about, and these: below it where they are many."""
    if len(lines) > 1 or "\n" in lines[0]:
        return "\n".join([f"{name}:", *lines]) if name else "\n".join(lines)
    return f"{name}{joint}{lines[0]}" if name else lines[0]


def _read_output(run: StepRun, pool: LivePool) -> _Output:
    """The output of a step that has ended well. What a tool returns as the text of an object or list is that."""
    observation, arguments = run.observation, run.arguments or run.step.arguments
    assert observation is not None, "the caller has looked how the step ended"
    worker = pool.workers.get(observation.answered_by or run.step.worker)
    value = observation.value
    if worker is None or worker.role != "tool":
        return _Output(value, "", "", {})
    value = read_printed(value)
    name, unit = _name_call(worker, arguments)
    return _Output(value, name if is_number(value) else _name_whole(worker, arguments), unit, arguments)


def _name_call(worker: LiveWorker, arguments: Mapping[str, JsonValue]) -> tuple[str, str]:
    """What a call is for in words, and the unit of the number that it returns."""
    label, named = split_unit(worker.spec.name) if worker.worker.described_by == "name" else ("", "")
    taken = {split_unit(parameter)[1] for parameter in arguments} - {""}
    unit = find_chosen_unit(arguments) or named or find_described_unit(worker.spec.description)
    if unit in taken:
        label, unit = " ".join(split_words(worker.spec.name)) if label else "", ""
    return _name(worker, arguments, label), unit


def _name_whole(worker: LiveWorker, arguments: Mapping[str, JsonValue]) -> str:
    return _name(worker, arguments, " ".join(split_words(worker.spec.name)))


def _name(worker: LiveWorker, arguments: Mapping[str, JsonValue], label: str) -> str:
    subject = _write_subject(arguments)
    if worker.worker.described_by == "request":
        return _capitalize(subject)
    if worker.worker.described_by != "name":
        return ""
    return _capitalize(f"{label} ({subject})" if subject and label else label or subject)


def _write_subject(arguments: Mapping[str, JsonValue]) -> str:
    """The arguments of a call in words; "" where they are too long, or hold an object or list."""
    values = [value for name, value in arguments.items() if value is not None and not is_target(name)]
    if not all(map(is_scalar, values)):
        return ""
    subject = ", ".join(write_number(v) if is_number(v) else one_line(as_text(v)).strip() for v in values)
    return subject if len(subject) <= MAX_SUBJECT else ""


def _list_failed(episode: Episode, template: JsonValue) -> Iterator[str]:
    """Lines on the steps of the last round that failed and that nothing uses."""
    last = episode.rounds[-1]
    used = references(template).union(*(run.step.access for run in last.steps))
    for run in last.steps:
        if run.step.id not in used and run.observation is not None and run.observation.error is not None:
            name = run.step.need or " ".join(split_words(run.step.worker))
            yield f"Not answered: {name}: {run.observation.error.message}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]

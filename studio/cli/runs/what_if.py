"""`podium what-if`: edits one round of a recorded run and calls only what the edits can change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from orchestrator.errors import InvalidEdits
from orchestrator.traces.step_counts import describe_steps
from pool_registry.actions import JsonValue
from pool_registry.text import shorten
from pool_registry.validation_words import describe_item
from studio.cli.options import HomeOption, JsonOption, open_prepared_store
from studio.frame.document import PageDocument

if TYPE_CHECKING:
    from orchestrator.engine.edits import AnyEdit
    from orchestrator.engine.episode import Episode
    from studio.pages.run.what_if_documents import (
        CopiesDocument,
        EditDocument,
        EditedField,
        PlannedStep,
        RoundDocument,
        RunResult,
        StepFates,
        VariationsDocument,
    )

Document = TypeVar("Document", bound=PageDocument)
EDITS = ("change", "add", "remove", "again", "answer")
EDIT = (
    'JSON; may be repeated: {"edit": "change", "step": 3, "arguments": {...}} (what is left out stays: worker, '
    'arguments, access), {"edit": "add", "step": 7, "worker": "sql", "arguments": {...}, "access": [1]}, '
    '{"edit": "remove", "step": 2}, {"edit": "again", "step": 4}, {"edit": "answer", "answer": "$7"}.'
)

DIFFERENCES = {
    "same": "the same", "worker": "with another worker", "arguments": "with other arguments",
    "access": "with another access list", "moved": "moved", "added": "added", "removed": "removed",
}  # fmt: skip


def what_if(
    episode: Annotated[str, typer.Argument(help="The run's id; the Traces page and the Run page's address show it.")],
    edit: Annotated[list[str] | None, typer.Option(help=EDIT)] = None,
    number: Annotated[
        int | None, typer.Option("--round", help="The round to edit. Default: the edited step's, or the last planned.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Say what would be called; call nothing.")] = False,
    on_copies: Annotated[
        bool,
        typer.Option(
            "--on-copies", help="Change copies of files, folders and SQLite databases, and show what is other on them."
        ),
    ] = False,
    star: Annotated[bool, typer.Option("--star", help="Save the result as a demonstration.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Edit a recorded run's plan and call again only what the edits change, as What if on the Run page does.

    Without --edit it shows the plan. Exit code 0: the edited run was answered, 1: not answered, 2: bad input.
    """
    from studio.episodes import load_recorded
    from studio.headless import vary_once
    from studio.pages.run.what_if_routes import build_round, check_variation, list_variations

    with open_prepared_store(home) as store:
        origin, pool = load_recorded(store, episode)
        number = number if number is not None else _find_round(origin, edit or [])
        if not edit:
            _print(build_round(origin, number), _plan_text, as_json)
            return
        edits = read_edits(edit, origin)
        if check:
            _print(asyncio.run(check_variation(origin, pool, number, edits)), _check_text, as_json)
            return
        result = asyncio.run(vary_once(store, origin, pool, number, edits, on_copies=on_copies))
        if star:
            store.traces.star(result.id, True)
        document = list_variations(store, result.id)
    _print(document, _result_text, as_json, episode=result.id)
    assert result.ended is not None, "vary_once runs it to its end"
    if result.ended.outcome != "answered":
        typer.echo(f"{result.ended.outcome}: {result.ended.reason}", err=True)
        raise typer.Exit(1)


def read_edits(texts: Sequence[str], origin: Episode) -> list[AnyEdit]:
    """Parse edits as typed on the command line. A change keeps the recorded step's fields that it does not name.

    Raises InvalidEdits with every problem.
    """
    from pydantic import TypeAdapter, ValidationError

    from orchestrator.engine.edits import Edit

    adapter: TypeAdapter[AnyEdit] = TypeAdapter(Edit)
    edits: list[AnyEdit] = []
    problems: list[tuple[str, str]] = []
    for text in texts:
        try:
            edits.append(adapter.validate_python(_fill_in(_parse_object(text), origin)))
        except ValidationError as error:
            problems += [("", f"--edit {shorten(text, 80)}: {_sentence(problem)}") for problem in error.errors()]
        except (ValueError, RecursionError) as error:
            problems.append(("", f"--edit {shorten(text, 80)}: {error}"))
    if problems:
        raise InvalidEdits(problems)
    return edits


def _parse_object(text: str) -> dict[str, Any]:
    try:
        edit = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is no JSON ({error.msg} at character {error.pos + 1})") from error
    if not isinstance(edit, dict):
        raise ValueError('an edit is an object, as in {"edit": "remove", "step": 2}')
    return edit


def _fill_in(edit: dict[str, Any], origin: Episode) -> dict[str, Any]:
    """The edit with what it leaves out taken from the recorded step."""
    step = edit.get("step")
    run = origin.steps.get(step) if isinstance(step, int) else None
    if edit.get("edit") != "change" or run is None:
        return {"arguments": {}, **edit} if edit.get("edit") == "change" else edit
    kept = {"worker": run.step.worker, "arguments": dict(run.step.arguments), "access": run.step.access}
    return kept | edit


def _sentence(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors with the field that it is about."""
    if error["type"].startswith("union_tag"):
        return f'"edit" is one of {", ".join(EDITS)}'
    where = ".".join(str(part) for part in error["loc"][1:])  # the first part is the edit's own name
    return f"{where}: {describe_item(error)}" if where else describe_item(error)


def _find_round(origin: Episode, texts: Sequence[str]) -> int:
    """The round of the first step that an edit names, or the last round that has steps."""
    for text in texts:
        try:
            step = _parse_object(text).get("step")
        except (ValueError, RecursionError):
            continue  # read_edits reports it
        if isinstance(step, int) and step in origin.steps:
            return origin.steps[step].round
    planned = [done.number for done in origin.rounds if done.steps]
    return planned[-1] if planned else 1


# Printing


def _print(document: Document, text: Callable[[Document], str], as_json: bool, **more: JsonValue) -> None:
    """Print a document, as JSON with `more` before it."""
    if as_json:
        fields = {name: value for name, value in document.to_json().items() if name != "problems"}  # there are none
        typer.echo(json.dumps({**more, **fields}, indent=1, ensure_ascii=False))
    else:
        typer.echo(text(document))


def _plan_text(document: RoundDocument) -> str:
    lines = [f"round {document.round} of {document.rounds}; the next free number is {document.fresh}"]
    for step in document.steps:
        lines.append(f"{step.id:>3}  {_call(step)}  sees {_list_steps(step.access)}  {step.status}")
    return "\n".join([*lines, f"answer: {_value_text(document.answer)}"])


def _check_text(document: StepFates) -> str:
    dropped = f"; dropped: {_count(document.dropped, 'later round')}" if document.dropped else ""
    return f"called: {_list_steps(document.rerun)}; kept: {_list_steps(document.kept)}{dropped}"


def _result_text(document: VariationsDocument) -> str:
    assert document.origin is not None and document.result is not None, "it is about a what-if"
    counts = ", ".join(f"{count} {DIFFERENCES[name]}" for name, count in document.differences.items() if count)
    lines = [
        f"episode {document.result.id}: {_count(document.kept, 'output')} kept, "
        f"{_count(document.rerun, 'step')} called",
        *(_edit_text(edit) for edit in document.edits),
        f"difference in steps: {counts or 'none'}",
        f"before: {_outcome(document.origin)}",
        f"now: {_outcome(document.result)}",
        *(_list_copies(document.copies) if document.copies else ()),
    ]
    return "\n".join(lines)


def _list_copies(copies: CopiesDocument) -> list[str]:
    if not copies.compared:
        return ["it has not come to its end, so the copies were not compared"]
    changes = [
        f"  {change.place}{f', {change.item}' if change.item else ''}\n    original: {change.original or 'nothing'}\n"
        f"    copy:     {change.on_copy or 'nothing'}"
        for change in copies.changes
    ]
    return [f"on copies of {', '.join(copies.places)}, where {'this' if changes else 'nothing'} is other", *changes]


def _edit_text(edit: EditDocument) -> str:
    fields = [f"{field.field}: {_change(field)}" for field in edit.fields]
    if edit.step is None:
        return "".join(fields) or "answer: as it was"
    return "\n  ".join([f"{edit.edit} step {edit.step} ({edit.worker})", *fields])


def _change(field: EditedField) -> str:
    return f"{field.before!r} -> {field.after!r}" if field.before else repr(field.after)


def _outcome(row: RunResult) -> str:
    graded = {True: " (right)", False: " (wrong)", None: ""}[row.correct]
    answer = _value_text(row.answer) if row.answer is not None else row.state
    return f"{answer}{graded}, {describe_steps(row.counts)}, {row.wall_s:.2f} s, {row.tokens} tokens, ${row.cost:.4f}"


def _call(step: PlannedStep) -> str:
    return f"{step.worker} {json.dumps(step.arguments, ensure_ascii=False)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _list_steps(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps)) or "nothing"


def _value_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

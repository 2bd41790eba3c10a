"""`python -m studio what-if`: edits a round of a recorded run and calls only what the edits can change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.errors import InvalidEdits
from pool_registry.kinds import PLAIN_WORDS
from pool_registry.text import shorten

if TYPE_CHECKING:
    from orchestrator.engine.edits import AnyEdit
    from orchestrator.engine.episode import Episode

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
    star: Annotated[bool, typer.Option("--star", help="Save the result as a demonstration.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    home: Annotated[str | None, typer.Option("--home", help="Data folder.")] = None,
) -> None:
    """Edit a recorded run's plan and call anew only what the edits change, as the Run page's What if does.

    Without --edit it shows the plan. Exit code 0 when the edited run was answered, 1 when not, 2 on bad input.
    """
    from studio.episodes import load_recorded
    from studio.headless import vary_once
    from studio.pages.run.what_if_routes import plan_document, variation_check, variations_document
    from studio.prepare import prepare_store

    store = prepare_store(home)
    try:
        origin, pool = load_recorded(store, episode)
        place = number if number is not None else _round_of(origin, edit or [])
        if not edit:
            _print(plan_document(origin, place), _plan_text, as_json)
            return
        edits = read_edits(edit, origin)
        if check:
            _print(asyncio.run(variation_check(origin, pool, place, edits)), _check_text, as_json)
            return
        changed = asyncio.run(vary_once(store, origin, pool, place, edits))
        if star:
            store.traces.star(changed.id, True)
        document = {"episode": changed.id, **variations_document(store, changed.id)}
    finally:
        store.close()
    _print(document, _result_text, as_json)
    assert changed.ended is not None, "vary_once runs it to its end"
    if changed.ended.outcome != "answered":
        typer.echo(f"{changed.ended.outcome}: {changed.ended.reason}", err=True)
        raise typer.Exit(1)


def read_edits(texts: Sequence[str], origin: Episode) -> list[AnyEdit]:
    """The edits that somebody typed; a change takes from the recorded step what it does not say.

    Raises InvalidEdits with what is wrong with each.
    """
    from pydantic import TypeAdapter, ValidationError

    from orchestrator.engine.edits import Edit

    one: TypeAdapter[AnyEdit] = TypeAdapter(Edit)
    edits: list[AnyEdit] = []
    problems: list[tuple[str, str]] = []
    for text in texts:
        try:
            edits.append(one.validate_python(_completed(_object(text), origin)))
        except ValidationError as error:
            problems += [("", f"--edit {shorten(text, 80)}: {_said(each)}") for each in error.errors()]
        except (ValueError, RecursionError) as error:
            problems.append(("", f"--edit {shorten(text, 80)}: {error}"))
    if problems:
        raise InvalidEdits(problems)
    return edits


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is no JSON ({error.msg} at character {error.pos + 1})") from error
    if not isinstance(found, dict):
        raise ValueError('an edit is an object, as in {"edit": "remove", "step": 2}')
    return found


def _completed(edit: dict[str, Any], origin: Episode) -> dict[str, Any]:
    step = edit.get("step")
    run = origin.steps.get(step) if isinstance(step, int) else None
    if edit.get("edit") != "change" or run is None:
        return {"arguments": {}, **edit} if edit.get("edit") == "change" else edit
    kept = {"worker": run.step.worker, "arguments": dict(run.step.arguments), "access": run.step.access}
    return kept | edit


def _said(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors, with the field that it is about."""
    if error["type"].startswith("union_tag"):
        return f'"edit" is one of {", ".join(EDITS)}'
    where = ".".join(str(part) for part in error["loc"][1:])  # the first part is the edit's own name
    return f"{where}: {PLAIN_WORDS.get(error['type'], error['msg'])}" if where else str(error["msg"])


def _round_of(origin: Episode, texts: Sequence[str]) -> int:
    """The round of the first step that is named, or the last one that has steps."""
    for text in texts:
        try:
            step = _object(text).get("step")
        except (ValueError, RecursionError):
            continue  # read_edits tells
        if isinstance(step, int) and step in origin.steps:
            return origin.steps[step].round
    planned = [done.number for done in origin.rounds if done.steps]
    return planned[-1] if planned else 1


# What is printed


def _print(document: dict[str, Any], text: Callable[[dict[str, Any]], str], as_json: bool) -> None:
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if as_json else text(document))


def _plan_text(document: dict[str, Any]) -> str:
    lines = [f"round {document['round']} of {document['rounds']}; the next free number is {document['fresh']}"]
    for step in document["steps"]:
        lines.append(f"{step['id']:>3}  {_call(step)}  sees {_listed(step['access'])}  {step['status']}")
    return "\n".join([*lines, f"answer: {_shown(document['answer'])}"])


def _check_text(document: dict[str, Any]) -> str:
    dropped = f"; dropped: {_count(document['dropped'], 'later round')}" if document["dropped"] else ""
    return f"called: {_listed(document['rerun'])}; kept: {_listed(document['kept'])}{dropped}"


def _result_text(document: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {DIFFERENCES[name]}" for name, count in document["differences"].items() if count)
    lines = [
        f"episode {document['episode']}: {_count(document['kept'], 'output')} kept, "
        f"{_count(document['rerun'], 'step')} called",
        *(_edit_text(edit) for edit in document["edits"]),
        f"difference in steps: {counts or 'none'}",
        *(f"{name}: {_outcome(document[key])}" for name, key in (("before", "origin"), ("now", "result"))),
    ]
    return "\n".join(lines)


def _edit_text(edit: Mapping[str, Any]) -> str:
    fields = [f"{each['field']}: {_change(each)}" for each in edit["fields"]]
    if edit["step"] is None:
        return "".join(fields) or "answer: as it was"
    return "\n  ".join([f"{edit['edit']} step {edit['step']} ({edit['worker']})", *fields])


def _change(field: Mapping[str, str]) -> str:
    return f"{field['before']!r} -> {field['after']!r}" if field["before"] else repr(field["after"])


def _outcome(row: Mapping[str, Any]) -> str:
    graded = {True: " (right)", False: " (wrong)", None: ""}[row["correct"]]
    answer = _shown(row["answer"]) if row["answer"] is not None else row["state"]
    return f"{answer}{graded}, {row['wall_s']:.2f} s, {row['tokens']} tokens, ${row['cost']:.4f}"


def _call(step: Mapping[str, Any]) -> str:
    return f"{step['worker']} {json.dumps(step['arguments'], ensure_ascii=False)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _listed(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps)) or "nothing"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""`podium approvals`: the plans that wait for a person, what they would do, and the decision about one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.cli.options import HomeOption, JsonOption, name_self, open_prepared_store
from studio.cli.runs.what_if import EDIT, read_edits

if TYPE_CHECKING:
    from orchestrator.traces.store import Store

WAITS = 3  # exit code of a command whose run waits for a person


def approvals(
    episode: Annotated[str, typer.Argument(help="The run's id. Without: every plan that waits.")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Let the plan run.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="End the run; nothing is called.")] = False,
    edit: Annotated[list[str] | None, typer.Option(help=f"Change the plan, then let it run. {EDIT}")] = None,
    note: Annotated[str, typer.Option(help="A note for the audit trail.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the plans that wait for a person, show one, or decide about it.

    Exit code 0: listed, shown or answered, 1: not answered, 2: bad input, 3: the next plan of the run waits.
    """
    if reject and (approve or edit):
        raise typer.BadParameter("--reject goes with neither --approve nor --edit")
    if not episode and (approve or reject or edit):
        raise typer.BadParameter("name the run: podium approvals ID --approve")
    with open_prepared_store(home) as store:
        if not episode:
            _print_list(store, as_json)
        elif not (approve or reject or edit):
            _print_plan(store, episode, as_json)
        else:
            document = decide(store, episode, "reject" if reject else "approve", edit or [], note)
            print_outcome(store, document, as_json)


def decide(
    store: Store, episode: str, verdict: str, edits: Sequence[str], note: str, round_seen: int | None = None
) -> dict[str, Any]:
    """Decide about a plan, of the round that was seen where it is named, and run what follows, until the run has ended
    or waits again; returns its trace document."""
    from studio.approvals import read_waiting
    from studio.headless import decide_once

    plan = read_waiting(store, episode, round_seen)
    parsed = read_edits(edits, plan.episode) if edits else []
    return asyncio.run(decide_once(store, plan, verdict == "approve", name_self(), note, parsed))


def ask_until_over(store: Store, document: dict[str, Any]) -> dict[str, Any]:
    """Show each plan of a run that waits and ask the person at the terminal; returns the trace document in the end.
    Where nobody is at a terminal, the run is left waiting."""
    while document["outcome"] == "waiting" and sys.stdin.isatty():
        seen = _print_plan(store, document["id"], as_json=False, err=True)
        answer = typer.prompt("Run this plan? [y]es, [e]dit, [n]o, [l]ater", default="l", err=True).strip().lower()[:1]
        if answer not in ("y", "e", "n"):
            break
        edits = _read_typed_edits() if answer == "e" else []
        document = decide(store, document["id"], "reject" if answer == "n" else "approve", edits, "", seen)
    return document


def print_outcome(store: Store, document: Mapping[str, Any], as_json: bool) -> None:
    """Print how far a run is; exits with 3 where a plan waits and with 1 where there is no answer."""
    if document["outcome"] == "waiting":
        if as_json:
            typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
        else:
            _print_plan(store, document["id"], as_json=False)
        command = f"podium approvals {document['id']} --approve"
        typer.secho(f"waiting: the plan waits for approval. Decide: {command}", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(WAITS)
    from studio.episode_documents.trace import shown_answer

    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if as_json else shown_answer(document))
    if document["outcome"] != "answered":
        typer.secho(f"{document['outcome']}: {document['reason']}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1)


def _read_typed_edits() -> list[str]:
    typer.echo('One edit a line, as for podium what-if: {"edit": "remove", "step": 2}. An empty line ends.', err=True)
    edits = []
    while line := typer.prompt("edit", default="", show_default=False, err=True).strip():
        edits.append(line)
    return edits


def _print_list(store: Store, as_json: bool) -> None:
    from studio.approvals import list_waiting

    rows = list_waiting(store)
    if as_json:
        fields = ("id", "query", "pool", "orchestrator", "started_at", "user_name")
        typer.echo(json.dumps([{name: getattr(row, name) for name in fields} for row in rows], indent=1))
        return
    for row in rows:
        typer.echo(f"{row.id}  {row.pool}  {row.orchestrator}  {row.query[:80]}")
    if not rows:
        typer.echo("No plan waits for approval.")


def _print_plan(store: Store, episode: str, as_json: bool, err: bool = False) -> int:
    """Print the plan that waits, with `err` beside the output that a program reads; returns its round."""
    from studio.approvals import describe_plan, read_waiting

    document = describe_plan(read_waiting(store, episode))
    plan = json.dumps(document, indent=1, ensure_ascii=False) if as_json else "\n".join(_describe_plan(document))
    typer.echo(plan, err=err)
    return int(document["round"])


def _describe_plan(document: Mapping[str, Any]) -> list[str]:
    lines = [document["query"], *(f"- {reason['sentence']}" for reason in document["reasons"])]
    for step in document["steps"]:
        estimate = step["estimate"] or {}
        time = f"{estimate['seconds']:.2f} s" if estimate.get("seconds") is not None else "time unknown"
        effects = "  MAY CHANGE SOMETHING OUTSIDE" if estimate.get("effects") else ""
        arguments = json.dumps(step["values"], ensure_ascii=False)
        written = json.dumps(step["arguments"], ensure_ascii=False)
        call = arguments if arguments == written else f"{arguments} (planned as {written})"
        price = f"${estimate.get('cost', 0):.4f}{effects}"
        lines.append(f"{step['id']:>3}  {step['worker']} {call}  {time}  {price}")
    total = f"about {document['estimated_s']:.2f} s and ${document['estimated_cost']:.4f}"
    return [*lines, f"answer: {document['answer']}", f"estimate by earlier calls: {total}"]

"""`podium credit`: what each step, worker and access-list entry of a recorded run is worth to its score."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from studio.cli.options import HomeOption, JsonOption, open_prepared_store

if TYPE_CHECKING:
    from studio.episode_documents.credit import CreditDocument, CreditLine


def credit(
    episode: Annotated[str, typer.Argument(help="The run's id; the Traces page and the Run page's address show it.")],
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="A tool that may be called again although a call may have effects; repeat."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="How often each rerun is made, for workers that do not always answer the same.", min=1)
    ] = 1,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Measure what each part of a graded run is worth: rerun, without it, only what may see it.

    Exit code 1 when nothing of the run can be measured.
    """
    from studio.episode_documents.credit import measure_recorded_credit

    with open_prepared_store(home) as store:
        document = asyncio.run(measure_recorded_credit(store, episode, allow or (), repeats))
    typer.echo(json.dumps(document.to_json(), indent=1, ensure_ascii=False) if as_json else _write_credit(document))
    if document.reason:
        raise typer.Exit(1)


def _write_credit(document: CreditDocument) -> str:
    if document.reason:
        return f"no credit: {document.reason}"
    lines = [f"score {document.score:g}; credit = score - score without it"]
    lines += [f"{line.worker}: {_write_value(line)}" for line in document.workers]
    lines += [f"step {line.step} ({line.worker}): {_write_value(line)}" for line in document.steps]
    lines += [f"step {line.step} sees step {line.source}: {_write_value(line)}" for line in document.access]
    return "\n".join(lines)


def _write_value(line: CreditLine) -> str:
    if line.value is None:
        return f"not measured: {line.reason}"
    called = f"; called again: {', '.join(map(str, line.rerun))}" if line.rerun else ""
    return f"{line.value:+g}{called}" if line.value else f"0{called}"

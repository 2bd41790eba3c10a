"""`podium binding`: which workers of a pool stand for those that a checkpoint learnt, as the Pool page shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pool_registry.errors import InvalidPool
from studio.cli.options import HomeOption, JsonOption, open_prepared_store

NONE = "none"


def binding(
    checkpoint: Annotated[str, typer.Argument(help="starter-sft, starter-grpo, smollm2-sft, JOB@STEP or a folder.")],
    pool: Annotated[str, typer.Option(help="Name of the pool; its current version is meant.")] = "starter",
    choose: Annotated[
        list[str] | None,
        typer.Option("--set", help="LEARNT=WORKER, as in sql=ledger_books; LEARNT=none binds it to no worker."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Forget what was chosen for this version.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show or change which workers of a pool stand for those that a checkpoint learnt on another one."""
    from studio.pages.pool.commands import PoolCommands
    from studio.runtime import Runtime

    choices = [_read_choice(text) for text in choose or ()]
    with open_prepared_store(home) as store:
        runtime = Runtime(store)
        try:
            commands = PoolCommands(runtime)

            def send(action: str, **fields: Any) -> Mapping[str, Any]:
                reply = commands.run(action, {"pool": pool, "checkpoint": checkpoint, **fields})
                if not reply["ok"]:
                    raise InvalidPool([("", what) for _, what in reply["problems"]])
                if reply["message"] and not as_json:
                    typer.echo(reply["message"])
                return reply

            if clear:
                send("reset_binding")
            for learnt, worker in choices:
                send("bind", learnt=learnt, worker=worker)
            document = send("binding")["binding"]
        finally:
            runtime.close()
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if as_json else format_binding(document))


def _read_choice(text: str) -> tuple[str, str]:
    learnt, equals, worker = text.partition("=")
    if not (learnt and equals and worker):
        raise InvalidPool([("", f"--set takes LEARNT=WORKER or LEARNT=none, not {text!r}")])
    return learnt.strip(), "" if worker.strip() == NONE else worker.strip()


def format_binding(document: Mapping[str, Any]) -> str:
    """The table of a binding, a line per learnt worker."""
    head = f"{document['checkpoint']} on {document['pool']}, version {document['version']}"
    if document["reason"]:
        return f"{head}: not bound, because {document['reason']}"
    rows = document["rows"]
    wide = max(len(row["learnt"]) for row in rows)
    widest = max(len(row["worker"] or "-") for row in rows)
    lines = [f"{row['learnt']:<{wide}}  {row['worker'] or '-':<{widest}}  {_format_end(row)}" for row in rows]
    note = "  (each worker is there under its own name)" if document["changes_nothing"] else ""
    return "\n".join([f"{head}{note}", *lines])


def _format_end(row: Mapping[str, Any]) -> str:
    if row["problem"]:
        return str(row["problem"])
    how = {"name": "its own name", "person": "chosen"}.get(row["by"], f"by {row['by']}")
    names = "".join(f", {old} is {new}" for old, new in row["parameters"])
    return f"{row['likeness']:.2f}  {how}{names}"

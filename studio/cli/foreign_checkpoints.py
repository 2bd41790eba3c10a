"""`podium make-orchestrator`: a folder that was trained elsewhere becomes an orchestrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.prompt_styles import PromptStyle


def make_orchestrator(
    folder: Annotated[Path, typer.Argument(help="A trained model, or an adapter, without podium.json.")],
    base: Annotated[str, typer.Option(help="Base of an adapter: a folder, hub:owner/name, starter:smollm2.")] = "",
    dialect: Annotated[
        str, typer.Option(help="How it writes turns: plan, tool_calls, conductor. Default: as its chat template.")
    ] = "",
    prompt: Annotated[PromptStyle, typer.Option(help="What it is shown: full is the pool and the question.")] = "full",
) -> None:
    """Look at the base, the chat template and the dialect of a trained folder, and write its podium.json."""
    from orchestrator.foreign_checkpoints import inspect_folder, make_checkpoint

    foreign = inspect_folder(folder, base)
    checkpoint = make_checkpoint(foreign, dialect, prompt)
    why = "as you chose" if dialect else foreign.why
    typer.echo(f"{folder} is an orchestrator now ({checkpoint.kind}, base {checkpoint.base}).")
    typer.echo(f"It writes turns in the dialect {checkpoint.dialect}: {why}. --dialect takes another.")
    for question in foreign.questions:
        typer.echo(f"Please look: {question}")
    typer.echo(f"Try it: podium run --orchestrator {folder} 'your question'")

"""`podium rollout`: one episode for a trainer of another package, as the environments that Podium exports start it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from pool_registry.storage.data_folder import choose_home
from studio.cli.options import HomeOption


def rollout(
    pool: Annotated[Path, typer.Option(help="The pool as JSON (podium export pool).")],
    task: Annotated[Path, typer.Option(help="A file with one line of a task file.")],
    base_url: Annotated[str, typer.Option(help="The OpenAI-compatible address of the model that orchestrates.")],
    model: Annotated[str, typer.Option(help="Its name there.")],
    dialect: Annotated[str, typer.Option(help="The dialect of its turns.")] = "plan",
    turn_tokens: Annotated[int, typer.Option(help="Most tokens of a turn.", min=1)] = 1024,
    home: HomeOption = None,
) -> None:
    """Play one task with the model behind an address as the orchestrator, and print how it went as JSON. The key of the
    address is read from PODIUM_POLICY_KEY; nothing is stored."""
    from studio.export.environments.rollout import play_rollout

    choose_home(home)
    result = asyncio.run(play_rollout(pool, task, base_url, model, dialect, turn_tokens))
    typer.echo(result.model_dump_json())

"""`podium rollout`: one episode for a trainer of another package, as the environments that Podium exports start it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from pool_registry.storage.data_folder import choose_home
from studio.cli.options import HomeOption


def rollout(
    pool: Annotated[Path, typer.Option(help="The pool as JSON (podium export pool).")],
    task: Annotated[Path, typer.Option(help="A file with one line of a task file.")],
    base_url: Annotated[
        str, typer.Option(help="The OpenAI-compatible address of the model. Empty: turns come by standard input.")
    ] = "",
    model: Annotated[str, typer.Option(help="Its name there.")] = "policy",
    dialect: Annotated[str, typer.Option(help="The dialect of its turns.")] = "plan",
    turn_tokens: Annotated[int, typer.Option(help="Most tokens of a turn.", min=1)] = 1024,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            envvar="PODIUM_TRUST",
            help="Let the workers of the file have what they want: keys, programs, files, private addresses.",
        ),
    ] = False,
    home: HomeOption = None,
) -> None:
    """Play one task with another trainer's model as the orchestrator, and print how it went as a line of JSON. The key
    of the address is read from PODIUM_POLICY_KEY; nothing is stored. Without an address each turn is asked for by a
    line {"messages": [...]} and read as a line {"text": "..."}. Workers that want something stay off without --trust,
    and are named on standard error."""
    from studio.export.environments.rollout import load_pool, open_address, open_exchange, play_rollout

    choose_home(home)
    workers, wants = load_pool(pool, trust=trust)
    for name, sentences in wants.items():
        typer.echo(f"{name} stays off: it {'; '.join(sentences)}. To let it: --trust or PODIUM_TRUST=1", err=True)
    policy = open_address(base_url, model, turn_tokens) if base_url else open_exchange(sys.stdout, sys.stdin)
    result = asyncio.run(play_rollout(workers, task, policy, dialect, turn_tokens))
    typer.echo(result.model_dump_json())

"""`podium follow-up`: goes on with a recorded run by a question such as "and for Oslo?"."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from studio.cli.options import HomeOption, JsonOption, open_prepared_store
from studio.cli.runs.result import print_run

if TYPE_CHECKING:
    from orchestrator.follow_up.readings import Understanding


def follow_up(
    episode: Annotated[str, typer.Argument(help="The run's id; the Traces page and the Run page's address show it.")],
    text: Annotated[str, typer.Argument(help='What you want to know next, such as "and for Oslo?".')],
    question: Annotated[
        str, typer.Option(help="The question in full, where the follow-up may mean several or none.")
    ] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Ask a follow-up question of a run: with its pool, its orchestrator, its limits, and its answer in sight.

    Exit codes as of podium run.
    """
    from orchestrator.follow_up.readings import Understanding
    from studio.episode_documents.follow_up import describe_reader
    from studio.follow_ups import NotContinued, load_origin
    from studio.headless import read_once, run_once
    from studio.orchestrators.default import list_chat_models

    with open_prepared_store(home) as store:
        origin = load_origin(store, episode)
        started = origin.started
        assert started is not None, "load_origin has read a run that has ended"
        pool = store.pools.latest(started.pool).pool
        ready = asyncio.run(read_once(origin, text, pool, list_chat_models(pool), question))
        if isinstance(ready, Understanding):
            raise NotContinued(_explain_choice(ready))
        typer.echo(f"{describe_reader(ready.follow_up)}: {ready.query}", err=True)
        mode = started.mode.name if started.mode else None
        document = asyncio.run(
            run_once(store, pool.name, started.orchestrator, ready.query, mode, origin.run_limits, ready.follow_up)
        )
        print_run(store, document, pool, as_json)


def _explain_choice(understanding: Understanding) -> str:
    """What to do where a follow-up means no one question."""
    if not understanding.readings:
        return f"{understanding.problem} with --question"
    lines = [f"--question {reading.question!r}" for reading in understanding.readings]
    one = "it holds a part of an answer, and workers of this pool may have effects; ask it in full:"
    return "\n".join([one if len(lines) == 1 else "it may mean several questions; say which one:", *lines])

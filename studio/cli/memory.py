"""`podium memory ...`: a pool's failure memory, as the Pool page's drawer shows and changes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pool_registry.errors import InvalidPool
from studio.cli.options import HomeOption, JsonOption, open_prepared_store

commands = typer.Typer(
    help="A pool's failure memory: one sentence about every failed run, shown before similar queries.",
    no_args_is_help=True,
)
PoolName = Annotated[str, typer.Argument(help="The pool's name.")]


@commands.command("list")
def list_lessons(pool: PoolName, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show who writes the lessons, and every lesson with its run, newest first."""
    _print(_send(home, action="memory", pool=pool), as_json)


@commands.command("set")
def set_memory(
    pool: PoolName,
    writer: Annotated[str, typer.Argument(help="rule (no cost), an agent of the pool (one call a failure), or off.")],
    retry: Annotated[
        bool | None,
        typer.Option(
            help="Try a failed run, or one that a person calls wrong, again with its lesson, within the run's limits. "
            "Default: as it is."
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Switch the memory on or off. The pool gets a new version; lessons are kept."""
    switch = {} if retry is None else {"retry": retry}
    _print(_send(home, action="set_memory", pool=pool, memory=writer, **switch), as_json)


@commands.command()
def learn(pool: PoolName, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Learn from the newest recorded failures that have no lesson yet. Tasks of a test split are left out."""
    _print(_send(home, action="learn", pool=pool), as_json)


@commands.command("try")
def try_lessons(pool: PoolName, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Run each lesson's query once more with it: keep what is right now, forget what is wrong again. At most 20."""
    _print(_send(home, action="try_lessons", pool=pool), as_json)


@commands.command()
def measure(
    pool: PoolName,
    orchestrator: Annotated[
        str, typer.Option(help="Who is shown the lessons. Default: the pool's first agent as orchestrator.")
    ] = "",
    max_cost: Annotated[str, typer.Option(help="Stop at this cost, in US dollars.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Put an evaluation of the pool's held-out tasks, with and without the lessons, into the queue. `memory list` shows
    its figure."""
    _print(_send(home, action="measure_memory", pool=pool, orchestrator=orchestrator, max_cost=max_cost), as_json)


@commands.command()
def forget(
    pool: PoolName,
    lesson: Annotated[int | None, typer.Argument(help="The lesson's number in `memory list`.", min=1)] = None,
    every: Annotated[bool, typer.Option("--all", help="Forget all of the pool's lessons.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Delete one lesson, or all of them. The runs they were made of stay."""
    if (lesson is None) != every:
        raise InvalidPool([("", "say which lesson to forget: its number in `memory list`, or --all")])
    if lesson is not None:
        lessons = _send(home, action="memory", pool=pool)["memory"]["lessons"]
        if lesson not in [row["id"] for row in lessons]:
            raise InvalidPool(
                [("", f"pool {pool!r} has no lesson {lesson}; `memory list {pool}` shows those there are")]
            )
    _print(_send(home, action="forget", pool=pool, lesson=lesson), as_json)


def _send(home: str | None, action: str, **fields: Any) -> Mapping[str, Any]:
    """Run a command of the Pool page and return its reply. Raises InvalidPool with its problems."""
    from studio.pages.pool.commands import PoolCommands
    from studio.runtime import Runtime

    with open_prepared_store(home) as store:
        runtime = Runtime(store)
        try:
            reply = PoolCommands(runtime).run(action, fields)
        finally:
            runtime.close()
    if not reply["ok"]:
        raise InvalidPool([("", what) for _, what in reply["problems"]])
    return reply


def _print(reply: Mapping[str, Any], as_json: bool) -> None:
    memory = reply["memory"]
    if as_json:
        typer.echo(json.dumps(memory, indent=1, ensure_ascii=False))
        return
    if reply["message"]:
        typer.echo(reply["message"])
    writer = {"off": "off", "rule": "on, written by rule"}.get(memory["mode"], f"on, written by {memory['mode']}")
    again = "; a failed run is tried again with its lesson" if memory["retry"] and memory["mode"] != "off" else ""
    typer.echo(f"memory: {writer}{again}; {memory['count']} {'lesson' if memory['count'] == 1 else 'lessons'}")
    if memory["gain"]:
        typer.echo(_describe_gain(memory["gain"]))
    for lesson in memory["lessons"]:
        typer.echo(f"{lesson['id']:>5}  {lesson['sentence']}\n       {lesson['query']}\n       run {lesson['episode']}")
        if lesson["awaits"]:
            waits = "is being made" if lesson["is_tried"] else "waits for a verdict"
            typer.echo(f"       not used yet: its second try, run {lesson['awaits']}, {waits}")


def _describe_gain(gain: Mapping[str, Any]) -> str:
    if gain["difference"] is None:
        return f"measured: job {gain['job']} is {gain['state']} and has no figure yet"
    mean, low, high = gain["difference"]
    shares = f"{gain['without']:.2f} without, {gain['with_lessons']:.2f} with lessons"
    return f"measured: {shares} ({mean:+.2f} [{low:+.2f}, {high:+.2f}]) on {gain['tasks']} held-out tasks"

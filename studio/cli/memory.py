"""`python -m studio memory ...`: a pool's failure memory, as the Pool page's drawer shows and changes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pool_registry.errors import InvalidPool

memory = typer.Typer(
    help="A pool's failure memory: one sentence about every failed run, shown before similar queries.",
    no_args_is_help=True,
)
PoolName = Annotated[str, typer.Argument(help="The pool's name.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable.")]
Home = Annotated[str | None, typer.Option("--home", help="Data folder.")]


@memory.command("list")
def list_lessons(pool: PoolName, as_json: Json = False, home: Home = None) -> None:
    """Who writes the lessons, and every lesson with the run it was made of, newest first."""
    _tell(_done(home, action="memory", pool=pool), as_json)


@memory.command("set")
def set_memory(
    pool: PoolName,
    writer: Annotated[str, typer.Argument(help="rule (no cost), an agent of the pool (one call a failure), or off.")],
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Switch the memory on or off. The pool gets a new version; lessons are kept."""
    _tell(_done(home, action="set_memory", pool=pool, memory=writer), as_json)


@memory.command()
def learn(pool: PoolName, as_json: Json = False, home: Home = None) -> None:
    """Learn from the newest recorded failures that nothing was learnt from; those of a test split are left out."""
    _tell(_done(home, action="learn", pool=pool), as_json)


@memory.command()
def forget(
    pool: PoolName,
    lesson: Annotated[int | None, typer.Argument(help="The lesson's number in `memory list`.", min=1)] = None,
    every: Annotated[bool, typer.Option("--all", help="Forget all of the pool's lessons.")] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Delete one lesson, or all of them. The runs they were made of stay."""
    if (lesson is None) != every:
        raise InvalidPool([("", "say which lesson to forget: its number in `memory list`, or --all")])
    if lesson is not None:
        known = [each["id"] for each in _done(home, action="memory", pool=pool)["memory"]["lessons"]]
        if lesson not in known:
            raise InvalidPool(
                [("", f"pool {pool!r} has no lesson {lesson}; `memory list {pool}` shows those there are")]
            )
    _tell(_done(home, action="forget", pool=pool, lesson=lesson), as_json)


def _done(home: str | None, **request: Any) -> Mapping[str, Any]:
    """What the Pool page's command answers. Raises InvalidPool with its problems."""
    from studio.pages.pool.commands import PoolDesk
    from studio.prepare import prepare_store
    from studio.runtime import Runtime

    runtime = Runtime(prepare_store(home))
    try:
        answer = PoolDesk(runtime).handle(request)
    finally:
        runtime.close()
    if not answer["ok"]:
        raise InvalidPool([("", what) for _, what in answer["problems"]])
    return answer


def _tell(answer: Mapping[str, Any], as_json: bool) -> None:
    told = answer["memory"]
    if as_json:
        typer.echo(json.dumps(told, indent=1, ensure_ascii=False))
        return
    if answer["said"]:
        typer.echo(answer["said"])
    writer = {"off": "off", "rule": "on, written by rule"}.get(told["mode"], f"on, written by {told['mode']}")
    typer.echo(f"memory: {writer}; {told['count']} {'lesson' if told['count'] == 1 else 'lessons'}")
    for lesson in told["lessons"]:
        typer.echo(f"{lesson['id']:>5}  {lesson['sentence']}\n       {lesson['query']}\n       run {lesson['episode']}")

"""The commands `serve`, `users` and `tokens` of `python -m studio`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pool_registry.errors import PoolError
from trainer.cli.policy_help import POLICY_NAMES

if TYPE_CHECKING:
    from studio.access.accounts import Accounts, Tokens

HomeOption = Annotated[
    str | None,
    typer.Option("--home", help="Data folder. Default: PODIUM_HOME, or the platform's user data folder."),
]
users = typer.Typer(help="People who may log in where the studio is not on loopback.", no_args_is_help=True)
tokens = typer.Typer(help="Tokens for clients of served models.", no_args_is_help=True)


def serve(
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    orchestrator: Annotated[str, typer.Option(help=f"A checkpoint, {POLICY_NAMES}.")] = "starter-grpo",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    name: Annotated[str, typer.Option(help="Name of the model for clients. Default: podium-POOL.")] = "",
    token: Annotated[
        list[str] | None, typer.Option(help="A token kept elsewhere: env:NAME or keyring:NAME. May be repeated.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of all workers for a request.", min=1)] = None,
    max_cost: Annotated[float | None, typer.Option(help="Most US dollars for a request.")] = None,
    deadline: Annotated[float | None, typer.Option(help="Most seconds for a request.")] = None,
    at_once: Annotated[int, typer.Option(help="Most requests at the same time.", min=1)] = 128,
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve as an MCP server on stdin and stdout instead.")] = False,
    home: HomeOption = None,
) -> None:
    """Serve a pool and its orchestrator as one model of the OpenAI API (and over MCP at /mcp)."""
    from pydantic import ValidationError

    from studio.model_server.request import RequestLimits
    from studio.model_server.server import Place, serve_http, serve_stdio
    from studio.model_server.service import Offer

    try:
        limits = RequestLimits(max_tokens=max_tokens, max_cost=max_cost, deadline_s=deadline)
    except ValidationError as error:
        raise PoolError("--max-cost and --deadline must be above 0") from error
    offer = Offer(pool, orchestrator, name, limits, at_once)
    if mcp:
        serve_stdio(offer, home)
    else:
        serve_http(offer, Place(host, port, tuple(token or ()), home))


@users.command("add")
def add_user(
    name: Annotated[str, typer.Argument(help="Name to log in with; a known one gets a new password.")],
    home: HomeOption = None,
) -> None:
    """Let a person log in. Asks for the password; when stdin is no terminal, reads it from there."""
    with _accounts(home) as (people, _):
        people.add(name, _password())
    typer.echo(f"{name} may log in.")


@users.command("remove")
def remove_user(name: str, home: HomeOption = None) -> None:
    """Let a person log in no longer; open sessions end at once."""
    with _accounts(home) as (people, _):
        people.remove(name)
    typer.echo(f"{name} may not log in any more.")


@users.command("list")
def list_users(home: HomeOption = None) -> None:
    """Who may log in."""
    with _accounts(home) as (people, _):
        for known in people.list():
            typer.echo(f"{known.name}\tsince {known.created_at}")


@tokens.command("add")
def add_token(
    name: Annotated[str, typer.Argument(help="Which client it is for; traces of its requests carry the name.")],
    home: HomeOption = None,
) -> None:
    """Make a token and print it; only a hash of it is kept."""
    with _accounts(home) as (_, clients):
        typer.echo(clients.add(name))


@tokens.command("remove")
def remove_token(name: str, home: HomeOption = None) -> None:
    """The token opens nothing any more, from now on, also where it is in use."""
    with _accounts(home) as (_, clients):
        clients.remove(name)
    typer.echo(f"The token {name} is void.")


@tokens.command("list")
def list_tokens(home: HomeOption = None) -> None:
    """Which tokens there are; what they are, nobody knows any more."""
    with _accounts(home) as (_, clients):
        for known in clients.list():
            typer.echo(f"{known.name}\tsince {known.created_at}")


@contextmanager
def _accounts(home: str | None) -> Iterator[tuple[Accounts, Tokens]]:
    from studio.access.accounts import Accounts, Tokens
    from studio.prepare import prepare_store

    store = prepare_store(home)
    try:
        yield Accounts(store.engine), Tokens(store.engine)
    finally:
        store.close()


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    entered: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return entered

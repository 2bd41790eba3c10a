"""The commands `podium serve`, `podium users` and `podium tokens`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.orchestrator_name import TurnOptions, add_options
from pool_registry.errors import PoolError
from studio.access.roles import UserRole
from studio.cli.options import FinalizerOption, HomeOption, open_prepared_store
from studio.cli.serving.options import DeadlineOption, FollowUpsOption, ModeOption, RecordOption, RequestCostOption
from trainer.cli.options import WithoutOption
from trainer.cli.table_help import POLICY_NAMES

if TYPE_CHECKING:
    from fastapi import APIRouter

    from orchestrator.traces.store import Store
    from studio.access.accounts import Accounts, Tokens

ROLES_TEXT = "viewer looks, editor runs and changes, owner also decides what may touch this machine."
users = typer.Typer(help="People who may log in where the studio is not on loopback.", no_args_is_help=True)
tokens = typer.Typer(help="Tokens for clients of served models.", no_args_is_help=True)


def serve(
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    orchestrator: Annotated[
        str, typer.Option(help=f"A checkpoint, {POLICY_NAMES}. Default: what the Run page chooses for the pool.")
    ] = "",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    name: Annotated[str, typer.Option(help="Name of the model for clients. Default: podium-POOL.")] = "",
    deployment: Annotated[
        str, typer.Option(help="Serve what this deployment says, by its name; see podium deploy.")
    ] = "",
    token: Annotated[
        list[str] | None, typer.Option(help="A token kept elsewhere: env:NAME or keyring:NAME. May be repeated.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Origin of a page that may use it from a browser, such as http://localhost:3000. May be repeated."
        ),
    ] = None,
    max_total_tokens: Annotated[
        int | None,
        typer.Option("--max-total-tokens", "--max-tokens", help="Most tokens of all workers for a request.", min=1),
    ] = None,
    max_cost: RequestCostOption = None,
    deadline: DeadlineOption = None,
    at_once: Annotated[int, typer.Option(help="Most requests at the same time.", min=1)] = 128,
    mode: ModeOption = None,
    without: WithoutOption = None,
    finalizer: FinalizerOption = True,
    record: RecordOption = True,
    follow_ups: FollowUpsOption = True,
    pools: Annotated[
        bool, typer.Option("--pools", help="Let clients with a token read and change pools at /v1/pools.")
    ] = False,
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve as an MCP server on stdin and stdout instead.")] = False,
    home: HomeOption = None,
) -> None:
    """Serve a pool and its orchestrator as one model of the OpenAI API (and over MCP at /mcp, and A2A at /a2a)."""
    from pydantic import ValidationError

    from studio.housekeeping.daily import start_daily_work
    from studio.model_server.http.allowed_origins import read_origins
    from studio.model_server.request import RequestLimits
    from studio.model_server.server import ServeOptions, serve_http, serve_stdio
    from studio.model_server.sides import ServedModel

    try:
        limits = RequestLimits(max_total_tokens=max_total_tokens, max_cost=max_cost, deadline_s=deadline)
    except ValidationError as error:
        raise PoolError("--max-cost and --deadline must be above 0") from error
    options = TurnOptions(without=tuple(without or ()), finalizer=None if finalizer else False)
    orchestrator = add_options(orchestrator, options)
    model = ServedModel(pool, orchestrator, name, limits, at_once, mode, record, follow_ups=follow_ups)
    if deployment:
        if model != ServedModel("starter", "", max_concurrency=at_once):
            raise PoolError(
                f"what {deployment} serves, with which limits, is set by `podium deploy {deployment}`; with "
                "--deployment say only where to listen and whom to let in"
            )
        model = ServedModel("", "", deployment, max_concurrency=at_once, deployment=deployment)
    if mcp:
        serve_stdio(model, home, start_daily_work)
    else:
        make_routers = _make_pool_routers if pools else _make_no_routers
        origins = read_origins(allow_origin or ())
        where = ServeOptions(host, port, tuple(token or ()), origins, home, make_routers, start_daily_work)
        serve_http(model, where)


def _make_pool_routers(store: Store) -> list[APIRouter]:
    from studio.pages.pool.http_api import build_pool_routes

    return [build_pool_routes(store)]


def _make_no_routers(_store: Store) -> list[APIRouter]:
    return []


@users.command("add")
def add_user(
    name: Annotated[str, typer.Argument(help="Name to log in with; a known one gets a new password.")],
    role: Annotated[
        UserRole | None,
        typer.Option(help=f"{ROLES_TEXT} Default: the first person is an owner, others are editors."),
    ] = None,
    home: HomeOption = None,
) -> None:
    """Let a person log in. Asks for the password, or reads it from stdin when that is not a terminal."""
    with _open_accounts(home) as (people, _):
        people.add(name, _read_password(), role)
        kept = people.find_rights(name).role
    typer.echo(f"{name} may log in ({kept}).")


@users.command("role")
def set_role(name: str, role: Annotated[UserRole, typer.Argument(help=ROLES_TEXT)], home: HomeOption = None) -> None:
    """Change what a person may do, from their next click on."""
    with _open_accounts(home) as (people, _):
        people.set_role(name, role)
    typer.echo(f"{name} is {role} now.")


@users.command("sessions")
def list_sessions(
    name: Annotated[str, typer.Argument(help="Whose; without a name everybody's.")] = "", home: HomeOption = None
) -> None:
    """List who is logged in: since when, from which address, with which browser."""
    with _open_accounts(home) as (people, _):
        for session in people.list_sessions(name):
            since = session.opened_at or "unknown"
            typer.echo(f"{session.id}\t{session.user}\tsince {since}\t{session.address}\t{session.browser}")


@users.command("end-session")
def end_session(
    session: Annotated[str, typer.Argument(help="Its id, from `podium users sessions`.")], home: HomeOption = None
) -> None:
    """Log a session out at once."""
    with _open_accounts(home) as (people, _):
        people.end_session(session)
    typer.echo(f"The session {session} has ended.")


@users.command("remove")
def remove_user(name: str, home: HomeOption = None) -> None:
    """Remove a person's login; their open sessions and their tokens end at once."""
    with _open_accounts(home) as (people, _):
        people.remove(name)
    typer.echo(f"{name} may not log in any more.")


@users.command("list")
def list_users(home: HomeOption = None) -> None:
    """List the people who may log in."""
    with _open_accounts(home) as (people, _):
        for person in people.list():
            typer.echo(f"{person.name}\tsince {person.created_at}\t{person.role}")


@tokens.command("add")
def add_token(
    name: Annotated[str, typer.Argument(help="Which client it is for; traces of its requests carry the name.")],
    user: Annotated[
        str,
        typer.Option(help="Whose it is: it may do what this person may. Default: nobody's, with an owner's rights."),
    ] = "",
    home: HomeOption = None,
) -> None:
    """Make a token and print it; only a hash of it is kept."""
    with _open_accounts(home) as (_, clients):
        typer.echo(clients.add(name, user))


@tokens.command("remove")
def remove_token(name: str, home: HomeOption = None) -> None:
    """Revoke a token. Clients that use it are refused from now on."""
    with _open_accounts(home) as (_, clients):
        clients.remove(name)
    typer.echo(f"The token {name} is void.")


@tokens.command("list")
def list_tokens(home: HomeOption = None) -> None:
    """List the names of the tokens. The tokens themselves are not kept."""
    with _open_accounts(home) as (_, clients):
        for client in clients.list():
            typer.echo("\t".join(filter(None, (client.name, f"since {client.created_at}", client.user))))


@contextmanager
def _open_accounts(home: str | None) -> Iterator[tuple[Accounts, Tokens]]:
    from studio.access.accounts import Accounts, Tokens

    with open_prepared_store(home) as store:
        yield Accounts(store.engine), Tokens(store.engine)


def _read_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    entered: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return entered

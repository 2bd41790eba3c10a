"""`python -m studio`: starts the studio; `run`, `prepare` and `doctor` work without a browser."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Annotated

import typer

from orchestrator.errors import OrchestratorError
from pool_registry.errors import PoolError
from studio.cli import export, memory, publish, serve, what_if
from trainer.cli.policy_help import POLICY_NAMES, PolicyHelp

app = typer.Typer(
    help="Podium: design a pool of agents and tools, train a small model to orchestrate it, watch it work.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(cls=PolicyHelp)(serve.serve)
app.command()(publish.publish)
app.command("what-if")(what_if.what_if)
app.add_typer(export.export, name="export")
app.add_typer(memory.memory, name="memory")
app.add_typer(serve.users, name="users")
app.add_typer(serve.tokens, name="tokens")
HomeOption = Annotated[
    str | None,
    typer.Option("--home", help="Data folder. Default: PODIUM_HOME, or the platform's user data folder."),
]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 7860,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need users who log in.")
    ] = "127.0.0.1",
    login: Annotated[bool, typer.Option("--login", help="Ask for a login on loopback, too.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    home: HomeOption = None,
) -> None:
    """Start the studio in the browser (without a command), or run one of the commands."""
    if context.invoked_subcommand is not None:
        return
    from studio.start import StartOptions, serve

    typer.echo("Starting Podium ...")
    serve(StartOptions(port, home, browser, host, login))


@app.command(cls=PolicyHelp)
def run(
    query: Annotated[str, typer.Argument(help="The question.")],
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    orchestrator: Annotated[
        str,
        typer.Option(help=f"{POLICY_NAMES}, or a checkpoint."),
    ] = "oracle",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole trace as JSON.")] = False,
    home: HomeOption = None,
) -> None:
    """Run one query without the page. Exit code 0 when it was answered, 1 when not, 2 on bad input."""
    from studio.headless import run_once
    from studio.prepare import prepare_store

    store = prepare_store(home)
    try:
        document = asyncio.run(run_once(store, pool, orchestrator, query))
    finally:
        store.close()
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if as_json else document["answer"])
    if document["outcome"] != "answered":
        typer.echo(f"{document['outcome']}: {document['reason']}", err=True)
        raise typer.Exit(1)


@app.command()
def prepare(home: HomeOption = None) -> None:
    """Migrate the database, seed the starter pool and build its data, so that the first run is quick."""
    from studio.prepare import build_starter_data, prepare_store

    store = prepare_store(home)
    build_starter_data(store.home, with_model=True)
    store.close()
    typer.echo(f"Ready: {store.home.root}")


@app.command()
def doctor(home: HomeOption = None) -> None:
    """Say what is installed and found on this machine, and how to get what is missing."""
    from studio.cli.doctor import examine

    for line in examine(home):
        typer.echo(line)


def main() -> None:
    """The command line; errors that a person can mend are one line on stderr and exit code 2."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        app()
    except (PoolError, OrchestratorError) as error:
        typer.echo(f"podium: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

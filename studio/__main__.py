"""The command `podium` (also `python -m studio`): starts the studio, or runs one of its commands without a browser."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Literal

import typer

from orchestrator.orchestrator_name import MAX_SAMPLES, TurnOptions, add_options
from pool_registry.storage.data_folder import choose_home
from studio.cli import (
    binding,
    export,
    foreign_checkpoints,
    housekeeping,
    improve,
    memory,
    notices,
    pool,
    publish,
    restore,
    skills,
)
from studio.cli.options import (
    FinalizerOption,
    HomeOption,
    JsonOption,
    MaxCostOption,
    SeenByOption,
    WithoutWorkerOption,
    open_prepared_store,
)
from studio.cli.runs import approvals, credit, follow_up, rollout, share, what_if
from studio.cli.runs.result import print_run
from studio.cli.serving import deployments, mcp, serve
from trainer.__main__ import tasks_app
from trainer.cli.command_line import run_command_line
from trainer.cli.options import WithoutOption
from trainer.cli.table_help import POLICY_NAMES, TableHelp

app = typer.Typer(
    help="Podium: design a pool of agents and tools, train a small model to orchestrate it, watch it work.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(cls=TableHelp)(serve.serve)
app.command(cls=TableHelp)(deployments.deploy)
app.command("deployments")(deployments.list_deployments)
app.command(cls=TableHelp)(deployments.candidate)
app.command()(deployments.promote)
app.command()(deployments.rollback)
app.command()(mcp.mcp)
app.command()(publish.publish)
app.command("what-if")(what_if.what_if)
app.command("follow-up")(follow_up.follow_up)
app.command()(approvals.approvals)
app.command()(binding.binding)
app.command("make-orchestrator")(foreign_checkpoints.make_orchestrator)
app.command()(credit.credit)
app.command()(improve.improve)
app.command()(notices.notices)
app.command()(restore.restore)
app.command()(rollout.rollout)
app.command()(share.share)
app.command("delete")(housekeeping.delete)
app.command("rename")(housekeeping.rename)
app.command("tidy")(housekeeping.tidy)
app.command("forget")(housekeeping.forget)
app.add_typer(housekeeping.trash, name="trash")
app.add_typer(pool.commands, name="pool")
app.add_typer(export.commands, name="export")
app.add_typer(memory.commands, name="memory")
app.add_typer(skills.commands, name="skills")
app.add_typer(tasks_app, name="tasks")
app.add_typer(serve.users, name="users")
app.add_typer(serve.tokens, name="tokens")


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 7860,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need users who log in.")
    ] = "127.0.0.1",
    login: Annotated[bool, typer.Option("--login", help="Ask for a login on loopback, too.")] = False,
    proxy: Annotated[
        str,
        typer.Option(help="Address of a reverse proxy in front: what it says of visitors and of https is believed."),
    ] = "",
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    home: HomeOption = None,
) -> None:
    """Start the studio in the browser (without a command), or run one of the commands."""
    if context.invoked_subcommand is not None:
        _read_for_command(context, home)
        return
    from studio.start import StartOptions, run_studio

    typer.echo("Starting Podium ...")
    run_studio(StartOptions(port, home, browser, host, login, proxy))


def _read_for_command(context: typer.Context, home: str | None) -> None:
    """Take --home before a command for the command's. Raises BadParameter where an option of the page stands there."""
    if home:
        choose_home(home)
    for name in ("port", "host", "login", "proxy", "browser"):
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE":
            command = context.invoked_subcommand
            raise typer.BadParameter(f"--{name} stands before {command}: write it behind, or leave {command} out")


@app.command(cls=TableHelp)
def run(
    query: Annotated[str, typer.Argument(help="The question.")],
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    orchestrator: Annotated[
        str,
        typer.Option(help=f"{POLICY_NAMES}, or a checkpoint. Default: what the Run page chooses for the pool."),
    ] = "",
    samples: Annotated[
        int,
        typer.Option(help="Plans that a language model draws for a turn; tried and voted on.", min=1, max=MAX_SAMPLES),
    ] = 1,
    constrained: Annotated[
        bool | None,
        typer.Option(help="Hold its turns to a grammar of the pool. Without: checkpoints are, agents are not."),
    ] = None,
    without: WithoutOption = None,
    mode: Annotated[
        Literal["autonomous", "escalate", "review"] | None,
        typer.Option(help="When its plans wait for a person. Default: as the pool says."),
    ] = None,
    without_worker: WithoutWorkerOption = None,
    max_cost: MaxCostOption = None,
    seen_by: SeenByOption = None,
    finalizer: FinalizerOption = True,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Run one query without the page. Exit code 0: answered, 1: not answered, 2: bad input, 3: its plan waits for a
    person (see podium approvals)."""
    from pool_registry.calls.run_limits import build_run_limits, parse_seen_by
    from studio.headless import run_once
    from studio.orchestrators.default import choose_default

    with open_prepared_store(home) as store:
        stored = store.pools.latest(pool).pool
        switch = None if finalizer else False
        options = TurnOptions(samples, constrained, without=tuple(without or ()), finalizer=switch)
        name = add_options(orchestrator or choose_default(stored), options)
        limits = build_run_limits(without_worker or (), max_cost, parse_seen_by(seen_by or ()))
        document = asyncio.run(run_once(store, pool, name, query, mode, limits))
        print_run(store, document, stored, as_json)


@app.command()
def prepare(home: HomeOption = None) -> None:
    """Migrate the database, seed the starter pool and build its data, so that the first run is quick."""
    from studio.prepare import build_starter_data

    with open_prepared_store(home) as store:
        build_starter_data(store.home, with_model=True)
    typer.echo(f"Ready: {store.home.root}")


@app.command()
def doctor(
    home: HomeOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only look: generate and train nothing.")] = False,
    with_vllm: Annotated[
        bool | None,
        typer.Option("--vllm/--no-vllm", help="Try vLLM too. Default: on a GPU only, it takes a minute on a CPU."),
    ] = None,
) -> None:
    """Show what this machine has and how to get what is missing, then generate a token and train a step on it."""
    from studio.cli.doctor import examine_machine

    for line in examine_machine(home, quick, with_vllm):
        typer.echo(line)


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    run_command_line(app, "podium")


if __name__ == "__main__":
    main()

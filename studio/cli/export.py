"""`podium export ...`: checkpoints, pools, traces, graphs and plain Python files, for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.errors import OrchestratorError
from pool_registry.atomic_write import write_atomically
from pool_registry.errors import writing_to
from pool_registry.storage.data_folder import choose_home
from studio.cli.options import MAX_VERSION, HomeOption, open_prepared_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from orchestrator.traces.store import Store
    from studio.export.environments.forms import EnvironmentForm

commands = typer.Typer(help="Take a checkpoint, a pool, traces or a graph to other programs.", no_args_is_help=True)
EnvironmentOption = Annotated[Path, typer.Option("--out", help="The folder to make.")]
TasksOption = Annotated[str, typer.Option(help="The source of tasks. Empty: the pool's practice tasks.")]
CountOption = Annotated[int, typer.Option(help="Most tasks of each split.", min=1, max=1_000_000)]
DialectOption = Annotated[str, typer.Option(help="The dialect in which the model orchestrates.")]
OutOption = Annotated[Path | None, typer.Option(help="The file; empty: the terminal.")]


class ExportRefused(OrchestratorError):
    """Raised when the export cannot be written; the message says what to do."""


@commands.command()
def checkpoint(
    name: Annotated[str, typer.Argument(help="starter-grpo, JOB, JOB@STEP or a folder.")],
    out: Annotated[Path, typer.Option(help="The folder to make; for gguf the file.")],
    form: Annotated[
        Literal["adapter", "merged", "gguf"], typer.Option("--as", help="The form; gguf needs llama.cpp's converter.")
    ] = "merged",
    home: HomeOption = None,
) -> None:
    """A trained orchestrator as safetensors, or as GGUF through llama.cpp's converter."""
    from studio.export.checkpoint import export_checkpoint

    choose_home(home)
    typer.echo(str(export_checkpoint(name, form, out)))


@commands.command()
def pool(
    name: Annotated[str, typer.Argument(help="The pool's name.")],
    version: Annotated[int | None, typer.Option(help="Empty: the current one.", min=1, max=MAX_VERSION)] = None,
    out: OutOption = None,
    home: HomeOption = None,
) -> None:
    """A pool as JSON; keys in it are references, never values."""
    from pool_registry.pool import export_pool

    with open_prepared_store(home) as store:
        stored = store.pools.get(name, version) if version else store.pools.latest(name)
        _write(export_pool(stored.pool), out)


@commands.command()
def traces(
    episode: Annotated[list[str] | None, typer.Option(help="An episode; may be repeated. Empty: the newest.")] = None,
    pool: Annotated[str, typer.Option(help="Only runs on this pool.")] = "",
    orchestrator: Annotated[str, typer.Option(help="Only runs of this orchestrator.")] = "",
    last: Annotated[int, typer.Option(help="How many, when none is named.", min=1, max=100_000)] = 100,
    form: Annotated[
        Literal["jsonl", "otlp", "sts"],
        typer.Option(
            "--as", help="otlp: OpenTelemetry GenAI spans; sts: a folder of sessions for the Hub's trace viewer."
        ),
    ] = "jsonl",
    to: Annotated[
        list[str] | None,
        typer.Option(help="otlp:http://HOST:4318, trackio:PROJECT or mlflow:URI: sends them there; may be repeated."),
    ] = None,
    out: OutOption = None,
    home: HomeOption = None,
) -> None:
    """Export traces as JSON Lines, as OpenTelemetry spans (OTLP JSON) for Phoenix, Langfuse or Jaeger, or as sessions
    for the trace viewer of the Hugging Face Hub; or send them to a collector, Trackio or MLflow."""
    from orchestrator.traces.store import TraceFilter
    from studio.export.formats import export_jsonl, export_otlp, send_traces

    with open_prepared_store(home) as store:
        newest = TraceFilter(pool=pool, orchestrator=orchestrator, limit=last)
        ids = list(episode or ()) or [row.id for row in store.traces.search(newest)]
        if not ids:
            raise ExportRefused("no run matches; `podium export traces` without options takes the newest")
        if to:
            send_traces(store, ids, to)
            typer.echo(f"{len(ids):,} traces sent to {', '.join(to)}")
            return
        writers: dict[str, Callable[[], None]] = {
            "jsonl": lambda: _write(export_jsonl(store, ids), out),
            "otlp": lambda: _write(json.dumps(export_otlp(store, ids)) + "\n", out),
            "sts": lambda: _write_sessions(store, ids, out),
        }
        writers[form]()


def _write_sessions(store: Store, episodes: Iterable[str], out: Path | None) -> None:
    """Write a file for each episode and for those that its steps ran. Raises ExportRefused without a folder."""
    from studio.export.session_traces import export_session, list_sessions

    if out is None:
        raise ExportRefused("a session is a file of its own: name a folder (--out FOLDER)")
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
    sessions = dict.fromkeys(session for episode in episodes for session in list_sessions(store, episode))
    for session in sessions:
        _write(export_session(store, session), out / f"{session}.jsonl")


@commands.command()
def graph(
    episode: Annotated[str, typer.Argument(help="The episode's id.")],
    out: Annotated[Path, typer.Option(help="NAME.svg, NAME.graphml, or NAME.html for a page that replays it.")],
    home: HomeOption = None,
) -> None:
    """An episode's graph as SVG or GraphML, or as a page that replays it. PNG: Export on the Run page."""
    from studio.export.formats import export_graphml, export_page, export_svg

    writers = {".svg": export_svg, ".graphml": export_graphml, ".html": export_page}
    if out.suffix not in writers:
        raise ExportRefused(f"the file must end in {', '.join(writers)}; a PNG is made by Export on the Run page")
    with open_prepared_store(home) as store:
        _write(writers[out.suffix](store, episode), out)


@commands.command()
def python(
    pool: Annotated[str, typer.Option(help="The pool's name.")],
    orchestrator: Annotated[str, typer.Option(help="A checkpoint or a policy.")],
    out: OutOption = None,
    take: Annotated[
        list[str] | None,
        typer.Option(help="A worker whose files go along, beside --out; again for more."),
    ] = None,
    home: HomeOption = None,
) -> None:
    """A plain Python file that asks this pool through this orchestrator; it needs the packages alone."""
    from studio.export.python_file import PROGRAM, list_export_files

    if take and out is None:
        raise ExportRefused("--take puts files beside the program; say where that goes with --out")
    with open_prepared_store(home) as store:
        name = out.name if out else PROGRAM
        files = list_export_files(store.pools.latest(pool).pool, orchestrator, name, take or ())
    program = files.pop(name).decode()
    for path, content in files.items():
        assert out is not None, "only --take brings files, and it needs --out"
        place = out.expanduser().parent / path
        with writing_to(out):
            place.parent.mkdir(parents=True, exist_ok=True)
        _put(content, place, out)
    _write(program, out)  # last: it is not there without its files


@commands.command()
def verifiers(
    pool: Annotated[str, typer.Argument(help="The pool's name.")],
    out: EnvironmentOption,
    tasks: TasksOption = "",
    count: CountOption = 1000,
    dialect: DialectOption = "plan",
    home: HomeOption = None,
) -> None:
    """A pool and tasks as an environment of the package verifiers: the model orchestrates, the workers stay."""
    from studio.export.environments.forms import VERIFIERS

    _export_environment(VERIFIERS, pool, out, tasks, count, dialect, home)


@commands.command()
def openenv(
    pool: Annotated[str, typer.Argument(help="The pool's name.")],
    out: EnvironmentOption,
    tasks: TasksOption = "",
    count: CountOption = 1000,
    dialect: DialectOption = "plan",
    home: HomeOption = None,
) -> None:
    """A pool and tasks as a server of OpenEnv: each step is a turn of the model, the workers stay."""
    from studio.export.environments.forms import OPENENV

    _export_environment(OPENENV, pool, out, tasks, count, dialect, home)


def _export_environment(
    form: EnvironmentForm, pool: str, out: Path, tasks: str, count: int, dialect: str, home: str | None
) -> None:
    from studio.export.environments.folder import export_environment

    with open_prepared_store(home) as store:
        stored = store.pools.latest(pool).pool
        number = export_environment(form, stored, tasks or f"practice:{pool}", out, dialect, count)
    typer.echo(f"{out}: {number:,} tasks")


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    _put(text.encode(), out.expanduser(), out)
    typer.echo(str(out))


@commands.command("server-json")
def server_json(
    name: Annotated[str, typer.Argument(help="As the registry names servers: io.github.YOU/NAME.")],
    pool: Annotated[str, typer.Option(help="The pool that is served.")] = "starter",
    description: Annotated[str, typer.Option(help="What it answers, in 100 characters.")] = "",
    url: Annotated[str, typer.Option(help="Where it is served over HTTP, such as https://HOST/mcp.")] = "",
    out: OutOption = None,
    home: HomeOption = None,
) -> None:
    """A served pool as an entry of the MCP registry (server.json)."""
    from studio.export.server_json import build_server_json

    with open_prepared_store(home) as store:
        store.pools.latest(pool)
    _write(json.dumps(build_server_json(name, pool, description, url), indent=2) + "\n", out)
    typer.echo(f"The registry wants this line in the package's README: mcp-name: {name}", err=True)


@commands.command()
def skill(out: Annotated[Path, typer.Argument(help="The folder of skills, such as .claude/skills.")]) -> None:
    """The skill with which a coding agent works with this studio, for its folder of skills."""
    from assets import asset

    folder = out / "podium"
    with writing_to(folder, "OUT"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_bytes(asset("skills/podium/SKILL.md").read_bytes())
    typer.echo(str(folder / "SKILL.md"))


def _put(content: bytes, place: Path, out: Path) -> None:
    """Write a file whole or not at all; a pipe or a device, such as /dev/stdout, as it comes."""
    with writing_to(out):
        if place.exists() and not place.is_file():
            place.write_bytes(content)
            return
        write_atomically(place.resolve(), content)

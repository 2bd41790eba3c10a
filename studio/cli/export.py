"""`python -m studio export ...`: checkpoints, pools, traces, graphs and plain Python files, from a shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.errors import OrchestratorError
from pool_registry.storage.data_folder import choose_home

if TYPE_CHECKING:
    from orchestrator.traces.store import Store

export = typer.Typer(help="Take a checkpoint, a pool, traces or a graph to other programs.", no_args_is_help=True)
Home = Annotated[str | None, typer.Option("--home", help="Data folder.")]
Out = Annotated[Path | None, typer.Option(help="The file; empty: the terminal.")]


class ExportRefused(OrchestratorError):
    """What was asked for cannot be written; the message says what to do."""


@export.command()
def checkpoint(
    name: Annotated[str, typer.Argument(help="starter-grpo, JOB, JOB@STEP or a folder.")],
    out: Annotated[Path, typer.Option(help="The folder to make; for gguf the file.")],
    form: Annotated[
        Literal["adapter", "merged", "gguf"], typer.Option("--as", help="The form; gguf needs llama.cpp's converter.")
    ] = "merged",
    home: Home = None,
) -> None:
    """A trained orchestrator as safetensors, or as GGUF through llama.cpp's converter."""
    from studio.export.checkpoint import export_checkpoint

    choose_home(home)
    typer.echo(str(export_checkpoint(name, form, out)))


@export.command()
def pool(
    name: Annotated[str, typer.Argument(help="The pool's name.")],
    version: Annotated[int | None, typer.Option(help="Empty: the current one.")] = None,
    out: Out = None,
    home: Home = None,
) -> None:
    """A pool as JSON; keys in it are references, never values."""
    from pool_registry.pool import export_pool

    with _store(home) as store:
        found = store.pools.get(name, version) if version else store.pools.latest(name)
        _write(export_pool(found.pool), out)


@export.command()
def traces(
    episode: Annotated[list[str] | None, typer.Option(help="An episode; may be repeated. Empty: the newest.")] = None,
    pool: Annotated[str, typer.Option(help="Only runs on this pool.")] = "",
    orchestrator: Annotated[str, typer.Option(help="Only runs of this orchestrator.")] = "",
    last: Annotated[int, typer.Option(help="How many, when none is named.", min=1, max=100_000)] = 100,
    form: Annotated[Literal["jsonl", "otlp"], typer.Option("--as", help="otlp: OpenTelemetry GenAI spans.")] = "jsonl",
    out: Out = None,
    home: Home = None,
) -> None:
    """Traces as JSON Lines, or as OpenTelemetry spans that Phoenix, Langfuse or Jaeger read (OTLP JSON)."""
    from orchestrator.traces.store import TraceFilter
    from studio.export.formats import jsonl, otlp_document

    with _store(home) as store:
        wanted = TraceFilter(pool=pool, orchestrator=orchestrator, limit=last)
        ids = list(episode or ()) or [row.id for row in store.traces.search(wanted)]
        if not ids:
            raise ExportRefused("no run fits; `python -m studio export traces` without options takes the newest")
        _write(jsonl(store, ids) if form == "jsonl" else json.dumps(otlp_document(store, ids)) + "\n", out)


@export.command()
def graph(
    episode: Annotated[str, typer.Argument(help="The episode's id.")],
    out: Annotated[Path, typer.Option(help="NAME.svg, NAME.graphml, or NAME.html for a page that replays it.")],
    home: Home = None,
) -> None:
    """An episode's graph as SVG or GraphML, or as a page that replays it. PNG: Export on the Run page."""
    from studio.export.formats import page_of, svg_of, xml_of

    writers = {".svg": svg_of, ".graphml": xml_of, ".html": page_of}
    if out.suffix not in writers:
        raise ExportRefused(f"the file must end in {', '.join(writers)}; a PNG is made by Export on the Run page")
    with _store(home) as store:
        _write(writers[out.suffix](store, episode), out)


@export.command()
def python(
    pool: Annotated[str, typer.Option(help="The pool's name.")],
    orchestrator: Annotated[str, typer.Option(help="A checkpoint or a policy.")],
    out: Out = None,
    home: Home = None,
) -> None:
    """A plain Python file that asks this pool through this orchestrator; it needs the packages alone."""
    from studio.export.python_file import python_file

    with _store(home) as store:
        _write(python_file(store.pools.latest(pool).pool, orchestrator, out.name if out else "orchestrate.py"), out)


@contextmanager
def _store(home: str | None) -> Iterator[Store]:
    from studio.prepare import prepare_store

    store = prepare_store(str(choose_home(home).root))
    try:
        yield store
    finally:
        store.close()


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise ExportRefused(f"{out} cannot be written ({error.strerror}); choose another file with --out") from error
    typer.echo(str(out))

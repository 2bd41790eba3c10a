"""`podium publish`: what the Publish page does, from a shell."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pool_registry.text import one_line, shorten
from studio.cli.options import HomeOption, open_prepared_store
from studio.publish.request import HARDWARE, PublishError, parse_publication

if TYPE_CHECKING:
    from studio.publish.bundle import Bundle
    from studio.publish.plan import PublishPlan
    from studio.publish.sent_texts import SentText

SHOWN_CHARS = 400  # of one text


def publish(
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "",
    orchestrator: Annotated[
        str, typer.Option(help="A checkpoint (starter-grpo, JOB@STEP, a folder) or a policy.")
    ] = "",
    repo: Annotated[str, typer.Option(help="NAME, or OWNER/NAME; the model and the Space get this name.")] = "",
    visitors: Annotated[str, typer.Option(help="replay, own_key, or secrets (the Space's).")] = "replay",
    static: Annotated[bool, typer.Option("--static", help="The Space is one HTML file that replays.")] = False,
    with_model: Annotated[bool, typer.Option("--model/--no-model", help="Publish the checkpoint, too.")] = True,
    hardware: Annotated[str, typer.Option(help=f"What the Space runs on: {', '.join(HARDWARE)}.")] = "cpu-basic",
    visibility: Annotated[str, typer.Option(help="private or public.")] = "private",
    licence: Annotated[str, typer.Option("--licence", "--license", help="As the Hub names it.")] = "apache-2.0",
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "",
    about: Annotated[str, typer.Option(help="One paragraph for the page and the cards.")] = "",
    take: Annotated[
        list[str] | None,
        typer.Option(help="A worker whose files go along (a function's file, documents); may be repeated."),
    ] = None,
    trace: Annotated[list[str] | None, typer.Option(help="Id of a run to show; may be repeated.")] = None,
    token: Annotated[str, typer.Option(help="env:NAME or keyring:NAME; empty: the Hub's own login.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show every file; send nothing.")] = False,
    out: Annotated[Path | None, typer.Option(help="With --dry-run: write the files below this folder.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether the pool's texts may be read.")] = False,
    record: Annotated[str, typer.Option(hidden=True, help="Go on with a publication of the page.")] = "",
    home: HomeOption = None,
) -> None:
    """Publish an orchestrator and its pool to the Hugging Face Hub: a model repository and a Space."""
    from pool_registry.portable_pool import travellers
    from studio.publish.plan import make_plan
    from studio.publish.publication_record import claim_record
    from studio.publish.publish import publish_now, resume_publication
    from studio.publish.sent_texts import list_sent_texts
    from studio.publish.traces import record_examples

    with open_prepared_store(home) as store:
        if out is not None and not dry_run:
            raise PublishError("--out goes with --dry-run, which sends nothing: add it, or leave --out out")
        if record:
            resume_publication(store, record)
            return
        publication = parse_publication(
            {
                "pool": pool, "orchestrator": orchestrator, "repo": repo, "visitors": visitors, "static": static,
                "with_model": with_model, "hardware": hardware, "visibility": visibility, "licence": licence,
                "title": title, "about": about, "traces": tuple(trace or ()), "token": token, "take": tuple(take or ()),
            }
        )  # fmt: skip
        if count := record_examples(store, publication):
            typer.echo(f"recorded {count} example runs, because there were none", err=True)
        texts = list_sent_texts(travellers(store.pools.latest(pool).pool, publication.take).pool)
        if texts and not yes:
            _show_texts(texts)
        if texts and not (yes or dry_run) and sys.stdin.isatty():
            typer.confirm("They will stand in the repository. Publish?", abort=True, err=True)
        if not dry_run:
            publish_now(store, claim_record(store.home, publication), lambda line: typer.echo(line, err=True))
            return
        with tempfile.TemporaryDirectory(prefix="podium-publish-") as folder:
            _print_plan(make_plan(store, publication, Path(folder)), out)


def _show_texts(texts: Sequence[SentText]) -> None:
    """Print the texts of a pool that a publication sends, as they stand in it."""
    typer.echo("Texts of the pool that leave this machine; no scan knows whether they hold a secret:", err=True)
    for text in texts:
        typer.echo(f"  {text.worker} {text.field}: {shorten(one_line(text.text), SHOWN_CHARS, '…')}", err=True)


def _print_plan(plan: PublishPlan, out: Path | None) -> None:
    """Print what would be sent, and write it to `out`."""
    from studio.publish.bundle import write_folder

    bundles = plan.bundles
    for bundle in bundles:
        _print_bundle(bundle)
    for luggage in plan.portable.offered:
        typer.echo(f"could go along with {len(luggage.files)} files: {luggage.worker} (--take {luggage.worker})")
    if plan.secrets:
        typer.echo("secrets of the Space: " + ", ".join(f"{key.name} (from {key.reference})" for key in plan.secrets))
    if out is not None:
        write_folder(bundles, out)
        typer.echo(f"written to {out}; nothing was sent")
    else:
        typer.echo("nothing was sent")


def _print_bundle(bundle: Bundle) -> None:
    typer.echo(f"{bundle.kind}: {len(bundle.entries)} files, {bundle.size:,} bytes")
    for entry in bundle.entries:
        typer.echo(f"  {entry.size:>12,}  {entry.path}  ({entry.about})")
    for what, why in bundle.left_out:
        typer.echo(f"  {'left out':>12}  {what}: {why}")

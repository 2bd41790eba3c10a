"""`podium delete | rename | tidy` and `podium trash ...`: what a data folder holds is deleted, renamed and put back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from pool_registry.errors import StorageError
from studio.cli.options import HomeOption, open_prepared_store

TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
SOURCES = ("mine", "served", "evaluation", "training")
trash = typer.Typer(help="What was deleted and can be put back for a while.", no_args_is_help=True)
Kind = Annotated[
    str, typer.Argument(help="pool, trace, job, checkpoint (JOB@STEP), evaluation (JOB), publication or deployment.")
]
Days = Annotated[float | None, typer.Option(help="0 for no limit.", min=0)]


def delete(
    kind: Kind,
    names: Annotated[list[str], typer.Argument(help="Its name; several are deleted one after another.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask where something depends on it.")] = False,
    home: HomeOption = None,
) -> None:
    """Delete something; it can be put back for a while (`podium trash`). A job goes with its
    checkpoints and what it measured."""
    from studio.housekeeping.things import Things

    with open_prepared_store(home) as store:
        things = Things(store)
        for name in names:
            dependents = things.find_dependents(kind, name)
            for line in dependents.affected:
                typer.echo(f"{name}: {line}", err=True)
            if dependents.affected and not dependents.blocking and not yes:
                typer.confirm(f"Delete the {kind} {name}?", abort=True, err=True)
            entry = things.delete(kind, name)
            typer.echo(f"Deleted {kind} {name}. Put it back with: podium trash restore {entry.key}")


def rename(
    kind: Annotated[str, typer.Argument(help="pool or job.")],
    name: str,
    new: Annotated[str, typer.Argument(help="The new name.")],
    home: HomeOption = None,
) -> None:
    """Give a pool or a job another name."""
    from studio.housekeeping.things import Things

    with open_prepared_store(home) as store:
        stays = Things(store).rename(kind, name, new)
    typer.echo(f"{kind} {name} is now called {new}; {stays}.")


def tidy(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted.")] = False,
    traces_days: Days = None,
    drawn_days: Days = None,
    served_days: Days = None,
    traces_mb: Days = None,
    jobs_days: Days = None,
    jobs_gb: Days = None,
    trash_days: Annotated[float | None, typer.Option(help="Days that deleted things can be put back.", min=0)] = None,
    copies: Annotated[int | None, typer.Option(help="Daily copies of the database that stay; 0: none.", min=0)] = None,
    copies_days: Annotated[float | None, typer.Option(help="Days that a daily copy stays.", min=0.01)] = None,
    home: HomeOption = None,
) -> None:
    """Delete what is older or larger than the retention allows. Options change the setting, which the studio and
    servers follow at their start and every hour; with --dry-run they change nothing. Drawn are the traces of
    evaluations and training, served those of requests."""
    from studio.housekeeping import retention as setting

    given: dict[str, Any] = {
        "traces_days": traces_days,
        "drawn_days": drawn_days,
        "served_days": served_days,
        "traces_mb": traces_mb,
        "jobs_days": jobs_days,
        "jobs_gb": jobs_gb,
    }
    changes = {name: value or None for name, value in given.items() if value is not None}
    own = {"trash_days": trash_days, "copies": copies, "copies_days": copies_days}
    changes |= {name: value for name, value in own.items() if value is not None}
    with open_prepared_store(home) as store:
        if changes and not dry_run:
            setting.change_retention(store.home, changes)
        retention = setting.vary_retention(setting.read_retention(store.home), changes)
        done = setting.tidy(store, dry_run, retention)
    limits = ", ".join(f"{name} {value:g}" for name, value in retention.model_dump().items() if value is not None)
    typer.echo(f"Retention: {limits}")
    verb = "would be deleted" if dry_run else "deleted"
    jobs = len(done.jobs) - len(done.kept)
    left = "would leave" if dry_run else "left"
    typer.echo(f"{len(done.traces)} traces and {jobs} jobs {verb}; {len(done.trash)} things {left} the trash.")
    for line in done.kept:
        typer.echo(line, err=True)


def forget(
    user: Annotated[str, typer.Option(help="A person, or a client's token.")] = "",
    source: Annotated[str, typer.Option(help="mine, served, evaluation or training.")] = "",
    since: Annotated[datetime | None, typer.Option(help="From this time on, UTC.", formats=TIMES)] = None,
    until: Annotated[datetime | None, typer.Option(help="Before this time, UTC.", formats=TIMES)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the runs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
) -> None:
    """Delete runs for good, by who sent them and when: from traces, tasks, skills, lessons, jobs, the trash and the
    copies of the database. They cannot be put back."""
    from studio.housekeeping.forgetting import Sender, forget

    if source not in ("", *SOURCES):
        raise StorageError(f"there is no source {source!r}; use one of: {', '.join(SOURCES)}")
    times = [None if time is None else time.replace(tzinfo=UTC) for time in (since, until)]
    sender = Sender(user, source, *times)
    with open_prepared_store(home) as store:
        if dry_run or not yes:
            runs = forget(store, sender, dry_run=True).counts["runs"]
            typer.echo(f"{runs:,} runs that have ended, with what was made of them")
        if dry_run:
            return
        if not yes:
            typer.confirm("Delete them for good?", abort=True, err=True)
        forgotten = forget(store, sender)
    counts = ", ".join(f"{count:,} {name}" for name, count in forgotten.counts.items())
    typer.echo(f"Deleted for good: {counts or 'nothing'}")
    for sentence in forgotten.stays:
        typer.echo(sentence, err=True)
    if forgotten.stays:
        raise typer.Exit(1)


@trash.command("list")
def list_trash(home: HomeOption = None) -> None:
    """List what can be put back, the latest first."""
    from studio.housekeeping.things import Things

    with open_prepared_store(home) as store:
        entries = Things(store).trash.list()
    for entry in entries:
        typer.echo(f"{entry.key}\t{entry.kind}\t{entry.name}\tdeleted {entry.deleted_at}\t{entry.size / 1e6:.1f} MB")
    if not entries:
        typer.echo("The trash is empty.")


@trash.command("restore")
def restore_from_trash(
    key: Annotated[str, typer.Argument(help="As `trash list` shows it.")], home: HomeOption = None
) -> None:
    """Put something back."""
    from studio.housekeeping.things import Things

    with open_prepared_store(home) as store:
        entry = Things(store).trash.restore(key)
    typer.echo(f"The {entry.kind} {entry.name} is back.")


@trash.command("empty")
def empty_trash(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, home: HomeOption = None
) -> None:
    """Delete for good what lies in the trash."""
    from studio.housekeeping.things import Things

    with open_prepared_store(home) as store:
        things = Things(store)
        count = len(things.trash.list())
        if not count:
            raise StorageError("the trash is empty")
        if not yes:
            typer.confirm(f"Delete {count} things for good?", abort=True, err=True)
        things.trash.empty()
    typer.echo(f"{count} things are deleted for good.")
